"""Cases R01, R02, R03, R05, R06: how a replay layer goes wrong elsewhere, and not here."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cache.making import make_key, result, run_writers
from toolenvs.cache import ReplayCache
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.errors import CacheMissError, RuntimeFailure
from toolenvs.protocols import ToolKind
from toolenvs.records import decode_trajectory, encode_trajectory
from toolenvs.replay import replay_trajectory
from toolenvs.types import ExecResult, Task, ToolCall, ToolResult

TASK = Task(id="t", prompt="?", answer="1")


class Interpreter:
    """A sandbox that runs the test's own code in this process."""

    def __init__(self, runtime: InProcess) -> None:
        self.runtime = runtime
        self.names: dict[str, Any] = {}

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run a few lines; ``sleep`` and ``oom`` stand for what they say."""
        self.runtime.ran.append(code)
        if code == "oom":
            raise RuntimeFailure("host_oom", "the host ended the container")
        if code.startswith("sleep") and (timeout_s or 10.0) < 99:
            return ExecResult(status="timeout")
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, self.names)
        except Exception as error:
            stderr = f"{type(error).__name__}: {error}"
            return ExecResult(status="raised", stdout=printed.getvalue(), stderr=stderr)
        return ExecResult(status="ok", stdout=printed.getvalue())

    async def stop(self) -> None:
        """Forget it."""


class InProcess:
    """A runtime of ``Interpreter``; is its own worker."""

    name = "in_process"
    capacity = 64

    def __init__(self, image: str = "python:3.11") -> None:
        self.image = image
        self.ran: list[str] = []
        self.started = 0

    def fingerprint(self) -> str:
        """The image."""
        return self.image

    async def start(self) -> InProcess:
        """Start a worker."""
        self.started += 1
        return self

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Interpreter:
        """Start a sandbox."""
        return Interpreter(self)

    def healthy(self) -> bool:
        """Always."""
        return True

    async def stop(self) -> None:
        """Nothing to end."""


class SqlQuery:
    """Runs a query on a database that the tool is given as a script."""

    name = "sql_query"
    description = "Runs a query."
    needs = ""
    kind: ToolKind = "pure"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        code: str

    def __init__(self, *, script: str) -> None:
        self.script = script
        self.ran = 0

    async def run(self, args: Args, context: Any) -> ToolResult:
        """Columns, then rows, in the order in which the database gives them."""
        self.ran += 1
        database = sqlite3.connect(":memory:")
        try:
            database.executescript(self.script)
            cursor = database.execute(args.code)
            rows = [list(row) for row in cursor]
            names = [column[0] for column in cursor.description]
        finally:
            database.close()
        text = "\n".join(" | ".join(map(str, row)) for row in [names, *rows])
        return ToolResult(text, {"columns": names, "rows": rows})


class Search:
    """A search server that is down for the first request."""

    name = "search"
    description = "Searches."
    needs = ""
    kind: ToolKind = "external"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        query: str
        topk: int = 1

    def __init__(self, *, down: int = 0) -> None:
        self.down = down
        self.asked = 0

    async def run(self, args: Args, context: Any) -> ToolResult:
        """Answer, or time out."""
        self.asked += 1
        if self.asked <= self.down:
            raise RuntimeFailure("http", "the server timed out")
        return ToolResult(f"{args.topk} hits for {args.query}")


def play(
    calls: Sequence[tuple[str, dict[str, Any]]],
    *,
    url: str,
    mode: str = "auto",
    task: Task = TASK,
    **options: Any,
) -> ToolEnv:
    """Play one call a turn; the environment is left open."""
    settings: dict[str, Any] = {"tools": ["python_session", "python", "submit"]}
    settings = {**settings, "sandbox": InProcess(), **options}
    env = ToolEnv(tasks=[task], cache=url, replay=mode, **settings)  # type: ignore[arg-type]
    env.reset(options={"task_id": task.id, "sandbox_seed": 7})
    for name, arguments in calls:
        env.act([ToolCall(name, arguments)])
    return env


def texts(env: ToolEnv) -> list[str]:
    """What the agent read, one for each call."""
    return [step.results[0].text for step in env.episode.trajectory.steps if step.results]


def code(*lines: str, tool: str = "python_session") -> list[tuple[str, dict[str, Any]]]:
    """One call for each line."""
    return [(tool, {"code": line}) for line in lines]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A cache's place."""
    return f"sqlite:///{tmp_path / 'cache.db'}"


