"""The cases of the kind ``sql_comparison``: results compared, and statements on a real database.

S01 to S06 are decided by ``toolenvs.grading.sql``, S07 to S11 by ``toolenvs.database``; the tools,
the sandbox and PostgreSQL are tested with them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.grading.databases import EMP, M
from toolenvs.database import Answerer, SqliteEngine
from toolenvs.grading.sql import SqlPolicy, Trial, Verdict, grade, read_outline
from toolenvs.grading.sql_fitness import examine_gold
from toolenvs.rewards.execution_match import ExecutionMatch
from toolenvs.types import Database, Step, Task, ToolCall, ToolError, ToolResult, Trajectory


class Place:
    """A database file, asked as the sandbox asks it."""

    def __init__(self, folder: Path, setup: str) -> None:
        self.path = folder / "case.sqlite"
        connection = sqlite3.connect(self.path)
        connection.executescript(setup)
        connection.close()
        self.answerer = Answerer({"sqlite": SqliteEngine(str(folder))})

    def ask(self, sql: str, *, timeout_s: float = 10.0, max_rows: int = 1000) -> dict[str, Any]:
        """The answer to a query."""
        database = {"engine": "sqlite", "place": "case.sqlite"}
        request = {"op": "query", "database": database, "sql": sql, "max_rows": max_rows}
        request |= {"max_bytes": 1 << 20, "timeout_s": timeout_s}
        answer: dict[str, Any] = json.loads(self.answerer.answer(json.dumps(request)))
        return answer

    def judge(self, gold: str, pred: str, **policy: Any) -> Verdict:
        """The verdict on a query, by the rows of this database."""
        probe = read_outline(gold).probe
        trial = Trial(
            gold=self.ask(gold), submitted=self.ask(pred), probe=self.ask(probe) if probe else None
        )
        return grade(gold, trial, policy=SqlPolicy(**policy))

    def digest(self) -> str:
        """The content of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


@pytest.fixture
def emp(tmp_path: Path) -> Iterator[Place]:
    """The table ``emp`` of the cases."""
    place = Place(tmp_path, EMP)
    yield place
    place.answerer.close()


@pytest.fixture
def m(tmp_path: Path) -> Iterator[Place]:
    """The table ``m`` of S03."""
    place = Place(tmp_path, M)
    yield place
    place.answerer.close()


@pytest.mark.parametrize(
    ("gold", "pred", "correct"),
    [
        pytest.param("SELECT city FROM emp", "SELECT DISTINCT city FROM emp", False, id="a"),
        pytest.param(
            "SELECT name FROM emp ORDER BY name DESC",
            "SELECT name FROM emp ORDER BY id",
            False,
            id="b",
        ),
        pytest.param(
            "SELECT name FROM emp", "SELECT name FROM emp ORDER BY name DESC", True, id="c"
        ),
        pytest.param(
            "SELECT DISTINCT city FROM emp", "SELECT city FROM emp GROUP BY city", True, id="d"
        ),
    ],
)
def test_s01_bags_and_orders(emp: Place, gold: str, pred: str, correct: bool) -> None:
    """S01: doubles count, and order does where the gold fixes it at top level."""
    verdict = emp.judge(gold, pred)
    assert (verdict.correct, verdict.gradable) == (correct, True)


@pytest.mark.parametrize(
    ("gold", "pred", "correct", "rule"),
    [
        pytest.param(
            "SELECT who, home FROM m",
            "SELECT 'x', 2 UNION ALL SELECT 'y', 1",
            False,
            "rows",
            id="a",
        ),
        pytest.param("SELECT who FROM m", "SELECT * FROM m", False, "column_count", id="b"),
        pytest.param(
            "SELECT home, away FROM m",
            "SELECT home, away FROM m WHERE who='x' UNION ALL "
            "SELECT away, home FROM m WHERE who='y'",
            False,
            "rows",
            id="c",
        ),
        pytest.param("SELECT who, home FROM m", "SELECT home, who FROM m", True, "bag", id="d"),
    ],
)
def test_s03_one_permutation_of_whole_columns(
    m: Place, gold: str, pred: str, correct: bool, rule: str
) -> None:
    """S03: values stay in their rows, no further column is allowed; d by the stated policy."""
    verdict = m.judge(gold, pred)
    assert (verdict.correct, verdict.rule) == (correct, rule)
    assert not m.judge(
        "SELECT who, home FROM m", "SELECT home, who FROM m", columns="exact"
    ).correct


