"""The replay cache: what was put in comes out, whatever else happens to the file."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs import exactjson
from toolenvs.cache import Exported, Imported, ReplayCache, database, entry, store, writer
from toolenvs.cache.entry import pack, unpack
from toolenvs.cache.flights import Flights
from toolenvs.drivers import Loop, Sleep, run
from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolError, ToolResult

TEXTS = st.text(st.characters(exclude_categories=()))


def make_key(number: object, *, tool: str = "python", state: object = "s") -> CallKey:
    """A key whose request is this number."""
    facts = {
        "after": "",
        "arguments": {"code": str(number)},
        "restarted": False,
        "state": {"runtime": {"fingerprint": state}, "seed": 1},
        "tool": {"name": tool, "version": "1"},
    }
    request = exactjson.encode(facts)
    return CallKey(
        key=hashlib.sha256(request).digest(),
        request=request,
        tool=tool,
        call=hashlib.sha256(f"{tool} {number}".encode()).digest()[:16],
        state=hashlib.sha256(str(state).encode()).digest()[:16],
    )


def result(text: str, **data: Any) -> ToolResult:
    """A result."""
    return ToolResult(text=text, data=data)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A cache's place."""
    return f"sqlite:///{tmp_path / 'cache.db'}"


@pytest.fixture
def cache(url: str) -> Iterator[ReplayCache]:
    """An empty cache."""
    with ReplayCache(url) as made:
        yield made


# -- one result ---------------------------------


def test_what_was_put_is_got_before_and_after_it_was_written(cache: ReplayCache) -> None:
    """A result is found at once, after a flush, and by whoever opens the file later."""
    key, put = make_key(1), ToolResult("42", {"stdout": "42\n"}, ToolError("raised", "no"))
    assert cache.get(key) is None
    cache.put(key, put)
    for _ in range(2):
        found = cache.get(key)
        assert found is not None
        assert (found.result, found.servable, found.differing) == (put, True, False)
        cache.flush()
    cache.close()
    again = ReplayCache(cache.url).get(key)
    assert again is not None
    assert again.result == put