def test_R01_a_transient_failure_is_not_kept(url: str) -> None:
    """R01: the call after a time-out of the server gets the real result, and that one is kept."""
    search = Search(down=1)
    options: dict[str, Any] = {"tools": [search, "submit"], "share_external": True}
    lyon = [("search", {"query": "lyon"})]
    failed = play(lyon, url=url, **options)
    assert failed.episode.trajectory.steps[-1].failure == "http"
    assert texts(play(lyon, url=url, **options)) == ["1 hits for lyon"]
    assert texts(play(lyon, url=url, **options)) == ["1 hits for lyon"]
    assert search.asked == 2


def test_R01_model_errors_are_facts_and_time_outs_are_not(url: str) -> None:
    """R01: 1/0 is kept; sleep(99) runs again, under another limit too; host OOM is never kept."""
    raised = play(code("1/0", tool="python"), url=url)
    again = play(code("1/0", tool="python"), url=url, sandbox=(runtime := InProcess()))
    assert texts(raised) == texts(again)
    assert runtime.ran == []
    for limit, kind in ((1, "timeout"), (1, "timeout"), (100, "raised")):
        runtime = InProcess()
        env = play(
            code("sleep(99)", tool="python"),
            url=url,
            sandbox=runtime,
            tool_options={"python": {"timeout_s": limit}},
        )
        error = env.episode.trajectory.steps[0].results[0].error
        assert error is not None
        assert error.kind == kind
        assert runtime.ran == ["sleep(99)"]
    for _ in range(2):
        env = play(code("oom", tool="python"), url=url, sandbox=(runtime := InProcess()))
        assert env.episode.trajectory.steps[0].failure == "host_oom"
        assert runtime.ran


@pytest.mark.parametrize(
    "lines",
    [
        ("n = 0", "n += 1; print(n)", "n += 1; print(n)"),
        ("import random; print(random.random())",) * 2,
    ],
)
def test_R02_equal_calls_replay_in_their_order(url: str, lines: Sequence[str]) -> None:
    """R02: two equal calls of one episode replay as the two results that they gave."""
    recorded = play(code(*lines), url=url, mode="record")
    replayed = play(code(*lines), url=url, mode="replay", sandbox=(runtime := InProcess()))
    assert texts(replayed) == texts(recorded)
    assert texts(recorded)[-1] != texts(recorded)[-2]
    assert runtime.started == 0


def test_R02_another_history_is_another_state(url: str) -> None:
    """R02: the episode that began with n = 5 never hits the recordings of n = 0; a miss is loud."""
    play(code("n = 0", "n += 1; print(n)", "n += 1; print(n)"), url=url, mode="record")
    five = code("n = 5", "n += 1; print(n)", "n += 1; print(n)")
    assert texts(play(five, url=url)) == ["", "6", "7"]
    assert texts(play(five, url=url, mode="replay")) == ["", "6", "7"]
    with pytest.raises(CacheMissError, match="nearest recording"):
        play(code("n = 9"), url=url, mode="replay")


def test_R02_equal_queries_are_one_recording(url: str) -> None:
    """R02: SELECT 1 twice is served twice."""
    query = SqlQuery(script="")
    calls = code("SELECT 1", "SELECT 1", tool="sql_query")
    assert texts(play(calls, url=url, tools=[query, "submit"])) == ["1\n1"] * 2
    assert query.ran == 1


TABLE = "CREATE TABLE emp(id INTEGER); INSERT INTO emp VALUES (1);"
COUNT = code("SELECT count(*) FROM emp", tool="sql_query")
ONE = code("print(1)", tool="python")


@pytest.mark.parametrize(
    ("calls", "one", "two"),
    [
        (COUNT, {"tools": [SqlQuery(script=TABLE)]}, {"tools": [SqlQuery(script=TABLE + "-- b")]}),
        (
            COUNT,
            {"tools": [SqlQuery(script=TABLE)]},
            {"tools": [SqlQuery(script=TABLE + "INSERT INTO emp VALUES (2);")]},
        ),
        (
            ONE,
            {"tool_options": {"python": {"timeout_s": 1}}},
            {"tool_options": {"python": {"timeout_s": 10}}},
        ),
        (ONE, {"sandbox": InProcess("python:3.11")}, {"sandbox": InProcess("python:3.12")}),
        (ONE, {}, {"task": Task(id="t", prompt="?", answer="1", files={"a.csv": "1"})}),
    ],
)
def test_R03_what_differs_is_a_miss(
    url: str, calls: Any, one: dict[str, Any], two: dict[str, Any]
) -> None:
    """R03: another database, revision, limit, image or file is another state."""
    play(calls, url=url, **one)
    with pytest.raises(CacheMissError):
        play(calls, url=url, mode="replay", **two)
    assert play(calls, url=url, mode="replay", **one).stats["cache_hits"] == 1
    assert play(calls, url=url, **two).stats["cache_misses"] == 1


