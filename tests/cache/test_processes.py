"""Many processes, forks, exits and kills: nothing that was written is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.cache.making import make_key, result, run_writers, start
from toolenvs.cache import ReplayCache


def test_R05_many_processes_write_one_file(cache: ReplayCache, url: str) -> None:
    """R05: every put of every process is stored once; none raises, none is lost."""
    run_writers(url, writers=6, puts=60)
    stats = cache.stats()
    assert (stats.entries, stats.differing) == (6 * 60 + 60, 0)


KILLED = """
import sys
from tests.cache.making import make_key, result
from toolenvs.cache import ReplayCache
cache = ReplayCache(sys.argv[1])
for number in range(100000):
    cache.put(make_key(number), result(f"{number} " + "x" * (number % 3000)))
    if number % 7 == 0:
        cache.flush()
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def kill_a_writer(folder: Path, *, after_lines: int) -> None:
    """Kill a writing process in the midst of it and check what it left."""
    url = f"sqlite:///{folder / 'killed.db'}"
    process = start(KILLED, url)
    assert process.stdout is not None
    promised = -1
    for _ in range(after_lines):
        promised = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    promised = max([promised, *map(int, rest.decode().split("\n")[:-1])])
    with ReplayCache(url) as cache:
        for number in range(promised + 1):
            found = cache.get(make_key(number))
            assert found is not None, f"{number} of {promised} is lost"
            assert found.result.text == f"{number} " + "x" * (number % 3000)
        assert cache.stats().damaged == 0
    with sqlite3.connect(folder / "killed.db") as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()


@pytest.mark.parametrize("after_lines", [1, 4, 33])
def test_a_killed_writer_loses_nothing_that_was_written(tmp_path: Path, after_lines: int) -> None:
    """What was flushed before a SIGKILL is there, whole; nothing is torn."""
    kill_a_writer(tmp_path, after_lines=after_lines)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_200_kills_at_any_point_lose_nothing_that_was_written(tmp_path: Path) -> None:
    """Wherever a SIGKILL hits: what was flushed is there, whole, and nothing else was made up."""
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        kill_a_writer(folder, after_lines=1 + number * 7 % 40)


def test_a_forked_child_opens_the_file_anew(cache: ReplayCache) -> None:
    """The child reads and writes by itself; the parent notices nothing."""
    cache.put(make_key(1), result("1"))
    cache.flush()
    script = """
    import os, sys
    from tests.cache.making import make_key, result
    from toolenvs.cache import ReplayCache
    cache = ReplayCache(sys.argv[1])
    cache.put(make_key(2), result("2"))
    pid = os.fork()
    if pid == 0:
        assert cache.get(make_key(1)) is not None
        cache.put(make_key(3), result("3"))
        cache.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    cache.put(make_key(4), result("4"))
    cache.close()
    """
    process = start(script, cache.url)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert [cache.get(make_key(n)) is not None for n in (1, 2, 3, 4)] == [True] * 4


def test_what_is_under_way_at_exit_is_written(cache: ReplayCache) -> None:
    """A process that ends without closing its cache has written all of it."""
    script = """
    import sys
    from tests.cache.making import make_key, result
    from toolenvs.cache import ReplayCache
    cache = ReplayCache(sys.argv[1])
    for number in range(500):
        cache.put(make_key(number), result(str(number)))
    """
    process = start(script, cache.url)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert cache.stats().entries == 500
