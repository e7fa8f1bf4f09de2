"""Pruning, exports and imports."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cache.making import WRITER, make_key, result, start
from toolenvs.cache import Exported, Imported, ReplayCache
from toolenvs.errors import DataError, RuntimeFailure, UsageError


def test_pruning_takes_the_oldest(cache: ReplayCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """By age, then by size; what is left is the newest."""
    for number in range(10):
        monkeypatch.setattr(time, "time", lambda number=number: 1000.0 + number)
        cache.put(make_key(number), result("x" * 100))
    monkeypatch.setattr(time, "time", lambda: 1010.0)
    assert cache.prune(max_age_s=7.5) == 3
    each = cache.stats().bytes // 7
    assert cache.prune(max_bytes=each * 4 + 3) == 3
    assert [cache.get(make_key(number)) is not None for number in range(10)] == [False] * 6 + [
        True
    ] * 4
    assert cache.stats().tools == {"python": 4}
    with pytest.raises(UsageError, match="max_age_s"):
        cache.prune(max_age_s=-1)
    with pytest.raises(UsageError, match=r"max_bytes=.*below 2\*\*63"):
        cache.prune(max_bytes=2**63)


def test_pruning_goes_on_beside_readers_and_writers(cache: ReplayCache, url: str) -> None:
    """Nobody fails; what is written meanwhile stays or goes whole; two share the work."""
    for number in range(1500):
        cache.put(make_key(number), result("x" * 100))
    cache.flush()
    stop, gone, errors = threading.Event(), [], []

    def use() -> None:
        for number in itertools.cycle(range(1500)):
            if stop.is_set():
                return
            found = cache.get(make_key(number))
            assert found is None or found.result.text == "x" * 100

    def shrink() -> None:
        with ReplayCache(url) as other:
            gone.append(other.prune(max_bytes=0))

    def safely(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=safely, args=(work,)) for work in (use, use, shrink, shrink)]
    writer = start(WRITER, url, "9", 200)
    for thread in threads:
        thread.start()
    for thread in threads[2:]:
        thread.join(60)
    stop.set()
    for thread in threads[:2]:
        thread.join(60)
    _, told = writer.communicate(timeout=60)
    assert errors == []
    assert b"database" not in told  # a result may be pruned before it is looked at, and no more
    assert sum(gone) >= 1500
    assert sum(gone) + cache.stats().entries <= 1500 + 200 + 200


def test_an_export_makes_an_equal_cache(cache: ReplayCache, tmp_path: Path) -> None:
    """Results, marks and runtimes travel; two exports of equal caches are equal bytes."""
    for number in range(700):
        cache.put(make_key(number), result(f"left\u2028right\u0085 \x00 {number}"))
    cache.put(make_key("late"), result("late"), servable=False)
    cache.put(make_key(3), result("other"))
    for name in ("docker", "local", "scripted"):
        cache.see_runtime({"sandbox": name}, {"fingerprint": "f"})
    assert cache.export_to(tmp_path / "one.jsonl") == Exported(entries=701)
    with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
        for _ in range(2):
            assert two.import_from(tmp_path / "one.jsonl") == Imported(entries=701)
        assert two.seen_runtimes({"sandbox": "docker"}) == [{"fingerprint": "f"}]
        found = two.get(make_key(3))
        assert found is not None
        assert found.differing
        assert (two.stats().entries, two.stats().servable) == (701, 700)
        two.export_to(tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


@pytest.mark.parametrize("damage", ["text", "head", "empty"])
def test_a_file_that_is_no_export_is_refused(
    cache: ReplayCache, tmp_path: Path, damage: str
) -> None:
    """The message begins with path:line, and nothing is taken."""
    file = tmp_path / "out.jsonl"
    head = {"text": "my notes", "head": '{"toolenvs_cache": 99}', "empty": ""}[damage]
    file.write_text(head)
    with pytest.raises(DataError, match=r"out\.jsonl:1: this is no export"):
        cache.import_from(file)
    assert cache.stats().entries == 0


DAMAGES: dict[str, Any] = {
    "cut": lambda line: line[:-9],
    "no result": lambda line: json.dumps(json.loads(line) | {"result": "7"}),
    "no bytes": lambda line: json.dumps(json.loads(line) | {"call": "xyz"}),
    "no time": lambda line: json.dumps(json.loads(line) | {"created": {"$float": "nan"}}),
    "no name": lambda line: json.dumps(json.loads(line) | {"tool": "a\0b"}),
    "other": lambda line: "[1]",
    "not ASCII": lambda line: "\xff" + line,
    "blank": lambda line: "",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_named_and_the_others_are_taken(
    cache: ReplayCache, tmp_path: Path, damage: str
) -> None:
    """Each as path:line, wherever it lies."""
    file = tmp_path / "out.jsonl"
    for number in range(5):
        cache.put(make_key(number), result(str(number)))
    cache.export_to(file)
    lines = file.read_text().splitlines()
    for place in (1, 3):
        lines[place] = DAMAGES[damage](lines[place])
    file.write_text("\n".join(lines), encoding="latin-1")
    with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
        read = two.import_from(file)
        assert read.entries == two.stats().entries == 3
        assert two.lost == 0
    assert [told.partition(": ")[0] for told in read.damaged] == [f"{file}:2", f"{file}:4"]


def test_an_export_that_fails_leaves_nothing(cache: ReplayCache, tmp_path: Path) -> None:
    """No half file and no draft; what was there before stays."""
    cache.put(make_key(1), result("1"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for place in (
        folder,
        folder / "nowhere" / "out.jsonl",
        Path(),
        Path("/"),
        folder / ("a" * 300),
    ):
        with pytest.raises(UsageError, match="cannot be written"):
            cache.export_to(place)
    assert list(tmp_path.glob("**/*.new")) == []


def test_an_import_that_the_database_does_not_take_says_so(
    cache: ReplayCache, tmp_path: Path
) -> None:
    """A full disk is an error with the number that is missing, not a quiet loss."""
    for number in range(300):
        cache.put(make_key(number), result(str(number) * 100))
    cache.export_to(tmp_path / "out.jsonl")
    with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
        two.open()
        with sqlite3.connect(tmp_path / "two.db") as raw:
            raw.execute(
                "CREATE TRIGGER full BEFORE INSERT ON toolenvs_entries "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        raw.close()
        with pytest.raises(RuntimeFailure, match=r"did not take 300 of 300 .*disk is full"):
            two.import_from(tmp_path / "out.jsonl")


def test_a_miss_names_the_recording_that_comes_nearest(cache: ReplayCache) -> None:
    """The same call elsewhere, or another call here, and in what it differs."""
    assert "nothing was ever recorded" in cache.explain_miss(make_key(1))
    cache.put(make_key("n += 1; print(n)"), result("1"))
    cache.put(make_key("import numpy", state="t"), result("1"))
    told = cache.explain_miss(make_key("n += 1; print(n)", state="other"))
    assert 'runtime.fingerprint is "s" there, "other" here' in told
    told = cache.explain_miss(make_key("n += 2; print(n)"))
    assert 'arguments.code is "n += 1; print(n)" there' in told
