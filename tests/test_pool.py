"""The pool: bounds hold, nothing leaks, whoever waits is served or told why not."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs import runtimes
from toolenvs.drivers import Loop, Raised, Request, run
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.pool import PoolHandle, SandboxPool, own_pool, shared_pool
from toolenvs.types import ExecResult


class Pause(Request[None]):
    """A moment in which others may run."""

    def perform(self) -> None:
        pass

    def start(self, loop: Loop, wake: Callable[[None, BaseException | None], None]) -> None:
        loop.call_soon_threadsafe(lambda: wake(None, None))


class FakeSandbox:
    """A place taken in a fake worker."""

    def __init__(self, worker: FakeWorker) -> None:
        self.worker = worker
        self.stops = 0
        self.refuses_to_stop = False

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        return ExecResult(status="ok", stdout=code)

    async def stop(self) -> None:
        await Pause()
        self.stops += 1
        if self.refuses_to_stop:
            raise RuntimeFailure("protocol", "no answer")
        self.worker.live.discard(self)


class FakeWorker:
    """Holds ``capacity`` sandboxes; ``die`` takes them all with it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.live: set[FakeSandbox] = set()
        self.alive = True
        self.stopped = 0

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> FakeSandbox:
        await Pause()
        if not self.alive:
            raise RuntimeFailure("sandbox_died", "the container is gone")
        assert len(self.live) < self.capacity, "more sandboxes than places"
        sandbox = FakeSandbox(self)
        self.live.add(sandbox)
        return sandbox

    def healthy(self) -> bool:
        return self.alive

    async def stop(self) -> None:
        await Pause()
        self.stopped += 1
        self.die()

    def die(self) -> None:
        self.alive = False
        self.live.clear()


class FakeRuntime:
    """Starts fake workers; the first ``failures`` starts fail."""

    name = "fake"

    def __init__(self, capacity: int = 2, failures: int = 0) -> None:
        self.capacity = capacity
        self.failures = failures
        self.workers: list[FakeWorker] = []
        self.starts = 0

    def fingerprint(self) -> str:
        return "fake"

    async def start(self) -> FakeWorker:
        self.starts += 1
        await Pause()
        if self.failures:
            self.failures -= 1
            raise RuntimeFailure("engine", "no luck")
        worker = FakeWorker(self.capacity)
        self.workers.append(worker)
        return worker

    @property
    def running(self) -> list[FakeWorker]:
        return [worker for worker in self.workers if worker.alive]


def lease(pool: SandboxPool | PoolHandle) -> FakeSandbox:
    """Lease at once, on this thread."""
    sandbox = run(pool.lease(seed=0, files={}))
    assert isinstance(sandbox, FakeSandbox)
    return sandbox


def finish(loop: Loop, outcomes: list[Any], number: int) -> None:
    """Pump until there are so many outcomes."""
    give_up = time.monotonic() + 30
    while len(outcomes) < number:
        assert time.monotonic() < give_up, "the pool hangs"
        loop.pump(0.05)


