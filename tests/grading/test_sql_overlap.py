"""The share of a gold's result that another one holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.grading.databases import table
from tests.grading.test_sql import results
from toolenvs.grading.sql import SqlPolicy, compare
from toolenvs.grading.sql_overlap import changes_overlap, overlap

GOLD = table([["a", 1], ["b", 2]])


@pytest.mark.parametrize(
    ("result", "share"),
    [
        (GOLD, 1.0),
        (table([[2, "b"], [1, "a"]]), 1.0),
        (table([["a", 1]]), 2 / 3),
        (table([["a", 1], ["z", 9]]), 0.5),
        (table([["a"], ["b"]]), 0.5),
        (table([["a", 1, 0], ["b", 2, 0]]), 2 / 3),
        (table([["a", 2], ["b", 1]]), 0.0),
        (table([["z"]]), 0.0),
        (table([], columns=["x", "y"]), 0.0),
        ({**table([["a", 1]]), "row_count": 98, "cut": False}, 0.02),
    ],
)
def test_rows_and_columns_that_are_shared(result: dict[str, Any], share: float) -> None:
    """Missing, further and wrong rows and columns each cost their share."""
    assert overlap(GOLD, result) == pytest.approx(share)


def test_columns_of_equal_values_are_paired_right() -> None:
    """Where a permutation makes the tables one, the share is 1, whatever the values suggest."""
    gold = table([[1, 2, 1], [2, 1, 1], [1, 1, 2]])
    assert overlap(gold, table([[row[2], row[0], row[1]] for row in gold["rows"]])) == 1.0


@given(results(), results())
def test_a_share_is_a_share(gold: dict[str, Any], result: dict[str, Any]) -> None:
    """It lies in [0, 1], and is 1 where the results are one and not empty."""
    share = overlap(gold, result)
    assert 0.0 <= share <= 1.0
    if gold["rows"] and compare(gold, result, policy=SqlPolicy(order="never")).correct:
        assert share == 1.0


def test_a_huge_result_is_not_compared() -> None:
    """Beyond a million cells or a hundred columns it is worth nothing."""
    assert overlap(GOLD, table([[1] * 101])) == 0.0


def state(**tables: list[list[Any]]) -> dict[str, Any]:
    """Tables by their names, in the form of ``sql_after``."""
    return {"tables": [{"name": name, **table(rows)} for name, rows in tables.items()]}


BEFORE, WANTED = state(t=[["a", 1], ["b", 2]]), state(t=[["a", 1], ["b", 3]])


@pytest.mark.parametrize(
    ("left", "share"),
    [
        (WANTED, 1.0),
        (BEFORE, 0.0),
        (state(t=[["a", 1], ["b", 4]]), 0.5),
        (state(t=[["a", 1]]), 2 / 3),
        (state(t=[["a", 3], ["b", 3]]), 2 / 3),
        (state(t=[["a", 1], ["b", 3]], u=[]), 0.8),
        (state(), 0.4),
        ({"error": {"kind": "refused", "message": ""}}, 0.0),
    ],
)
def test_changes_that_are_shared(left: dict[str, Any], share: float) -> None:
    """Missing, further and wrong changes each cost their share."""
    assert changes_overlap(BEFORE, WANTED, left) == pytest.approx(share)


def test_a_gold_that_changes_nothing_is_no_measure() -> None:
    """There is no share of nothing; nor of a gold that fails."""
    failed = {"error": {"kind": "refused", "message": ""}}
    assert changes_overlap(BEFORE, BEFORE, WANTED) is None
    assert changes_overlap(BEFORE, failed, WANTED) is None