@pytest.mark.parametrize(
    "pred",
    [
        "SELECT 1 WHERE 0",
        "SELECT city FROM emp WHERE name='zzz'",
        "SELECT name FROM emp WHERE pay > 999",
    ],
)
def test_s04_empty_against_empty_is_no_match(emp: Place, pred: str) -> None:
    """S04: the loader tells, and at step time it is degenerate and masked, never paid."""
    gold = "SELECT name FROM emp WHERE pay > 999"
    assert examine_gold(gold, emp.ask).unusable == "the gold returns no rows"
    verdict = emp.judge(gold, pred)
    assert (verdict.correct, verdict.gradable, verdict.rule) == (False, False, "both_empty")
    task = Task(id="s04", prompt="", answer=gold, family="sql", database=Database(name="emp"))
    submitted = ToolResult("", data={"sql": pred, "answer": pred}, terminal=True)
    step = Step(action=pred, results=(submitted,), terminated=True, end_reason="submit")
    reward = ExecutionMatch()
    asked = reward.needs(task, Trajectory(task=task, steps=(step,)))
    evidence = tuple((call, found(emp, call)) for call in asked)
    step = msgspec.structs.replace(step, evidence=evidence)
    score = reward.score(task, Trajectory(task=task, steps=(step,)))
    assert score.value == 0.0
    assert score.masked or score.reason.startswith("constant")


def found(place: Place, call: ToolCall) -> ToolResult:
    """What the referee finds."""
    answer = place.ask(call.arguments["sql"])
    error = answer.get("error")
    if error:
        return ToolResult("", error=ToolError(error["kind"], error["message"]))
    return ToolResult("", data=answer)


@pytest.mark.parametrize(
    ("gold", "pred", "correct"),
    [
        pytest.param("SELECT NULL", "SELECT 0", False, id="a"),
        pytest.param("SELECT NULL", "SELECT ''", False, id="b"),
        pytest.param("SELECT 1", "SELECT 1.0", True, id="c"),
        pytest.param("SELECT 0.3", "SELECT 0.1+0.2", True, id="d"),
        pytest.param("SELECT 0.004", "SELECT 0.009", False, id="e"),
        pytest.param("SELECT code FROM emp WHERE id=1", "SELECT 420", False, id="f"),
        pytest.param("SELECT 1", "SELECT '1'", False, id="g"),
        pytest.param(
            "SELECT avg(pay) FROM emp", "SELECT round(avg(pay),2) FROM emp", False, id="h"
        ),
    ],
)
def test_s05_values_by_type(emp: Place, gold: str, pred: str, correct: bool) -> None:
    """S05: NULL, texts, numbers and small rates are what they are."""
    verdict = emp.judge(gold, pred)
    assert (verdict.correct, verdict.gradable) == (correct, True)


def test_s05_leniency_is_declared(emp: Place) -> None:
    """S05 g, h: a task may say that texts write numbers, or how many decimals count."""
    assert emp.judge("SELECT 1", "SELECT '1'", text_numbers=True).correct
    average = "SELECT round(avg(pay),2) FROM emp"
    assert emp.judge("SELECT avg(pay) FROM emp", average, decimals=2).correct
    code = "SELECT code FROM emp WHERE id=1"
    assert not emp.judge(code, "SELECT 420", text_numbers=True).correct


@pytest.mark.parametrize(
    ("pred", "correct"),
    [
        pytest.param("SELECT name FROM emp ORDER BY pay DESC, id DESC LIMIT 1", True, id="1"),
        pytest.param("SELECT name FROM emp WHERE pay=(SELECT max(pay) FROM emp)", False, id="2"),
        pytest.param("SELECT name FROM emp ORDER BY pay LIMIT 1", False, id="3"),
    ],
)
def test_s06_a_tie_at_the_limit(emp: Place, pred: str, correct: bool) -> None:
    """S06: the loader tells of the tie, and all results that the gold may have are right."""
    gold = "SELECT name FROM emp ORDER BY pay DESC LIMIT 1"
    (note,) = examine_gold(gold, emp.ask).notes
    assert note == "2 rows tie at the LIMIT for 1; any of them is right"
    verdict = emp.judge(gold, pred)
    assert (verdict.correct, verdict.gradable) == (correct, True)
    assert verdict.rule == ("limit_tie" if correct else verdict.rule)
    all_tied = emp.judge(gold, pred, ties="all").correct
    assert all_tied is (correct or "max(pay)" in pred)  # the second by the policy ``ties``


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE emp",
        "WITH x AS (SELECT 2 AS i) DELETE FROM emp WHERE id IN (SELECT i FROM x)",
        "UPDATE emp SET pay=0",
        "COMMIT",
        "PRAGMA user_version=7",
    ],
)
def test_s07_nothing_is_written(emp: Place, sql: str) -> None:
    """S07: the agent's error, ``refused``; the file and the next episode are unharmed."""
    before = emp.digest()
    assert emp.ask(sql)["error"]["kind"] == "refused"
    assert emp.ask("SELECT count(*) FROM emp")["rows"] == [[3]]
    emp.answerer.close()
    assert emp.digest() == before
    assert emp.ask("SELECT count(*) FROM emp")["rows"] == [[3]]


