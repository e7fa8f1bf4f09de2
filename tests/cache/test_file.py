"""The file: what is wrong with it, or in it, is told, and costs no more than itself."""

from __future__ import annotations

import json
import logging
import pickle
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests.cache.making import make_key, result
from toolenvs import exactjson
from toolenvs.cache import Imported, ReplayCache, entry
from toolenvs.cache.entry import pack
from toolenvs.errors import RuntimeFailure, UsageError


def test_a_damaged_entry_is_set_aside_and_named(
    cache: ReplayCache, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A record whose bytes changed is a miss, is kept for a look, and heals by the next run."""
    for number in (1, 2):
        cache.put(make_key(number), result(str(number)))
    cache.flush()
    with sqlite3.connect(tmp_path / "cache.db") as raw:
        broken = pack(exactjson.encode(result("forged")))
        raw.execute(
            "UPDATE toolenvs_entries SET result = ? WHERE key = ?", (broken, make_key(1).key)
        )
    raw.close()
    assert cache.get(make_key(1)) is None
    assert make_key(1).key.hex() in caplog.text
    stats = cache.stats()
    assert (stats.entries, stats.damaged) == (1, 1)
    cache.put(make_key(1), result("1"))
    cache.flush()
    found = cache.get(make_key(1))
    assert found is not None
    assert found.result.text == "1"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("cache.db", "sqlite:///FILE"),
        ("sqlite://", "sqlite:///FILE"),
        ("sqlite:///:memory:", "sqlite:///FILE"),
        ("mysql://host/name", "sqlite:///FILE"),
        ("://", "sqlite:///FILE"),
        ("postgresql://me@host:port/name", "sqlite:///FILE"),
        ("postgresql+asyncpg://me@host/name", "sqlite:///FILE"),
        ("sqlite:///\0", "sqlite:///FILE"),
        ("mysql://me:secret@host/name", r"me:\*\*\*@host"),
    ],
)
def test_a_url_that_is_no_place_says_what_is(bad: str, told: str) -> None:
    """One clear line that names an allowed form."""
    with pytest.raises(UsageError, match=told):
        ReplayCache(bad).open()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """Another file is never written over."""
    path = tmp_path / "notes.txt"
    path.write_text("my notes " * 200)
    with pytest.raises(UsageError, match=r"notes\.txt"):
        ReplayCache(f"sqlite:///{path}").open()
    assert path.read_text().startswith("my notes")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("folder", "it is a folder"),
        ("notes.txt/cache.db", "its folder cannot be made"),
        ("notes.txt", "not a database"),
    ],
)
def test_a_place_where_no_file_can_be_is_told(place: str, told: str, tmp_path: Path) -> None:
    """A folder, a file as a folder, another file: one clear error that names the place."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("my notes " * 200)
    with pytest.raises(UsageError, match=f"{tmp_path}.*cannot be used as a replay cache.*{told}"):
        ReplayCache(f"sqlite:///{tmp_path / place}").open()


def test_requests_are_compared_unpacked(
    cache: ReplayCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of zlib packs a request otherwise; it is the same all the same."""
    key = make_key("x = 1\n" * 500)
    cache.put(key, result("late"), servable=False)
    cache.flush()
    compress = zlib.compress
    monkeypatch.setattr(zlib, "compress", lambda text, _level: compress(text, 1))
    for text, expected, differing in (("a", "a", False), ("b", "a", True)):
        cache.put(key, result(text))
        cache.flush()
        found = cache.get(key)
        assert found is not None
        assert (found.result.text, found.differing) == (expected, differing)


def test_a_value_that_is_too_large_is_refused_alone(
    cache: ReplayCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how large one may be; others are recorded, large ones too."""
    cache.put(make_key("large"), result("x" * 20_000_000))
    monkeypatch.setattr(entry, "_LARGEST", 1000)
    cache.put(make_key(1), result("1"))
    with pytest.raises(UsageError, match=r"a result of 'python' has 2,0\d\d bytes; 1,000 can"):
        cache.put(make_key(2), result("x" * 2000))
    cache.flush()
    assert (cache.stats().entries, cache.lost) == (2, 0)
    monkeypatch.undo()
    found = cache.get(make_key("large"))
    assert found is not None
    assert len(found.result.text) == 20_000_000


def test_a_broken_database_raises_for_readers_and_costs_writers_their_writes(
    cache: ReplayCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody hangs, and it is told once."""
    cache.open()
    with sqlite3.connect(tmp_path / "cache.db") as raw:
        raw.execute("DROP TABLE toolenvs_entries")
    raw.close()
    with pytest.raises(RuntimeFailure) as raised:
        cache.get(make_key(1))
    assert raised.value.kind == "cache"
    cache.put(make_key(1), result("1"))
    cache.flush()
    assert cache.lost == 1
    assert [r.levelno for r in caplog.records] == [logging.ERROR]


def test_a_database_of_something_else_is_not_touched(tmp_path: Path) -> None:
    """Its tables are named; not a byte changes, whether a cache may be made there or not."""
    file = tmp_path / "mine.db"
    with closing(sqlite3.connect(file)) as mine, mine:
        mine.execute("CREATE TABLE customers (name)")
    before = file.read_bytes()
    for create in (True, False):
        with pytest.raises(
            UsageError, match=r"mine\.db is a database of something else.*customers"
        ):
            ReplayCache(f"sqlite:///{file}", create=create).open()
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_cache_that_is_not_to_be_made_is_not_made(tmp_path: Path) -> None:
    """Where there is none, that is told, and nothing is there afterwards; one that is opens."""
    nowhere, empty = tmp_path / "folder" / "nowhere.db", tmp_path / "empty.db"
    empty.touch()
    for file, told in ((nowhere, "does not exist"), (empty, "holds no replay cache")):
        cache: ReplayCache = pickle.loads(
            pickle.dumps(ReplayCache(f"sqlite:///{file}", create=False))
        )
        with pytest.raises(UsageError, match=rf"{file.name} {told}"):
            cache.stats()
    assert list(tmp_path.iterdir()) == [empty]
    assert empty.read_bytes() == b""
    with ReplayCache(f"sqlite:///{nowhere}") as made:
        made.put(make_key(1), result("1"))
    with ReplayCache(f"sqlite:///{nowhere}", create=False) as cache:
        assert cache.stats().entries == 1


DAMAGED_COLUMNS = [
    "created = 'abc'",
    "created = 9e999",
    "request = x'00ff'",
    "request = 'text'",
    "result = x'0000'",
    "result = 7",
    "digest = 'd'",
    "tool = x'ff'",
    "tool = CAST(x'ff' AS TEXT)",
    "call = 't'",
    "servable = 'x'",
    "differing = x'00'",
    "key = 't'",
    "key = x'00'",
]


@pytest.mark.parametrize("damage", DAMAGED_COLUMNS)
def test_a_damaged_row_costs_itself_alone(
    cache: ReplayCache, url: str, tmp_path: Path, damage: str
) -> None:
    """Whatever a column holds: an export names the row, counts and pruning and reads go on."""
    for number in range(4):
        cache.put(make_key(number), result(str(number)))
    cache.flush()
    with closing(sqlite3.connect(tmp_path / "cache.db")) as raw, raw:
        raw.execute(f"UPDATE toolenvs_entries SET {damage} WHERE rowid = 2")
    found = cache.export_to(tmp_path / "out.jsonl")
    assert (found.entries, len(found.damaged)) == (3, 1)
    assert "cache.db: entry " in found.damaged[0]
    with ReplayCache(f"sqlite:///{tmp_path / 'two.db'}") as two:
        assert two.import_from(tmp_path / "out.jsonl") == Imported(entries=3)
    stats = cache.stats()
    assert stats.entries == sum(stats.tools.values()) == 4
    assert json.dumps(dict(stats.tools)).isascii()
    assert 0 < stats.oldest <= stats.newest <= time.time()
    for number in (0, 2, 3):
        assert cache.get(make_key(number)) is not None
    assert cache.prune(max_age_s=3600, max_bytes=1 << 20) == damage.startswith("created")
    assert cache.prune(max_bytes=0) == stats.entries - damage.startswith("created")


@pytest.mark.parametrize(
    "damage", ["facts = x'ff'", "facts = 'text'", "digest = x''", "seen = 'x'"]
)
def test_a_damaged_runtime_costs_itself_alone(
    cache: ReplayCache, tmp_path: Path, damage: str
) -> None:
    """What a sandbox stood for is told from the others; an export names the damaged one."""
    for name in ("one", "two"):
        cache.see_runtime({"sandbox": "docker"}, {"fingerprint": name})
    cache.flush()
    with closing(sqlite3.connect(tmp_path / "cache.db")) as raw, raw:
        raw.execute(f"UPDATE toolenvs_runtimes SET {damage} WHERE rowid = 1")
    assert {"fingerprint": "two"} in cache.seen_runtimes({"sandbox": "docker"})
    found = cache.export_to(tmp_path / "out.jsonl")
    assert [": runtime " in told for told in found.damaged] == [True]


def test_a_pickled_cache_is_its_url(cache: ReplayCache) -> None:
    """It travels to workers; there is one store for one URL, whoever opens it."""
    twin: ReplayCache = pickle.loads(pickle.dumps(cache))
    cache.put(make_key(1), result("1"))
    assert twin.get(make_key(1)) is not None
    twin.close()
    twin.close()
    assert cache.get(make_key(1)) is not None
