"""The submitted query's result decides, on every database, and nothing else does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.grading.databases import EMP, memory
from tests.rewards.sql_episodes import TASK, Referee, played, query, stopped, submit, task
from toolenvs.errors import UsageError
from toolenvs.grading.sql_policy import Engine
from toolenvs.rewards.execution_match import ExecutionMatch
from toolenvs.types import Score, Step, Task, ToolCall, ToolError, ToolResult, Trajectory


def outcome(*steps: Step, of: Task = TASK, referee: Referee | None = None) -> Score:
    """The score at the end."""
    return played(ExecutionMatch(), *steps, of=of, referee=referee)[-1]


@pytest.mark.parametrize(
    ("sql", "value", "reason"),
    [
        ("SELECT name FROM emp WHERE pay = 20", 1.0, "equal: bag"),
        ("SELECT name FROM emp WHERE city = 'Bern' ORDER BY id DESC;", 1.0, "equal: bag"),
        ("SELECT name FROM emp WHERE pay > 10 -- both of them", 1.0, "equal: bag"),
        ("SELECT name FROM emp", 0.0, "different: row_count"),
        ("SELECT code FROM emp WHERE pay = 20", 0.0, "different: rows"),
        ("SELECT name, pay FROM emp WHERE pay = 20", 0.0, "different: column_count"),
        ("SELECT nme FROM emp", 0.0, "failed: raised"),
        ("", 0.0, "no_answer: empty"),
        (" \n", 0.0, "no_answer: empty"),
        ("SELECT 'Bob' UNION ALL SELECT 'Cid'", 0.0, "constant"),
        ("SELECT 'Bob' FROM emp WHERE id > 1", 0.0, "constant"),
        ("SELECT name FROM emp WHERE pay = 20 --" + "x" * 30_000, 0.0, "too_large"),
    ],
)
def test_the_result_decides(sql: str, value: float, reason: str) -> None:
    """Equal is 1; different, failing, empty, written out or endless is 0, with the reason."""
    score = outcome(query("SELECT * FROM emp"), submit(sql))
    assert (score.value, score.masked) == (value, False)
    assert score.reason.startswith(reason)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 'Bob' AS x FROM emp WHERE id = 1 UNION SELECT name FROM emp WHERE id = 3", 0.0),
        ("SELECT column1 FROM (VALUES ('Bob'), ('Cid')), (SELECT 1 FROM emp LIMIT 1)", 0.0),
        ("WITH a(x) AS (VALUES ('Bob'), ('Cid')) SELECT x FROM a, emp WHERE id = 1", 0.0),
        ("SELECT name FROM emp WHERE name IN ('Bob', 'Cid')", 1.0),  # instances tell it, not this
    ],
)
def test_what_is_written_out_beside_a_table_is_not_paid(sql: str, value: float) -> None:
    """Every column must depend on a table."""
    assert outcome(submit(sql)).value == value


def test_what_the_gold_writes_out_may_be_written_out() -> None:
    """A value that the gold names itself is none that was looked up."""
    of = task("SELECT city, count(*) FROM emp WHERE city = 'Bern' GROUP BY city")
    assert outcome(submit("SELECT 'Bern', count(*) FROM emp WHERE city = 'Bern'"), of=of).value == 1
    assert outcome(submit("SELECT 'Bern', 2 FROM emp LIMIT 1"), of=of).value == 0
    assert outcome(submit("SELECT city, 2 FROM emp WHERE id = 2"), of=of).value == 0
    labelled = task("SELECT 'n', count(*) FROM emp")
    assert outcome(submit("SELECT char(110), count(*) FROM emp"), of=labelled).value == 1
    more = task("SELECT count(*) FROM emp", columns="subset")
    assert outcome(submit("SELECT 'employees', count(*) FROM emp"), of=more).value == 1


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 'Bob' FROM emp WHERE id = 2", "the submission's rows hold nothing of any table"),
        ("SELECT 'Bob', city FROM emp LIMIT 1", "a column of the submission is written out in it"),
        ("SELECT e.*, 'Bob', e.* FROM emp AS e LIMIT 1", "beside a *"),
    ],
)
def test_where_more_columns_are_allowed_those_written_out_are_not_paid(
    sql: str, reason: str
) -> None:
    """They may be labels, but the answer they are not; the reason says which it was."""
    of = task("SELECT name FROM emp WHERE id = 2", columns="subset")
    score = outcome(submit(sql), of=of)
    assert (score.value, score.masked) == (0.0, False)
    assert score.reason.startswith("constant: ")
    assert reason in score.reason
    assert outcome(submit("SELECT 'it is', name FROM emp WHERE id = 2"), of=of).value == 1.0


def test_a_constant_alternative_opens_no_other() -> None:
    """It is met by its own value alone; one that asks for the clock is never met."""
    of = task("SELECT count(*) FROM emp", alternatives=["SELECT 99", "SELECT date('now')"])
    assert outcome(submit("SELECT 3"), of=of).value == 0.0
    assert outcome(submit("SELECT 99"), of=of).value == 1.0
    assert outcome(submit("SELECT date('now')"), of=of).value == 0.0
    assert outcome(submit("SELECT count(*) FROM emp"), of=of).value == 1.0


@pytest.mark.parametrize("word", ["date(", "char("])
def test_a_submission_that_hangs_the_parser_is_not_read(word: str) -> None:
    """It is 0 at once, and the shaping rewards take it for nothing."""
    sql = "SELECT 'Bob' FROM emp ORDER BY " + word * 23 + "1" + ")" * 23
    assert outcome(submit(sql)) == Score(
        0.0, "too_large: the submission nests too deeply to be read"
    )


def test_only_a_submission_is_run() -> None:
    """The referee is asked once, at the end, and not for what is wrong already."""
    referee = Referee()
    steps = [query("SELECT * FROM emp"), query("SELECT name FROM emp"), submit(TASK.answer)]
    scores = played(ExecutionMatch(), *steps, referee=referee)
    assert [score.value for score in scores] == [0.0, 0.0, 1.0]
    assert [call.arguments["sql"] for call in referee.asked] == [TASK.answer]
    for sql in ("", "SELECT 42", "x" * 30_000):
        assert outcome(submit(sql), referee=(idle := Referee())).value == 0.0
        assert idle.asked == []
    assert outcome(stopped(), referee=(idle := Referee())) == Score(
        0.0, "no submission (max_turns)"
    )
    assert idle.asked == []


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("SELECT nme FROM emp", "gold_not_gradable: gold_raised"),
        ("SELECT name FROM emp WHERE pay > 999", "gold_not_gradable: both_empty"),
    ],
)
def test_a_gold_that_measures_nothing_is_masked(gold: str, reason: str) -> None:
    """Neither an empty answer nor the gold's own text is paid."""
    score = outcome(submit("SELECT name FROM emp WHERE pay > 999"), of=task(gold))
    assert score == Score(0.0, reason, masked=True)
    unfit = msgspec.structs.replace(TASK, gradable=False)
    assert outcome(submit(TASK.answer), of=unfit).masked
    assert outcome(submit("7"), of=msgspec.structs.replace(TASK, database=None)).masked


