"""The family ``sql`` as an environment: whose fault what is, and what may be served where."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.tools.sql_sandbox import EMP, SqlSandbox
from toolenvs.cache import ReplayCache
from toolenvs.env import ToolEnv
from toolenvs.protocols import Sandbox
from toolenvs.types import Database, Task, ToolCall

GOLD = "SELECT name FROM emp WHERE pay > 15"


class Files:
    """A runtime of databases in this process; what it is called decides its fingerprint."""

    name = "files"
    capacity = 8

    def __init__(self, folder: Path, called: str = "one") -> None:
        self.folder = folder
        self.called = called
        self.asked: list[tuple[str, ...]] = []

    def fingerprint(self) -> str:
        return self.called

    async def start(self) -> Files:
        return self

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        self.asked.append(tuple(data))
        return SqlSandbox(self.folder)

    def healthy(self) -> bool:
        return True

    async def stop(self) -> None:
        """Nothing is left."""


def task(folder: Path, **database: Any) -> Task:
    """Who earns more than 15? On a file of its own."""
    file = folder / "emp.sqlite"
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(EMP)
    where = Database(name="emp", place="emp.sqlite", digest="1", **database)
    return Task(id="t", prompt="Who?", answer=GOLD, family="sql", database=where)


def submitted(env: ToolEnv, sql: str) -> tuple[float, dict[str, Any]]:
    """Reward and info of an episode that only submits."""
    env.reset(seed=0)
    _, reward, _, _, info = env.act([ToolCall("submit_sql", {"sql": sql})])
    return reward, info


@pytest.mark.parametrize(
    ("sql", "reward"),
    [
        (GOLD, 1.0),
        ("SELECT name FROM emp WHERE pay > 5", 0.0),
        (f"{GOLD}; SELECT 1", 0.0),
        (f"{GOLD} -- \0", 0.0),
        ("", 0.0),
        ("not SQL", 0.0),
        ("DROP TABLE emp", 0.0),
        ("SELECT zeroblob(1000000000) FROM emp", 0.0),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c, emp", 0.0),
    ],
)
def test_whatever_is_submitted_is_scored(tmp_path: Path, sql: str, reward: float) -> None:
    """No statement of an agent's is a machine's fault: it could leave the mean when in doubt."""
    env = ToolEnv(
        "sql",
        tasks=[task(tmp_path)],
        sandbox=Files(tmp_path),
        rewards="outcome",
        tool_options={"sql_rows": {"timeout_s": 0.3}},
    )
    paid, info = submitted(env, sql)
    assert (paid, info["failure"], info["reward_masked"]["answer"]) == (reward, "", False)
    env.close()


def test_evidence_is_served_on_its_own_runtime_only(tmp_path: Path) -> None:
    """Also where no tool of the agent's needs that runtime."""
    cache = f"sqlite:///{tmp_path}/cache.db"
    hits: list[tuple[float, float]] = []
    for called in ("one", "one", "other"):
        env = ToolEnv(
            "sql",
            tasks=[task(tmp_path)],
            tools=["submit_sql"],
            sandbox=Files(tmp_path, called),
            replay="auto",
            cache=cache,
        )
        assert submitted(env, GOLD)[0] > 0
        assert list(env.episode.trajectory.settings["runtimes"]) == ["sandbox:sql"]
        hits.append((env.stats["cache_hits"], env.stats["cache_misses"]))
        env.close()
    first, again, elsewhere = hits
    assert list(again) == [first[1], 0.0]
    assert elsewhere == first


def test_the_referee_alone_reads_what_is_only_judged_on(tmp_path: Path) -> None:
    """The agent's sandbox gets its task's file, the referee's the instances too."""
    with closing(sqlite3.connect(tmp_path / "more.sqlite")) as connection:
        connection.executescript(EMP)
    runtime = Files(tmp_path)
    env = ToolEnv("sql", tasks=[task(tmp_path, instances=("more.sqlite",))], sandbox=runtime)
    env.reset(seed=0)
    env.act([ToolCall("sql_schema", {})])
    env.act([ToolCall("submit_sql", {"sql": GOLD})])
    assert sorted(set(runtime.asked)) == [("emp.sqlite",), ("emp.sqlite", "more.sqlite")]
    env.close()


@pytest.mark.parametrize("named", ["content", "version 1"])
def test_nothing_is_recorded_on_another_database_than_the_tasks(tmp_path: Path, named: str) -> None:
    """A file that changes after the reset is a failure, not a result under the old digest."""
    (tmp_path / "d").mkdir()
    first = task(tmp_path / "d")
    assert first.database is not None
    file = tmp_path / "d" / "emp.sqlite"
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if named == "content" else named
    where = msgspec.structs.replace(first.database, place="d/emp.sqlite", digest=digest)
    runtime = Files(tmp_path)
    runtime.data = {"d": str(tmp_path / "d")}  # type: ignore[attr-defined]
    cache = ReplayCache(f"sqlite:///{tmp_path}/cache.db")
    env = ToolEnv(
        "sql",
        tasks=[msgspec.structs.replace(first, database=where)],
        sandbox=runtime,
        replay="auto",
        cache=cache,
    )
    look = [ToolCall("sql_query", {"sql": GOLD})]
    for failure, changes in (("", False), ("data", True)):
        env.reset(seed=0)
        if changes:
            with closing(sqlite3.connect(file)) as connection:
                connection.executescript("UPDATE emp SET pay = 1; DELETE FROM emp WHERE 1;")
        before = cache.stats().entries
        assert env.act(look)[4]["failure"] == failure
        assert (cache.stats().entries == before) == changes
        look = [ToolCall("sql_query", {"sql": f"{GOLD} AND 1"})]
    env.close()
    cache.close()


@pytest.mark.parametrize("name", ["hermes", "openai", "tags", "fenced"])
def test_an_answer_in_tags_hands_in_the_statement(name: str) -> None:
    """What every format's prompt offers is a call of ``submit_sql`` here."""
    env = ToolEnv("sql", format=name, sandbox="local")
    obs, info = env.reset(seed=0)
    assert "sql_schema" in obs
    gold = env.episode.trajectory.task.answer
    *_, terminated, _, info = env.step(f"<answer>{gold}</answer>")
    assert terminated
    assert info["calls"][0]["name"] == "submit_sql"
    assert info["reward_terms"]["answer"] > 0
    env.close()
