"""The best share of queries that ran."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.rewards.sql_episodes import played, query, schema, submit
from toolenvs.rewards.sql_valid import SqlValid
from toolenvs.types import Step

GOOD, BAD, CONSTANT = query("SELECT name FROM emp"), query("SELECT x FROM emp"), query("SELECT 1")


def course(*steps: Step) -> list[float]:
    """The score after each step."""
    return [score.value for score in played(SqlValid(), *steps)]


def test_the_share_rises_and_never_falls() -> None:
    """What ran is not lost by what fails later; only a better share pays more."""
    assert course(GOOD, BAD, BAD) == [1.0, 1.0, 1.0]
    assert course(BAD, GOOD, GOOD, BAD) == [0.0, 0.5, 2 / 3, 2 / 3]


def test_only_queries_of_tables_count() -> None:
    """Constants, looks at the schema and the submission are worth nothing."""
    assert course(CONSTANT, schema(), submit("SELECT name FROM emp")) == [0.0, 0.0, 0.0]
    assert course(CONSTANT, BAD, GOOD) == [0.0, 0.0, 0.5]


@given(st.lists(st.sampled_from([GOOD, BAD, CONSTANT, schema()]), max_size=6))
def test_exploring_is_never_punished(steps: list[Step]) -> None:
    """For any course the score is a share that never falls."""
    scores = [0.0, *course(*steps)]
    assert scores == sorted(scores)
    assert all(0.0 <= score <= 1.0 for score in scores)
