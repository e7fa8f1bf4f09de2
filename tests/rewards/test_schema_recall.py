"""The share of the gold's names that calls have touched."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rewards.sql_episodes import TASK, played, query, schema, submit, task
from toolenvs.rewards.schema_recall import SchemaRecall
from toolenvs.types import Score, Step, Task


def course(*steps: Step, of: Task = TASK) -> list[float]:
    """The score after each step."""
    return [score.value for score in played(SchemaRecall(), *steps, of=of)]


def test_tables_and_columns_are_collected() -> None:
    """The gold uses emp, name and pay; each counts once, whatever its case."""
    steps = [schema("EMP"), query("SELECT Name FROM emp"), query("SELECT max(pay) FROM emp")]
    assert course(*steps) == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_looking_at_all_is_no_way_to_score() -> None:
    """A star names no column, a schema call that names no table touches none."""
    assert course(schema(), query("SELECT * FROM emp")) == pytest.approx([0.0, 1 / 3])
    everything = ", ".join(f"c{number}" for number in range(20))
    wide = query("SELECT name FROM emp")
    call = msgspec.structs.replace(
        wide.calls[0], arguments={"sql": f"SELECT name, pay, {everything} FROM emp"}
    )
    assert course(msgspec.structs.replace(wide, calls=(call,))) == [0.0]


def test_only_calls_that_succeeded_count() -> None:
    """A query that failed and the submission touch nothing."""
    assert course(query("SELECT name, x FROM emp"), submit(TASK.answer)) == [0.0, 0.0]


def test_the_nearest_gold_counts() -> None:
    """Of several golds, the one of which most was touched."""
    of = task("SELECT count(*) FROM t", alternatives=["SELECT city FROM emp"])
    assert course(query("SELECT city FROM emp"), of=of) == [1.0]


def test_a_gold_that_cannot_be_parsed_is_masked() -> None:
    """Nothing is known of what it uses; without a step or a database it is plainly 0."""
    scores = played(SchemaRecall(), query("SELECT name FROM emp"), of=task("!!!"))
    assert scores == [Score(0.0, "the gold cannot be parsed", masked=True)]
    nowhere = msgspec.structs.replace(TASK, database=None)
    assert course(query("SELECT name FROM emp"), of=nowhere) == [0.0]


STEPS = [schema("emp"), schema(), query("SELECT name FROM emp"), query("SELECT x FROM emp")]


@given(st.lists(st.sampled_from(STEPS), max_size=6))
def test_exploring_is_never_punished(steps: list[Step]) -> None:
    """For any course the score is a share that never falls."""
    scores = [0.0, *course(*steps)]
    assert scores == sorted(scores)
    assert all(0.0 <= score <= 1.0 for score in scores)
