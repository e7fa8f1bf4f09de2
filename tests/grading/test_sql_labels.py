"""The verdicts on predictions of a real model, against labels that were made without this code.

A label says whether the bags of rows are equal, columns in the gold's order. Where a verdict is
another one, the reason is one of two, and both are meant:

- 81 pairs in which both queries return nothing (``both_empty``): most are of ``wta_1``, whose
  tables are empty in this copy, and of conditions against the placeholder ``'terminal'``, which no
  row meets. The label calls two empty bags a match; such a gold measures nothing, so it is not
  gradable and never pays.
- 45 pairs that differ in the order of their columns alone: wrong by the label and by
  ``columns="exact"``, right by the default policy, which allows one permutation of the columns.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.grading.databases import file, judge
from toolenvs.grading.sql import Verdict

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def pairs(shared: Path) -> list[Mapping[str, Any]]:
    """The labelled pairs of gold and prediction."""
    lines = (shared / "sql/spider/pred_vs_gold.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def shared(shared: Path) -> Path:
    """The folder of data."""
    return shared / "data"


def verdicts(
    pairs: list[Mapping[str, Any]], shared: Path, **policy: Any
) -> Iterator[tuple[Mapping[str, Any], Verdict]]:
    """Each pair with the verdict on it."""
    opened = functools.cache(
        lambda name: file(shared / f"sql/spider/database/{name}/{name}.sqlite")
    )
    for pair in pairs:
        yield pair, judge(opened(pair["db_id"]), pair["gold"], pair["pred"], **policy)


def test_verdicts_agree_with_the_labels(pairs: list[Mapping[str, Any]], shared: Path) -> None:
    """With columns as they stand, all of them, but for golds that return nothing."""
    rules: Counter[str] = Counter()
    for pair, verdict in verdicts(pairs, shared, columns="exact"):
        if verdict.correct != pair["bag_match"]:
            assert not verdict.gradable
            rules[verdict.rule] += 1
        if pair["pred_error"]:
            assert verdict.reason == "failed"
    assert rules == {"both_empty": 81}
    assert len(pairs) == 564


def test_the_default_policy_allows_columns_to_be_permuted(
    pairs: list[Mapping[str, Any]], shared: Path
) -> None:
    """It pays 45 pairs more, each of which shows the gold's columns in another order."""
    permuted = []
    for pair, verdict in verdicts(pairs, shared):
        if verdict.correct and not pair["bag_match"]:
            permuted.append(pair)
        if pair["bag_match"]:
            assert verdict.correct or verdict.rule == "both_empty"
    assert len(permuted) == 45
    assert all("," in pair["gold"] for pair in permuted)