def test_R03_arguments_tell_calls_apart_and_their_order_does_not(url: str) -> None:
    """R03: topk 1 and 3 differ, so do two tools with one text; key order and composition count
    as the tool sees them.
    """
    options: dict[str, Any] = {
        "tools": [Search(), SqlQuery(script=TABLE), "python", "submit"],
        "share_external": True,
    }
    play([("search", {"query": "lyon", "topk": 1})], url=url, **options)
    for calls, hits in (
        ([("search", {"query": "lyon", "topk": 3})], 0),
        ([("search", {"topk": 1, "query": "lyon"})], 1),
        ([("search", {"query": "lyon"})], 1),
        ([("search", {"query": "caf\u00e9"})], 0),
        ([("search", {"query": "cafe\u0301"})], 0),
        (code("1", tool="python"), 0),
        (code("SELECT 1", tool="python") + code("SELECT 1", tool="sql_query"), 0),
    ):
        assert play(calls, url=url, **options).stats["cache_hits"] == hits


def test_R05_records_are_byte_exact(url: str) -> None:
    """R05: separators that splitlines() cuts at, astral characters and NUL come back exactly."""
    shown = "left\u2028right\u0085end \U0001f600 \x00"
    env = play(code(f"print({shown!r})"), url=url, mode="record")
    recorded = env.episode.trajectory
    assert recorded.steps[0].results[0].data["stdout"] == shown + "\n"
    line = encode_trajectory(recorded)
    assert len(line.decode().splitlines()) == 1
    assert decode_trajectory(line) == recorded
    env.finish("stop")
    assert replay_trajectory(env.episode.trajectory).differences == ()
    served = play(code(f"print({shown!r})"), url=url, mode="replay")
    assert encode_trajectory(served.episode.trajectory) == line


def test_R05_many_writers_and_readers_share_a_file(url: str) -> None:
    """R05: 12 writers with 60 puts each and 4 readers: all stored once, nobody raises."""
    errors: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            with ReplayCache(url) as cache:
                while not stop.is_set():
                    cache.get(make_key(3))
        except BaseException as error:  # a thread's error must reach the test
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    run_writers(url, writers=12, puts=60)
    stop.set()
    for reader in readers:
        reader.join(60)
    assert errors == []
    with ReplayCache(url) as cache:
        assert cache.stats().entries == 12 * 60 + 60
        assert cache.get(make_key("11-59")) is not None
        assert result("11-59").text == "11-59"


EMP = (
    "CREATE TABLE emp(id INTEGER,name TEXT,city TEXT,pay REAL,code TEXT,boss INTEGER);"
    "INSERT INTO emp VALUES (1,'Ann','Oslo',10.0,'00420',NULL),(2,'Bob','Bern',20.0,'7',1),"
    "(3,'Cid','Bern',20.0,'42',1);"
)


def observe_emp() -> bytes:
    """The record of the two queries of R06."""
    queries = ("SELECT city, name FROM emp ORDER BY pay DESC, id", "SELECT city FROM emp")
    with tempfile.TemporaryDirectory() as folder:
        env = play(
            code(*queries, tool="sql_query"),
            url=f"sqlite:///{folder}/c.db",
            tools=[SqlQuery(script=EMP), "submit"],
        )
        run(env.episode.finish("stop"))
        line = encode_trajectory(env.episode.trajectory)
        env.close()
    return line


def test_R06_rows_keep_their_order_under_every_hash_seed() -> None:
    """R06: what the tool shows passes through cache and record in its order, to the same bytes."""
    script = (
        "import sys, tests.cases.test_replay_cache as t; sys.stdout.buffer.write(t.observe_emp())"
    )
    lines = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(__file__).parent.parent.parent,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(lines) == 1
    steps = decode_trajectory(lines.pop()).steps
    assert "city | name\nBern | Bob\nBern | Cid\nOslo | Ann" in steps[0].observation
    assert steps[1].results[0].data["rows"] == [["Oslo"], ["Bern"], ["Bern"]]