ENDLESS = [
    "WITH RECURSIVE tick(t) AS (VALUES(0) UNION ALL SELECT t+2 FROM tick) SELECT max(t) FROM tick",
    "SELECT count(*) FROM "
    + ",".join(f"emp e{number}" for number in range(22))
    + " WHERE e0.id+e21.id<0",
]


@pytest.mark.parametrize("sql", ENDLESS, ids=["1", "2"])
def test_s09_what_never_yields_stops(emp: Place, sql: str) -> None:
    """S09 1, 2: a time-out of the statement alone; meanwhile others in the process are answered."""
    answers: list[dict[str, Any]] = []
    other = Answerer({"sqlite": SqliteEngine(str(emp.path.parent))})
    request = {
        "op": "query",
        "database": {"engine": "sqlite", "place": "case.sqlite"},
        "sql": "SELECT 1",
    }

    def work() -> None:
        while not answers:
            other.answer(json.dumps(request))
            count[0] += 1
            time.sleep(0.01)
        other.close()

    count = [0]
    thread = threading.Thread(target=work)
    thread.start()
    answers.append(emp.ask(sql, timeout_s=1))
    thread.join()
    assert answers[0]["error"]["kind"] == "timeout"
    assert count[0] >= 5


def test_s09_recursion_stays_allowed(emp: Place) -> None:
    """S09 3: a recursive query that ends gives its rows."""
    sql = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n<5) "
    assert emp.ask(f"{sql}SELECT sum(n) FROM r", timeout_s=1)["rows"] == [[15]]


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("-- best paid\nSELECT name FROM emp WHERE id=2", id="a"),
        pytest.param("```sql\nSELECT name FROM emp WHERE id=2;\n```", id="b"),
        pytest.param("SELECT name FROM emp WHERE id=2 AND city <> 'distinct -- round(1)'", id="c"),
        pytest.param("SELECT name FROM emp WHERE id=2; -- done", id="d"),
    ],
)
def test_s10_statements_run_as_they_are_written(emp: Place, sql: str) -> None:
    """S10 a to d: comments, fences, quotes and a last semicolon change nothing."""
    assert emp.ask(sql)["rows"] == [["Bob"]]
    assert emp.judge("SELECT name FROM emp WHERE pay = 20 AND code = '7'", sql).correct


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param("SELECT 1; SELECT name FROM emp WHERE id=2", "One statement per call", id="e"),
        pytest.param("-- nothing here", "empty", id="f"),
        pytest.param("", "empty", id="g"),
    ],
)
def test_s10_several_or_no_statements_are_an_error(emp: Place, sql: str, message: str) -> None:
    """S10 e to g: a clear error of the call, no empty result and no success."""
    error = emp.ask(sql)["error"]
    assert error["kind"] == "bad_arguments"
    assert message in error["message"]
    assert not emp.judge("SELECT name FROM emp WHERE pay > 999", sql).correct


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param('SELECT "salery" FROM emp', id="1"),
        pytest.param("SELECT count(*) FROM emp WHERE \"nmae\"='nmae'", id="2"),
    ],
)
def test_s11_a_misspelt_name_is_an_error(emp: Place, sql: str) -> None:
    """S11 1, 2: what stands in double quotes is a name, and this one names nothing."""
    error = emp.ask(sql)["error"]
    assert error["kind"] == "raised"
    assert "no such column" in error["message"]


def test_s11_a_quoted_name_is_a_name(emp: Place) -> None:
    """S11 3: names may be quoted."""
    assert emp.ask('SELECT "name" FROM emp WHERE id=1')["rows"] == [["Ann"]]
