"""What a small SELECT costs as a call of an episode, beside the same query run bare."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from toolenvs import formats
from toolenvs.bench.interleave import Progress, Timed, clocked, interleave
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, median_interval, paired_ratios, percentile
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure
from toolenvs.runtimes.postgres import Postgres
from toolenvs.types import Database, Task, ToolCall
from toolenvs.vector import ToolVectorEnv

QUERY = "SELECT name FROM person WHERE id = 500"
"""A small SELECT: one row by the primary key of a table of 1,000."""

CALLS = 20
"""Calls of a round: its value is their median."""

EPISODES = 32
"""Episodes that read one file at once."""

_VALUES = ", ".join(f"({n}, 'name {n}')" for n in range(1000))
_SCRIPT = f"""
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO person VALUES {_VALUES};
"""  # noqa: S608 - of numbers of our own
_NAME = "name 500"


class SqlRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way over ``n`` rounds, in milliseconds a query."""

    way: str
    payload: str
    n: int
    p50_ms: float
    p95_ms: float
    least_ms: float


class SqlReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_sql`` found.

    Attributes:
        ratios: ``"sqlite step / sqlite bare"``: median and interval of the ratios in each round.
        added_ms: by engine, how much longer a step takes than the bare query: the median and
            interval of the differences in each round.
        at_once: steps of all episodes on one file, and how many of them failed.
        skipped: what was not measured, and why.
    """

    rows: tuple[SqlRow, ...]
    ratios: dict[str, Interval]
    added_ms: dict[str, Interval]
    at_once: dict[str, int]
    skipped: dict[str, str]
    setting: Setting


def bench_sql(
    sandbox: str = "docker",
    *,
    repeats: int = 50,
    warmup: int = 3,
    progress: Progress | None = None,
) -> SqlReport:
    """Time a query as a step and bare, on SQLite and on PostgreSQL where a server answers.

    The bare query is prepared, run and fetched on a connection of this process that stays open.

    Args:
        sandbox: where SQLite runs: ``"docker"`` or ``"local"``.
        repeats: rounds that count.
        warmup: rounds before them that do not.
        progress: called at the end of each round.

    Raises:
        RuntimeFailure: The sandbox cannot be started, or a query gave something wrong.
    """
    skipped: dict[str, str] = {}
    with TemporaryDirectory(prefix="toolenvs-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        file = _sqlite_file(folder)
        data = {"sandbox:sql": {"data": {"bench": str(folder)}}}
        bare = stack.enter_context(closing(sqlite3.connect(file)))
        ways = {
            "sqlite bare": _timed(lambda: bare.execute(QUERY).fetchall()[0][0]),
            "sqlite step": _timed(_step(stack, "sqlite", sandbox=sandbox, runtimes=data)),
        }
        try:
            ways |= _postgres_ways(stack, folder)
        except RuntimeFailure as failure:
            skipped["postgres"] = str(failure)
        seconds = interleave(ways, repeats=repeats, warmup=warmup, progress=progress)
        at_once = _at_once(sandbox, data)
    engines = [name.split()[0] for name in ways if name.endswith("bare")]
    return SqlReport(
        rows=tuple(_row(way, values) for way, values in seconds.items()),
        ratios={
            f"{one} step / {one} bare": median_interval(
                paired_ratios(seconds[f"{one} step"], seconds[f"{one} bare"])
            )
            for one in engines
        },
        added_ms={
            one: median_interval(
                [
                    (step - alone) * 1e3
                    for step, alone in zip(
                        seconds[f"{one} step"], seconds[f"{one} bare"], strict=True
                    )
                ]
            )
            for one in engines
        },
        at_once=at_once,
        skipped=skipped,
        setting=look_around(sandbox),
    )


def _postgres_ways(stack: ExitStack, folder: Path) -> dict[str, Timed]:
    script = folder / "bench.sql"
    script.write_text(_SCRIPT)
    runtime = Postgres(templates={"bench": script})
    runtime.fingerprint()  # so that a missing server shows before an episode begins
    from sqlalchemy import create_engine

    from toolenvs.postgres import Server

    server = stack.enter_context(closing(Server(runtime.url)))
    template = server.ensure_template(script)
    url = server.address.url.set(database=template)
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    stack.callback(engine.dispose)
    connection = stack.enter_context(engine.connect())
    runtimes = {"service:postgres": runtime}
    return {
        "postgres bare": _timed(lambda: connection.exec_driver_sql(QUERY).all()[0][0]),
        "postgres step": _timed(_step(stack, "postgres", sandbox="local", runtimes=runtimes)),
    }


def _step(
    stack: ExitStack, engine: Any, *, sandbox: str, runtimes: Mapping[str, Any]
) -> Callable[[], str]:
    env = ToolEnv("sql", **_settings(engine, sandbox, runtimes))
    stack.callback(env.close)
    env.reset(seed=0)

    def query() -> str:
        text = env.act([ToolCall("sql_query", {"sql": QUERY})])[0]
        return _NAME if _NAME in text else text

    return query


def _settings(engine: Any, sandbox: str, runtimes: Mapping[str, Any]) -> dict[str, Any]:
    place = "bench/bench.sqlite" if engine == "sqlite" else "bench"
    database = Database(name="bench", engine=engine, place=place, digest="bench")
    return {
        "tasks": [
            Task(id="bench", prompt="Who?", family="sql", answer=QUERY, database=database),
        ],
        "sandbox": sandbox,
        "runtimes": runtimes,
        "rewards": "outcome",
        "max_turns": 1_000_000,
    }


def _at_once(sandbox: str, runtimes: Mapping[str, Any]) -> dict[str, int]:
    """Let many episodes query one file at the same time."""
    message = formats.make("hermes").compose([ToolCall("sql_query", {"sql": QUERY})])
    failed = steps = 0
    envs = ToolVectorEnv(
        EPISODES, family="sql", autoreset_mode="Disabled", **_settings("sqlite", sandbox, runtimes)
    )
    try:
        envs.reset(seed=0)
        for _ in range(CALLS):
            seen = envs.step([message] * EPISODES)[0]
            steps += len(seen)
            failed += sum(_NAME not in text for text in seen)
    finally:
        envs.close()
    return {"episodes": EPISODES, "steps": steps, "failed": failed}


def _timed(query: Callable[[], str]) -> Timed:
    def timed() -> float:
        took = []
        for _ in range(CALLS):
            found = []
            took.append(clocked(lambda: found.append(query())))  # noqa: B023 - called at once
            if found != [_NAME]:
                raise RuntimeFailure("bench", f"a query gave {found!r:.200}, not {_NAME!r}.")
        return percentile(took, 50)

    return timed


def _sqlite_file(folder: Path) -> Path:
    file = folder / "bench.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(f"BEGIN; {_SCRIPT} COMMIT;")
    file.chmod(0o644)
    return file


def _row(way: str, seconds: list[float]) -> SqlRow:
    return SqlRow(
        way=way,
        payload="select",
        n=len(seconds),
        p50_ms=percentile(seconds, 50) * 1e3,
        p95_ms=percentile(seconds, 95) * 1e3,
        least_ms=min(seconds) * 1e3,
    )