@pytest.mark.parametrize(
    ("engine", "sql", "masked"),
    [
        ("postgres", "SELECT id FROM emp WHERE name = 'Bob'", True),
        ("postgres", "SELECT id FROM emp WHERE name = 'Ann'", False),
        ("sqlite", "SELECT id FROM emp WHERE name = 'Bob'", False),
    ],
)
def test_a_tie_inside_a_gold_that_no_loader_ran_punishes_nobody(
    engine: Engine, sql: str, masked: bool
) -> None:
    """Of PostgreSQL: what differs from such a gold may be as right as it."""
    gold = "SELECT id FROM emp WHERE name = (SELECT name FROM emp ORDER BY length(name) LIMIT 1)"
    of = task(gold)
    assert of.database is not None
    database = msgspec.structs.replace(of.database, engine=engine)
    score = outcome(submit(sql), of=msgspec.structs.replace(of, database=database))
    assert score.masked == masked
    assert score.value == (sql.endswith("'Ann'"))


def test_a_limit_by_a_key_that_cannot_be_seen_is_masked() -> None:
    """Whether its rows tie is not known, so neither is which answer is right."""
    gold = "SELECT DISTINCT city FROM emp ORDER BY pay LIMIT 1"
    score = outcome(submit("SELECT city FROM emp WHERE id = 2"), of=task(gold))
    assert (score.masked, score.reason) == (True, "gold_not_gradable: limit_tie_unknown")


def test_cut_results_are_not_guessed() -> None:
    """A gold that is cut is masked; a submission that is cut where the gold is not is longer."""

    class Cutting(Referee):
        """Keeps two rows."""

        def answer(self, call: ToolCall) -> ToolResult:
            result = super().answer(call)
            rows = result.data["rows"]
            return msgspec.structs.replace(
                result, data={**result.data, "rows": rows[:2], "cut": len(rows) > 2}
            )

    whole = outcome(submit("SELECT name FROM emp"), referee=Cutting())
    assert (whole.value, whole.masked, whole.reason) == (0.0, False, "different: cut")
    gold = outcome(submit(TASK.answer), of=task("SELECT name FROM emp"), referee=Cutting())
    assert (gold.masked, gold.reason) == (True, "gold_not_gradable: gold_cut")


