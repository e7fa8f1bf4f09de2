"""A file that another process keeps locked: it is waited for, and not for ever."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cache.making import locked, make_key, result
from toolenvs.cache import ReplayCache, writer
from toolenvs.errors import RuntimeFailure


def test_a_lock_is_waited_for_and_readers_never_wait(cache: ReplayCache, tmp_path: Path) -> None:
    """While another process writes, reads go on and writes come later; nothing raises."""
    cache.put(make_key(1), result("1"))
    cache.flush()
    other = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache.put(make_key(2), result("2"))
    assert cache.get(make_key(1)) is not None
    assert cache.get(make_key(2)) is not None  # on its way
    other.execute("COMMIT")
    cache.flush()
    assert other.execute("SELECT count(*) FROM toolenvs_entries").fetchone() == (2,)
    other.close()
    assert cache.lost == 0


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_stays_is_not_waited_for_for_ever(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Reads, flush and close end without an error, and the log tells what was not written."""
    with locked(url) as other:
        cache = ReplayCache(url)
        for number in range(3):
            cache.put(make_key(number), result(str(number)))
        assert cache.get(make_key(2)) is not None
        assert not cache.flush()
        assert cache.stats().entries == 1
        assert cache.lost == 0  # it goes on trying
        other.execute("COMMIT")
        assert cache.flush()
        other.execute("BEGIN IMMEDIATE")
        cache.put(make_key(3), result("3"))
        cache.close()
    assert "3 results wait to be written" in caplog.text
    assert "1 results were not written" in caplog.text
    with ReplayCache(url) as again:
        assert all(again.get(make_key(number)) for number in range(3))


@pytest.mark.usefixtures("impatient")
def test_a_put_into_a_full_queue_waits_no_longer_than_a_flush(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is lost and counted, and found by nobody, who would go on with it."""
    monkeypatch.setattr(writer, "_MOST_WAITING", 2)
    with locked(url), ReplayCache(url) as cache:
        for number in range(9):
            cache.put(make_key(number), result(str(number)))
        assert cache.lost > 0
        assert cache.get(make_key(8)) is None


@pytest.mark.usefixtures("impatient")
def test_pruning_a_locked_cache_is_one_clear_failure(url: str) -> None:
    """It says that another process holds the lock."""
    with (
        locked(url),
        ReplayCache(url) as cache,
        pytest.raises(RuntimeFailure, match=r"locked\. Another process holds its lock"),
    ):
        cache.prune(max_bytes=0)


@pytest.mark.usefixtures("impatient")
def test_an_import_into_a_locked_cache_says_so(url: str, tmp_path: Path) -> None:
    """Not everything was taken; the file can be imported again."""
    with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
        two.put(make_key(1), result("1"))
        two.export_to(tmp_path / "out.jsonl")
    with (
        locked(url),
        ReplayCache(url) as cache,
        pytest.raises(RuntimeFailure, match=r"did not take .* of 1 results.*Import the file again"),
    ):
        cache.import_from(tmp_path / "out.jsonl")
