"""The best share of the gold's result that a query has returned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rewards.sql_episodes import TASK, Referee, played, query, schema, stopped, submit, task
from toolenvs.errors import UsageError
from toolenvs.rewards.result_overlap import ResultOverlap
from toolenvs.types import Step, Task, Trajectory

ALL, GOLD = query("SELECT name FROM emp"), query(TASK.answer)
WIDE, NONE = query("SELECT name, city FROM emp WHERE pay = 20"), query("SELECT city FROM emp")
BAD, CONSTANT = query("SELECT x FROM emp"), query("SELECT 'Bob' UNION SELECT 'Cid'")


def course(*steps: Step, of: Task = TASK) -> list[float]:
    """The score after each step."""
    return [score.value for score in played(ResultOverlap(), *steps, of=of)]


def test_the_nearer_the_result_the_more() -> None:
    """Rows too many, columns too many, and the result itself; never less than before."""
    assert course(NONE, WIDE, ALL, GOLD, NONE) == pytest.approx([0.0, 0.5, 0.8, 1.0, 1.0])


def test_what_reads_no_table_or_fails_is_worth_nothing() -> None:
    """Guessed constants, errors, looks at the schema and the submission do not count."""
    assert course(CONSTANT, BAD, schema(), submit(TASK.answer)) == [0.0, 0.0, 0.0, 0.0]


def test_a_column_that_is_written_out_earns_nothing() -> None:
    """Beside one that reads a table it is a guess all the same."""
    assert course(query("SELECT 'Bob', max(id) FROM emp")) == [0.0]
    assert course(query("SELECT name, 'Bern' FROM emp WHERE pay = 20")) == [0.5]


def test_the_gold_is_asked_for_where_there_is_something_to_compare() -> None:
    """At each step with a result, and at no other."""
    referee = Referee()
    played(ResultOverlap(), BAD, ALL, schema(), CONSTANT, GOLD, referee=referee)
    assert [call.arguments["sql"] for call in referee.asked] == [TASK.answer] * 2


def test_of_a_turn_the_last_result_counts() -> None:
    """A turn of several calls is judged by its last query that ran."""
    both = Step(
        action="two",
        calls=(*GOLD.calls, *NONE.calls, *BAD.calls),
        results=(*GOLD.results, *NONE.results, *BAD.results),
    )
    assert course(both) == [0.0]


def test_a_gold_without_rows_is_masked() -> None:
    """What was earned stands, and nothing is added."""
    for gold in ("SELECT name FROM emp WHERE pay > 999", "SELECT x FROM emp"):
        scores = played(ResultOverlap(), ALL, of=task(gold))
        assert [(score.value, score.masked) for score in scores] == [(0.0, True)]
    lone = Trajectory(task=TASK, steps=(ALL,))
    assert ResultOverlap().score(TASK, lone).masked
    with pytest.raises(UsageError):
        ResultOverlap(max_rows=0)


def test_of_changes_those_made_count_at_the_end() -> None:
    """The gold's own are worth 1, half of them less, none 0; also without a submission."""
    raised = task("UPDATE emp SET pay = 21 WHERE pay = 20", mode="state")
    assert course(ALL, submit(raised.answer), of=raised) == [0.0, 1.0]
    assert course(query(raised.answer), stopped(), of=raised) == [0.0, 1.0]
    assert course(submit("UPDATE emp SET pay = 22 WHERE pay = 20"), of=raised) == [0.5]
    assert course(submit("SELECT 1"), of=raised) == [0.0]
    assert course(submit("DELETE FROM nothing"), of=raised) == [0.0]
    assert 0.0 < course(submit("UPDATE emp SET pay = 21"), of=raised)[0] < 1.0


def test_changes_that_cannot_be_compared_are_masked() -> None:
    """A gold that fails or changes nothing is no measure."""
    for gold in ("DELETE FROM emp WHERE pay > 999", "DELETE FROM nothing"):
        scores = played(ResultOverlap(), submit("DELETE FROM emp"), of=task(gold, mode="state"))
        assert [(score.value, score.masked) for score in scores] == [(0.0, True)]


@given(st.lists(st.sampled_from([ALL, GOLD, WIDE, NONE, BAD, CONSTANT, schema()]), max_size=5))
def test_exploring_is_never_punished(steps: list[Step]) -> None:
    """For any course the score is a share that never falls."""
    scores = [0.0, *course(*steps)]
    assert scores == sorted(scores)
    assert all(0.0 <= score <= 1.0 for score in scores)