OTHER = EMP.replace("'Bern',20.0,'7'", "'Rome',20.0,'7'").replace("(1,'Ann'", "(4,'Dan'")
NONE = EMP.replace("20.0", "30.0")


def test_right_on_every_database() -> None:
    """A condition that holds by chance is found out; an empty neighbour is a result."""
    of = task(instances=2)
    three = Referee(EMP, OTHER, NONE)
    assert outcome(submit(TASK.answer), of=of, referee=three).value == 1.0
    assert len(three.asked) == 3
    chance = outcome(submit("SELECT name FROM emp WHERE city = 'Bern'"), of=of, referee=three)
    assert (chance.value, chance.reason) == (0.0, "different: row_count@1")
    late = outcome(submit("SELECT name FROM emp WHERE pay > 10"), of=of, referee=three)
    assert late.reason == "different: row_count@2"
    broken = Referee(EMP, "CREATE TABLE t(a)", NONE)
    assert outcome(submit(TASK.answer), of=of, referee=broken).masked


def test_one_of_several_golds_suffices() -> None:
    """Alternatives are tried too; a constant is refused unless a gold is one."""
    of = task("SELECT count(*) FROM emp", alternatives=["SELECT name FROM emp WHERE id = 1"])
    assert outcome(submit("SELECT name FROM emp WHERE city = 'Oslo'"), of=of).value == 1.0
    assert outcome(submit("SELECT max(id) FROM emp"), of=of).value == 1.0
    assert outcome(submit("SELECT name FROM emp WHERE id = 2"), of=of).value == 0.0
    assert outcome(submit("SELECT 1.0"), of=task("SELECT 1")).value == 1.0


def test_ties_are_seen_through_the_probe() -> None:
    """Both who are paid best are right, the others are not: no coin flip, and it is said."""
    of = task("SELECT name FROM emp ORDER BY pay DESC LIMIT 1")
    for order in ("id", "id DESC"):
        sql = f"SELECT name FROM emp ORDER BY pay DESC, {order} LIMIT 1"
        assert outcome(submit(sql), of=of) == Score(1.0, "equal: limit_tie")
    assert outcome(submit("SELECT name FROM emp ORDER BY pay LIMIT 1"), of=of).value == 0.0
    ordered = task("SELECT name FROM emp ORDER BY pay DESC")
    sql = "SELECT name FROM emp ORDER BY pay DESC, id DESC"
    assert outcome(submit(sql), of=ordered) == Score(1.0, "equal: order")
    assert outcome(submit("SELECT name FROM emp"), of=ordered).reason == "different: order"


def test_no_probe_is_asked_for_where_order_never_counts() -> None:
    """Unless a LIMIT chooses: then ties still matter."""
    for gold, asked in (("", 2), (" LIMIT 2", 3)):
        of = task(f"SELECT name FROM emp ORDER BY pay{gold}", order="never")
        referee = Referee()
        outcome(submit(f"SELECT name FROM emp ORDER BY pay, id{gold}"), of=of, referee=referee)
        assert len(referee.asked) == asked


UPDATE = "UPDATE emp SET pay = 30 WHERE city = 'Bern'"
WRITABLE: dict[str, Any] = {"mode": "state"}


@pytest.mark.parametrize(
    ("steps", "value", "reason"),
    [
        ([submit(UPDATE)], 1.0, "equal: state"),
        ([submit("UPDATE emp SET pay = 30 WHERE id IN (2, 3)")], 1.0, "equal: state"),
        ([submit("UPDATE emp SET pay = 30 WHERE id = 2")], 0.0, "different: rows@emp"),
        ([submit("DELETE FROM emp")], 0.0, "different: row_count@emp"),
        ([submit("UPDATE emp SET pai = 30")], 0.0, "failed: raised"),
        ([submit("SELECT 1")], 0.0, "different: rows@emp"),
        ([submit("")], 0.0, "different: rows@emp"),
        ([query(UPDATE), submit(UPDATE)], 1.0, "equal: state"),
        ([query(UPDATE), submit("SELECT count(*) FROM emp")], 1.0, "equal: state"),
        ([query(UPDATE), submit("")], 1.0, "equal: state"),
        ([query("UPDATE emp SET pay = 0"), query(UPDATE), submit("")], 0.0, "different: rows@emp"),
        ([query("UPDATE emp SET pai = 0"), query(UPDATE), submit("")], 1.0, "equal: state"),
        ([query(UPDATE), stopped()], 0.0, "no submission (max_turns)"),
    ],
)
def test_changes_are_judged_by_what_they_leave(
    steps: list[Step], value: float, reason: str
) -> None:
    """The submission's changes count; without any, those that the episode's calls made."""
    score = outcome(*steps, of=task(UPDATE, **WRITABLE))
    assert score == Score(value, reason)