def start_all(loop: Loop, coroutines: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Start them all; the list returned fills with their values or errors."""
    outcomes: list[Any] = []
    for coroutine in coroutines:
        loop.spawn(coroutine, lambda value, error: outcomes.append(error or value))
    return outcomes


def test_places_of_one_worker_are_filled_before_another_starts() -> None:
    """A second worker starts only when the first is full, and one is reused after a release."""
    runtime = FakeRuntime(capacity=2)
    pool = SandboxPool(runtime, max_workers=2)
    first, second = lease(pool), lease(pool)
    assert runtime.starts == 1
    third = lease(pool)
    assert runtime.starts == 2
    run(pool.release(second))
    assert second.stops == 1
    assert lease(pool).worker is first.worker
    assert third.worker is not first.worker
    pool.close()
    assert runtime.running == []


def test_leases_at_once_start_only_as_many_workers_as_they_need() -> None:
    """Two that need a worker at once share the one that the first of them starts."""
    runtime = FakeRuntime(capacity=4)
    pool = SandboxPool(runtime, max_workers=3)
    loop = Loop()
    outcomes = start_all(loop, [pool.lease(seed=i, files={}) for i in range(6)])
    finish(loop, outcomes, 6)
    assert all(isinstance(outcome, FakeSandbox) for outcome in outcomes)
    assert runtime.starts == 2  # 6 sandboxes at 4 a worker
    loop.close()
    pool.close()


def test_a_full_pool_waits_and_then_says_which_bound_to_raise() -> None:
    """Waiting ends at ``lease_timeout_s`` with kind ``capacity`` and the bound's name."""
    pool = SandboxPool(FakeRuntime(capacity=1), max_workers=1, lease_timeout_s=0.05)
    held = lease(pool)
    with pytest.raises(RuntimeFailure, match="max_workers=1") as caught:
        lease(pool)
    assert caught.value.kind == "capacity"
    run(pool.release(held))
    lease(pool)
    pool.close()


def test_a_place_goes_to_whoever_waited_longest() -> None:
    """Places are handed on in the order of asking, also to waiters of other threads' drivers."""
    pool = SandboxPool(FakeRuntime(capacity=1), max_workers=1)
    held = lease(pool)
    order: list[int] = []
    loop = Loop()

    async def turn(number: int) -> None:
        sandbox = await pool.lease(seed=number, files={})
        order.append(number)
        await pool.release(sandbox)

    outcomes = start_all(loop, [turn(i) for i in range(5)])
    thread = threading.Thread(target=lambda: run(pool.release(held)))
    thread.start()
    finish(loop, outcomes, 5)
    thread.join(10)
    assert order == [0, 1, 2, 3, 4]
    loop.close()
    pool.close()


def test_a_dead_worker_is_replaced() -> None:
    """A lease after a worker's death gets a place in a new one; the dead one is cleared away."""
    runtime = FakeRuntime(capacity=2)
    pool = SandboxPool(runtime, max_workers=1)
    lost = lease(pool)
    lost.worker.die()
    fresh = lease(pool)
    assert fresh.worker is not lost.worker
    assert lost.worker.stopped == 1
    run(pool.release(lost))  # of a dead worker: harmless, and frees no place of the new one
    other = lease(pool)
    assert other.worker is fresh.worker
    assert len(fresh.worker.live) == 2
    pool.close()


def test_waiters_are_served_although_the_dead_workers_leases_are_never_given_back() -> None:
    """A lease that waits in a full pool notices a worker's death by itself."""
    runtime = FakeRuntime(capacity=1)
    pool = SandboxPool(runtime, max_workers=1, lease_timeout_s=20)
    held = lease(pool)
    threading.Timer(0.1, held.worker.die).start()
    assert lease(pool).worker is runtime.workers[1]
    pool.close()


def test_one_failed_start_tells_all_who_waited_for_it() -> None:
    """When nothing can start, nobody starts it again and again; the next lease tries anew."""
    runtime = FakeRuntime(capacity=4, failures=1)
    pool = SandboxPool(runtime, max_workers=2)
    loop = Loop()
    outcomes = start_all(loop, [pool.lease(seed=i, files={}) for i in range(4)])
    finish(loop, outcomes, 4)
    assert [type(outcome) for outcome in outcomes] == [RuntimeFailure] * 4
    assert runtime.starts == 1
    assert lease(pool).worker.alive
    loop.close()
    pool.close()


def test_a_sandbox_that_does_not_stop_takes_its_worker_along() -> None:
    """A place is never given to another while its last tenant may still run."""
    runtime = FakeRuntime(capacity=1)
    pool = SandboxPool(runtime, max_workers=1)
    stubborn = lease(pool)
    stubborn.refuses_to_stop = True
    run(pool.release(stubborn))
    assert not stubborn.worker.alive
    assert lease(pool).worker is not stubborn.worker
    pool.close()


def test_prewarm_starts_workers_ahead_of_need() -> None:
    """The first lease starts ``prewarm`` workers, the bound included."""
    runtime = FakeRuntime(capacity=1)
    pool = SandboxPool(runtime, max_workers=3, prewarm=2)
    lease(pool)
    give_up = time.monotonic() + 30
    while len(runtime.workers) < 2:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    lease(pool)
    assert runtime.starts == 2
    pool.close()


def test_warm_shows_what_keeps_a_worker_from_starting() -> None:
    """``warm`` raises the runtime's own failure, and waits for nothing in a full pool."""
    pool = SandboxPool(FakeRuntime(capacity=1, failures=1), max_workers=1, lease_timeout_s=0.05)
    with pytest.raises(RuntimeFailure, match="no luck"):
        run(pool.warm())
    run(pool.warm())
    lease(pool)
    run(pool.warm())
    pool.close()


def test_close_fails_those_who_wait_and_twice_is_harmless() -> None:
    """After ``close`` nothing runs, waiting leases fail and new ones are refused."""
    runtime = FakeRuntime(capacity=1)
    pool = SandboxPool(runtime, max_workers=1)
    held = lease(pool)
    loop = Loop()
    outcomes = start_all(loop, [pool.lease(seed=1, files={})])
    pool.close()
    pool.close()
    finish(loop, outcomes, 1)
    assert isinstance(outcomes[0], RuntimeFailure)
    assert runtime.running == []
    with pytest.raises(RuntimeFailure, match="closed"):
        lease(pool)
    run(pool.release(held))
    loop.close()


def test_bounds_out_of_range_are_refused() -> None:
    """The message tells the value and what is allowed."""
    with pytest.raises(UsageError, match="max_workers is 0"):
        SandboxPool(FakeRuntime(), max_workers=0)
    with pytest.raises(UsageError, match="prewarm is 3"):
        SandboxPool(FakeRuntime(), prewarm=3)


def test_after_a_fork_the_child_starts_from_an_empty_pool() -> None:
    """The child gets workers of its own and touches none of the parent's."""
    runtime = FakeRuntime(capacity=1)
    pool = SandboxPool(runtime, max_workers=1, lease_timeout_s=5)
    held = lease(pool)
    child = os.fork()
    if child == 0:
        good = False
        try:
            run(pool.release(held))
            fresh = lease(pool)
            untouched = held.stops == 0 and held.worker.stopped == 0 and held.worker.alive
            good = untouched and fresh.worker is not held.worker
            pool.close()
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert held.worker.alive
    pool.close()


@pytest.fixture
def fake_runtimes(monkeypatch: pytest.MonkeyPatch) -> list[FakeRuntime]:
    """Register the runtime ``fake`` and list the ones that are made."""
    made: list[FakeRuntime] = []

    def make(capacity: int = 2) -> FakeRuntime:
        made.append(FakeRuntime(capacity))
        return made[-1]

    monkeypatch.setitem(runtimes.registry._registered, "fake", make)
    return made


def test_equal_settings_share_a_pool_until_the_last_handle(
    fake_runtimes: list[FakeRuntime],
) -> None:
    """Handles count; other options mean another pool."""
    first, second = shared_pool("fake", capacity=3), shared_pool("fake", capacity=3)
    other = shared_pool("fake", capacity=3, max_workers=1)
    assert first.pool is second.pool
    assert other.pool is not first.pool
    lease(first)
    first.close()
    first.close()
    assert len(fake_runtimes[0].running) == 1
    second.close()
    assert second.pool.closed
    assert fake_runtimes[0].running == []
    again = shared_pool("fake", capacity=3)
    assert again.pool is not first.pool
    again.close()
    other.close()


def test_a_collected_handle_closes_its_share(fake_runtimes: list[FakeRuntime]) -> None:
    """A forgotten environment does not keep its workers for ever."""
    handle = shared_pool("fake", capacity=1)
    pool = handle.pool
    lease(handle)
    del handle
    gc.collect()
    give_up = time.monotonic() + 30
    while not pool.closed or fake_runtimes[0].running:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_a_pool_of_ones_own_is_closed_by_its_maker() -> None:
    """A handle on a given pool leaves it open; one on a given runtime closes what it made."""
    pool = SandboxPool(FakeRuntime())
    own_pool(pool).close()
    assert not pool.closed
    pool.close()
    handle = own_pool(FakeRuntime())
    lease(handle)
    handle.close()
    assert handle.pool.closed


def test_auto_is_local_where_no_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` needs no engine; what was chosen stands in the handle's name."""
    made = FakeRuntime()
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    monkeypatch.setattr(runtimes, "make", lambda name, **_: made if name == "local" else None)
    handle = shared_pool("auto")
    assert handle.pool.runtime is made
    handle.close()


class Job:
    """A coroutine that a test drives by hand, and what to do once it ends or is given up."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        done: Callable[[Any], None],
        given_up: Callable[[], None],
    ) -> None:
        self.generator: Generator[Any, Any, Any] = coroutine.__await__()
        self.request: Any = None
        self.done = done
        self.given_up = given_up


class Schedule:
    """Drives coroutines one request at a time, in the order that a test chooses."""

    def __init__(self, pool: SandboxPool) -> None:
        self.pool = pool
        self.jobs: list[Job] = []
        self.held: list[FakeSandbox] = []

    def lease(self) -> None:
        self._add(Job(self.pool.lease(seed=0, files={}), self.held.append, lambda: None))

    def release(self, choice: int) -> None:
        sandbox = self.held.pop(choice % len(self.held))
        again = lambda: self.held.append(sandbox)  # noqa: E731 - one line says it
        self._add(Job(self.pool.release(sandbox), lambda _: None, again))

    def step(self, choice: int) -> None:
        """Advance one job; a wait that is not over yet ends by its time limit."""
        self._add(self.jobs.pop(choice % len(self.jobs)))

    def abandon(self, choice: int) -> None:
        """Give one job up where it stands."""
        job = self.jobs.pop(choice % len(self.jobs))
        job.generator.close()
        job.given_up()

    def _add(self, job: Job) -> None:
        value = job.request.signal.is_set() if isinstance(job.request, Raised) else None
        try:
            job.request = job.generator.send(value)
        except StopIteration as stop:
            job.done(stop.value)
        except RuntimeFailure:
            pass
        else:
            self.jobs.append(job)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["lease", "release", "step", "step", "step", "die", "fail", "abandon"]),
        st.integers(0, 30),
    ),
    max_size=80,
)


@given(actions=ACTIONS, capacity=st.integers(1, 3), max_workers=st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_no_interleaving_breaks_a_bound_or_loses_a_place(
    actions: list[tuple[str, int]], capacity: int, max_workers: int
) -> None:
    """Never more sandboxes than places nor workers than the bound; in the end all places are free.

    Leases, releases, deaths, failed starts and abandoned coroutines come in any order.
    """
    runtime = FakeRuntime(capacity)
    pool = SandboxPool(runtime, max_workers=max_workers, lease_timeout_s=1000)
    schedule = Schedule(pool)
    for action, number in actions:
        if action == "lease":
            schedule.lease()
        elif action == "release" and schedule.held:
            schedule.release(number)
        elif action == "die" and runtime.running:
            runtime.running[number % len(runtime.running)].die()
        elif action == "fail":
            runtime.failures = 1
        elif action == "step" and schedule.jobs:
            schedule.step(number)
        elif action == "abandon" and schedule.jobs:
            schedule.abandon(number)
        assert len(runtime.running) <= max_workers
        assert all(len(worker.live) <= capacity for worker in runtime.running)
    check_all_places_come_back(schedule, runtime)


def check_all_places_come_back(schedule: Schedule, runtime: FakeRuntime) -> None:
    """End every job and lease; then the pool must hold all its places, free."""
    pool = schedule.pool
    runtime.failures = 0
    for _ in range(10_000):
        while schedule.held:
            schedule.release(0)
        if not schedule.jobs:
            break
        schedule.step(0)
    assert not schedule.jobs, "someone waits for ever"
    pool.lease_timeout_s = 0.0
    everything = [lease(pool) for _ in range(runtime.capacity * pool.max_workers)]
    assert len(runtime.running) <= pool.max_workers
    for sandbox in everything:
        run(pool.release(sandbox))
    assert all(not worker.live for worker in runtime.running)
    pool.close()
    assert runtime.running == []


def test_an_unknown_option_names_those_of_the_pool_too() -> None:
    """The nearest is found among all that ``sandbox_options`` takes."""
    with pytest.raises(UnknownNameError, match="Did you mean 'max_workers'"):
        shared_pool("local", max_worker=3)
