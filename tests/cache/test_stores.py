"""The life of an open cache: shared by its users, closed with the last, nothing lost between."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cache.making import fly, locked, make_key, result, start
from toolenvs.cache import ReplayCache, stores
from toolenvs.cache.flights import Flights
from toolenvs.cache.store import Store
from toolenvs.drivers import Loop, run
from toolenvs.settings import ReplaySetting


def in_threads(*works: Callable[[], object]) -> None:
    """Run each on a thread of its own, all begun at the same time."""
    ready, errors = threading.Barrier(len(works)), []

    def begin(work: Callable[[], object]) -> None:
        ready.wait()
        try:
            work()
        except BaseException as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def opened(url: str) -> Store | None:
    """The store that is open in this process for a URL."""
    return stores._open.get(url)


def test_threads_that_open_one_cache_at_once_take_one_share(url: str) -> None:
    """So that its close closes the store."""
    for _ in range(20):
        one = ReplayCache(url)
        in_threads(*[one.open] * 8)
        assert opened(url) is not None
        one.close()
        assert opened(url) is None


def test_the_last_user_closes_the_store(url: str) -> None:
    """Closing twice counts once, whoever does it at the same time."""
    one, two = ReplayCache(url), ReplayCache(url)
    one.open()
    two.open()
    in_threads(*[one.close] * 4)
    assert opened(url) is not None
    assert two.get(make_key(1)) is None
    two.close()
    assert opened(url) is None


def test_a_put_that_races_with_close_is_never_lost(url: str) -> None:
    """It goes on with the cache opened anew; what was put is found at once and in the end."""
    one, stop = ReplayCache(url), threading.Event()
    put = []

    def write(who: int) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            key = make_key(f"{who} {number}")
            one.put(key, result(str(number)))
            assert one.get(key) is not None
            put.append(key)

    def close() -> None:
        for _ in range(60):
            one.close()
        stop.set()

    in_threads(lambda: write(0), lambda: write(1), close)
    one.close()
    assert opened(url) is None
    with ReplayCache(url) as again:
        assert again.stats().entries == len(put)


def test_what_others_do_with_a_cache_outlives_its_close(url: str, tmp_path: Path) -> None:
    """Reads, marks, exports and counts race with close as puts do: none of them fails."""
    one = ReplayCache(url)
    one.put(make_key(1), result("1"))

    def work() -> None:
        for _ in range(15):
            assert one.get(make_key(1)) is not None
            one.mark_differing(make_key(1))
            assert one.stats().entries == 1
            one.see_runtime({"sandbox": "a"}, {"fingerprint": "f"})
            assert one.export_to(tmp_path / f"{threading.get_ident()}.jsonl").entries == 1

    def close() -> None:
        for _ in range(30):
            one.close()

    in_threads(work, work, close, close)
    one.close()
    assert opened(url) is None


def test_a_cache_that_waits_for_a_lock_keeps_no_other_waiting(url: str, tmp_path: Path) -> None:
    """Others open, write and close meanwhile; once the lock is gone all is written."""
    with locked(url) as other:
        one = ReplayCache(url)
        one.put(make_key(1), result("1"))
        closing = threading.Thread(target=one.close)
        closing.start()
        with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
            two.put(make_key(1), result("1"))
            assert two.stats().entries == 1
        again = ReplayCache(url)
        assert again.get(make_key(1)) is not None  # though it is not written yet
        assert closing.is_alive()
        other.execute("COMMIT")
        closing.join(60)
    again.close()
    assert opened(url) is None
    with ReplayCache(url) as again:
        assert again.stats().entries == 2


def test_a_twin_closes_what_it_opened_and_no_more(url: str) -> None:
    """A fork's end leaves its origin's store open; the last one closes it."""
    origin = ReplaySetting("auto", url, share_external=False)
    origin.playback(runtimes={}, counts={})
    for _ in range(3):
        twin = origin.twin()
        twin.playback(runtimes={}, counts={})
        store = opened(url)
        assert store is not None
        assert store.users == 2
        twin.close()
        twin.close()
        assert opened(url) is store
        assert (store.users, store.closed) == (1, False)
    last = origin.twin()
    last.playback(runtimes={}, counts={})
    origin.close()
    assert opened(url) is not None
    last.close()
    assert opened(url) is None


def test_a_cache_that_the_caller_keeps_is_closed_by_no_setting(cache: ReplayCache) -> None:
    """Nor by a twin."""
    setting = ReplaySetting("record", cache, share_external=False)
    for one in (setting, setting.twin()):
        one.playback(runtimes={}, counts={})
        cache.put(make_key(1), result("1"))
        one.close()
        assert opened(cache.url) is not None
    assert cache.stats().entries == 1


def test_flights_outlive_the_store(cache: ReplayCache) -> None:
    """Who waits for a call is served though the store was closed and opened meanwhile."""
    flights = cache.flights
    cache.open()
    cache.close()
    assert cache.flights is flights
    assert ReplayCache(cache.url).flights is flights


def test_a_flight_whose_thread_ended_is_taken_over() -> None:
    """Who waits for it goes on, and who comes then leads."""
    flights, boarded, seen = Flights(), threading.Event(), []

    def leave() -> None:
        run(flights.board(b"key"))
        boarded.set()
        seen.append(waiting.wait(60))

    async def follow() -> object:
        flight, leads = await flights.board(b"key")
        assert not leads
        waiting.set()
        return await flight.wait()

    waiting = threading.Event()
    leader = threading.Thread(target=leave)
    leader.start()
    boarded.wait(60)
    assert run(follow()) is None
    leader.join(60)
    log: list[str] = []
    assert run(fly(flights, log, "a")) == "a led"


def test_a_flight_of_a_loop_whose_thread_ended_is_taken_over() -> None:
    """Also where the one that waits is driven by a loop."""
    flights, ends = Flights(), []
    leader = threading.Thread(target=lambda: run(flights.board(b"key")))

    async def follow() -> str:
        return await fly(flights, [], "b")

    leader.start()
    leader.join(60)
    loop = Loop()
    loop.spawn(follow(), lambda value, error: ends.append(value))
    while not ends:
        loop.pump(1.0)
    loop.close()
    assert ends == ["b led"]


def test_a_forked_child_waits_for_no_call_of_its_parent(cache: ReplayCache) -> None:
    """The thread that would bring it is not in the child."""
    assert run(cache.flights.board(b"key"))[1]
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run(cache.flights.board(b"key"))[1] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert not run(cache.flights.board(b"key"))[1]
    cache.flights.land(b"key", None)


@pytest.mark.parametrize("way", ["put", "close"])
def test_nothing_is_opened_once_the_process_ends(way: str, url: str) -> None:
    """A thread that goes on at exit gets a clear failure; what came before is written."""
    script = """
    import multiprocessing.util, sys
    from tests.cache.making import make_key, result
    from toolenvs.cache import ReplayCache
    from toolenvs.errors import RuntimeFailure
    cache = ReplayCache(sys.argv[1])
    def late():
        if sys.argv[2] == "close":
            cache.close()
            return
        try:
            cache.put(make_key(2), result("2"))
        except RuntimeFailure as failure:
            assert failure.kind == "cache"
            print("told")
    multiprocessing.util.Finalize(None, late, exitpriority=1)
    cache.put(make_key(1), result("1"))
    """
    process = start(script, url, way)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert (b"told" in out) is (way == "put")
    with ReplayCache(url) as again:
        assert again.stats().entries == 1