@settings(deadline=None)
@given(text=TEXTS, more=st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS | st.floats()))
def test_every_result_comes_back_as_it_was(
    text: str, more: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all texts, numbers and keys, infinite and not-a-number ones too: the same bytes."""
    with ReplayCache(f"sqlite:///{tmp_path_factory.mktemp('cache') / 'c.db'}") as cache:
        key, put = make_key("x"), ToolResult(text, more)
        assert exactjson.encode(cache.put(key, put)) == exactjson.encode(put)
        cache.flush()
        found = cache.get(key)
    assert found is not None
    assert exactjson.encode(found.result) == exactjson.encode(put)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_packing_is_exact_and_never_much_larger(text: bytes) -> None:
    """For all bytes: unpacked they are the same, and one byte is the most it costs."""
    assert unpack(pack(text)) == text
    assert len(pack(text)) <= len(text) + 1
    assert len(pack(text * 50)) < max(600, len(text) * 25)


@pytest.mark.parametrize("packed", [b"", b"\2abc", b"\1abc", pack(b"x" * 9000)[:-1]])
def test_what_was_not_packed_is_told(packed: bytes) -> None:
    """Unknown, broken and cut bytes are a clear error."""
    with pytest.raises(DataError):
        unpack(packed)


def test_a_call_has_one_result_and_a_second_one_marks_it(cache: ReplayCache) -> None:
    """The first stays; the same one again changes nothing, another one marks the call."""
    key = make_key(1)
    for text, differing in (("a", False), ("a", False), ("b", True), ("a", True)):
        cache.put(key, result(text))
        cache.flush()
        found = cache.get(key)
        assert found is not None
        assert (found.result.text, found.differing) == ("a", differing)


def test_a_result_takes_the_place_of_a_time_out(cache: ReplayCache) -> None:
    """A time-out is kept for replays until the call is seen to end; never the other way round."""
    key = make_key(1)
    for text, servable, expected in (("late", False, "late"), ("42", True, "42")):
        cache.put(key, result(text), servable=servable)
        found = cache.get(key)
        assert found is not None
        assert (found.result.text, found.servable) == (expected, servable)
    cache.flush()
    cache.put(key, result("late again"), servable=False)
    cache.flush()
    found = cache.get(key)
    assert found is not None
    assert (found.result.text, found.servable, found.differing) == ("42", True, False)


def test_R03_a_collision_is_seen_and_not_served(
    cache: ReplayCache, caplog: pytest.LogCaptureFixture
) -> None:
    """R03: another request under the same key gets nothing and takes nothing's place."""
    one, two = make_key(1), make_key(2)
    two = CallKey(one.key, two.request, two.tool, two.call, two.state)
    cache.put(one, result("one"))
    for _ in range(2):
        assert cache.get(two) is None
        cache.flush()
    cache.put(two, result("two"))
    cache.flush()
    assert cache.get(two) is None
    found = cache.get(one)
    assert found is not None
    assert (found.result.text, found.differing) == ("one", False)
    assert "two requests have the key" in caplog.text


def test_what_is_no_json_is_refused_and_not_recorded(cache: ReplayCache) -> None:
    """Bytes in a result are an error at once, not a damaged record later."""
    with pytest.raises(UsageError):
        cache.put(make_key(1), result("x", raw=b"bytes"))
    assert cache.get(make_key(1)) is None


# -- the file ---------------------------------


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a lock."""
    monkeypatch.setattr(database, "PATIENCE_S", 0.2)
    monkeypatch.setattr(database, "_LOCK_WAIT_S", 0.05)
    monkeypatch.setattr(store, "PATIENCE_S", 0.2)


@contextlib.contextmanager
def locked(url: str) -> Iterator[sqlite3.Connection]:
    """A cache whose write lock another process holds."""
    with ReplayCache(url) as cache:
        cache.put(make_key("before"), result("before"))
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


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


# -- upkeep ---------------------------------


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


# -- many at once ---------------------------------

WRITER = """
import sys
from tests.test_cache import make_key, result
from toolenvs.cache import ReplayCache
url, who, puts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with ReplayCache(url) as cache:
    for number in range(puts):
        own, shared = make_key(f"{who}-{number}"), make_key(number)
        cache.put(own, result(f"{who}-{number}"))
        cache.put(shared, result(str(number)))
        for key, text in ((own, f"{who}-{number}"), (shared, str(number))):
            found = cache.get(key)
            assert found is not None and found.result.text == text
    cache.flush()
    assert cache.lost == 0
"""


def start(script: str, *words: object) -> subprocess.Popen[bytes]:
    """Start Python on ``script`` from the repository's root."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, words)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_writers(url: str, *, writers: int, puts: int) -> None:
    """Let processes write at the same time; none may fail."""
    processes = [start(WRITER, url, who, puts) for who in range(writers)]
    for process in processes:
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 0, errors.decode()


def test_R05_many_processes_write_one_file(cache: ReplayCache, url: str) -> None:
    """R05: every put of every process is stored once; none raises, none is lost."""
    run_writers(url, writers=6, puts=60)
    stats = cache.stats()
    assert (stats.entries, stats.differing) == (6 * 60 + 60, 0)


KILLED = """
import sys
from tests.test_cache import make_key, result
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
    from tests.test_cache import make_key, result
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
    from tests.test_cache import make_key, result
    from toolenvs.cache import ReplayCache
    cache = ReplayCache(sys.argv[1])
    for number in range(500):
        cache.put(make_key(number), result(str(number)))
    """
    process = start(script, cache.url)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()
    assert cache.stats().entries == 500


# -- equal calls at once ---------------------------------


async def fly(flights: Flights, log: list[str], name: str) -> str:
    """Run a slow call unless it is flying already."""
    flight, leads = await flights.board(b"key")
    if not leads:
        shared = await flight.wait()
        return f"{name} shared {shared.text}" if shared is not None else f"{name} ran itself"
    try:
        log.append(name)
        await Sleep(0.05)
    finally:
        flights.land(b"key", result("42") if name != "fails" else None)
    return f"{name} led"


def test_equal_calls_of_one_loop_run_once() -> None:
    """The first flies, the others get its result; when it brings none they run by themselves."""
    flights, loop = Flights(), Loop()
    log: list[str] = []
    ends: list[str | None] = []
    for name in ("a", "b", "c"):
        loop.spawn(fly(flights, log, name), lambda value, error: ends.append(value))
    while len(ends) < 3:
        loop.pump(1.0)
    for name in ("fails", "d"):
        loop.spawn(fly(flights, log, name), lambda value, error: ends.append(value))
    while len(ends) < 5:
        loop.pump(1.0)
    loop.close()
    assert log == ["a", "fails"]
    assert sorted(map(str, ends)) == [
        "a led",
        "b shared 42",
        "c shared 42",
        "d ran itself",
        "fails led",
    ]


def test_equal_calls_of_threads_run_once() -> None:
    """Threads wait for each other, too."""
    flights = Flights()
    log: list[str] = []
    ends: list[str] = []
    threads = [
        threading.Thread(target=lambda n=name: ends.append(run(fly(flights, log, n))))
        for name in ("a", "b", "c")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(log) == 1
    assert sum("shared 42" in end for end in ends) == 2


def test_a_call_never_waits_for_its_own_thread() -> None:
    """A blocking call on the thread whose loop flies the same call runs by itself at once."""
    flights, loop = Flights(), Loop()
    log: list[str] = []
    ends: list[str | None] = []
    loop.spawn(fly(flights, log, "a"), lambda value, error: ends.append(value))
    assert run(fly(flights, log, "b")) == "b ran itself"
    loop.close()
    assert run(fly(flights, log, "c")) == "c led"  # a closed loop leaves nothing in the air