@pytest.mark.parametrize(
    ("calls", "submission", "value"),
    [
        (["BEGIN", UPDATE, "ROLLBACK"], "SELECT 1", 0.0),
        (["BEGIN", UPDATE], "SELECT 1", 0.0),
        (["BEGIN", UPDATE, "COMMIT"], "SELECT 1", 1.0),
        (["BEGIN", "DELETE FROM emp", "ROLLBACK", UPDATE], "SELECT 1", 1.0),
        (["BEGIN", UPDATE, "SAVEPOINT s", "DELETE FROM emp", "ROLLBACK TO s", "COMMIT"], "", 1.0),
        (
            [
                "CREATE TABLE h AS SELECT id FROM emp WHERE city = 'Bern'",
                "UPDATE emp SET pay = 30 WHERE id IN (SELECT id FROM h)",
                "DROP TABLE h",
            ],
            "SELECT count(*) FROM emp",
            1.0,
        ),
        ([UPDATE, "CREATE TABLE h AS SELECT id FROM emp"], "", 0.0),
        ([UPDATE], "EXPLAIN DELETE FROM emp", 1.0),
        ([UPDATE], "DROP TABLE emp", 0.0),  # stands for itself
        ([UPDATE], "SELECT replace(name, 'a', 'b') FROM emp", 1.0),
    ],
)
def test_all_that_the_calls_did_is_done_again(
    calls: list[str], submission: str, value: float
) -> None:
    """Transactions, helper tables and changes of the schema, not only changes of rows."""
    live = memory(EMP)
    steps = [query(sql, run=live) for sql in calls]
    assert all(step.results[0].error is None for step in steps)
    assert outcome(*steps, submit(submission), of=task(UPDATE, **WRITABLE)).value == value


def lost(sql: str) -> Step:
    """A turn whose call ended the session: the next one begins with a fresh copy."""
    result = ToolResult("", data={"session_lost": True}, error=ToolError("memory", "stopped"))
    return Step(action=sql, calls=(ToolCall("sql_query", {"sql": sql}),), results=(result,))


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ([query(UPDATE), lost("SELECT 1")], 0.0),
        ([query(UPDATE), lost("SELECT 1"), query(UPDATE)], 1.0),
        ([query("DELETE FROM emp"), lost("SELECT 1"), query(UPDATE)], 1.0),
        ([lost(UPDATE)], 0.0),
    ],
)
def test_what_a_lost_session_had_changed_does_not_count(steps: list[Step], value: float) -> None:
    """The agent's database was then as it was given, and so it is judged."""
    gold = "UPDATE emp SET pay = pay + 10 WHERE city = 'Bern'"
    of = task(gold, **WRITABLE)
    assert outcome(*steps, submit("SELECT 1"), of=of).value == value


@pytest.mark.parametrize("submission", ["TRUNCATE emp", "DROP TABLE emp", "ALTER TABLE emp ADD x"])
def test_a_submission_that_is_no_read_stands_for_itself(submission: str) -> None:
    """Whatever it does, it is run alone; the calls are not."""
    of = task(UPDATE, **WRITABLE)
    last = msgspec.structs.replace(submit(submission), calls=())
    prefix = Trajectory(task=of, steps=(query(UPDATE), last))
    asked = ExecutionMatch().needs(of, prefix)
    assert asked[-1].arguments["statements"] == [submission]


def test_a_gold_that_changes_nothing_is_masked() -> None:
    """Else doing nothing would be paid."""
    gold = "UPDATE emp SET pay = 1 WHERE id = 99"
    assert outcome(submit("SELECT 1"), of=task(gold, **WRITABLE)).masked
    two = "UPDATE emp SET pay = 1 WHERE id = 1; DELETE FROM emp WHERE id = 2"
    assert outcome(submit(two), of=task(two, **WRITABLE)).value == 1.0


def test_without_evidence_nothing_is_said() -> None:
    """A record that lacks it is masked, not scored."""
    lone = Trajectory(task=TASK, steps=(submit(TASK.answer),))
    assert ExecutionMatch().score(TASK, lone) == Score(0.0, "no evidence", masked=True)
    changing = task(UPDATE, **WRITABLE)
    assert ExecutionMatch().score(changing, lone).masked
    with pytest.raises(UsageError):
        ExecutionMatch(max_rows=0)


@pytest.mark.parametrize("max_rows", [0, None, "5", True, 5.0])
def test_the_most_rows_are_a_whole_number(max_rows: Any) -> None:
    """Anything else is told as a mistake of the caller."""
    with pytest.raises(UsageError, match=r"max_rows=.* must be a whole number of 1 or more"):
        ExecutionMatch(max_rows=max_rows)
