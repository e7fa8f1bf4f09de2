"""How much of one result another holds: a share for guidance, where ``sql`` has the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

from toolenvs.grading.sql import compare, grade_state, read_result
from toolenvs.grading.sql_codes import Codes
from toolenvs.grading.sql_policy import DEFAULT_POLICY, SqlPolicy
from toolenvs.grading.sql_written import NO_BARS, Bars

_MOST_CELLS = 1_000_000
_MOST_COLUMNS = 100


def overlap(
    gold: Mapping[str, Any],
    result: Mapping[str, Any],
    *,
    policy: SqlPolicy = DEFAULT_POLICY,
    bars: Bars = NO_BARS,
) -> float:
    """The share of ``gold`` that ``result`` holds, row by row.

        (columns paired / larger number of columns) * 2 * common rows / (gold rows + result rows)

    Each gold column is paired with the column of the result that shares most values with it, the
    pairs that share most first. Common rows are those that both bags hold on the paired columns.

    Args:
        gold: a result that ran, in the JSON form; not cut.
        result: likewise; where it was cut, ``row_count`` says how many rows there were.
        policy: which values are equal.
        bars: which columns of ``result`` are paired with none of the gold's.

    Returns:
        A share in [0, 1]; 1 if the bags are the same. 0 for results of more than a million cells or
        100 columns, for they are not compared, and where a column of ``result`` is written out at a
        place that cannot be said.
    """
    expected, given = read_result(gold, policy), read_result(result, policy)
    wide, other = len(expected.columns), len(given.columns)
    cells = len(expected.rows) * wide + len(given.rows) * other
    if not cells or cells > _MOST_CELLS or max(wide, other) > _MOST_COLUMNS or bars.misplaced:
        return 0.0
    if compare(gold, result, policy=_as_bags(policy), bars=bars).correct:
        return 1.0  # the pairs below are a guess where columns hold the same values
    codes = Codes((v for table in (expected, given) for row in table.rows for v in row), policy)
    left = [[codes[row[column]] for row in expected.rows] for column in range(wide)]
    right = [[codes[row[column]] for row in given.rows] for column in range(other)]
    barred = bars.forbidden(width=wide, wide=other)
    pairs = _pairs([*map(Counter, left)], [*map(Counter, right)], barred)
    if not pairs:
        return 0.0
    gold_rows = Counter(zip(*(left[a] for a, _ in pairs), strict=True))
    rows = Counter(zip(*(right[b] for _, b in pairs), strict=True))
    count = max(len(given.rows), int(result.get("row_count") or 0))
    f1 = 2 * (gold_rows & rows).total() / (len(expected.rows) + count)
    return len(pairs) / max(wide, other) * f1


def changes_overlap(
    before: Mapping[str, Any],
    gold: Mapping[str, Any],
    submitted: Mapping[str, Any],
    *,
    policy: SqlPolicy = DEFAULT_POLICY,
) -> float | None:
    """The share of the gold's changes that the submitted statements made, and no others.

        2 * common changes / (the gold's changes + the submitted ones)

    A change is a row, or a table itself, that was added or removed; a row that was updated is both.

    Args:
        before: the database as it is given, in the form of ``grade_state``.
        gold: as the gold statements leave it.
        submitted: as the submitted ones leave it; what ran before one that failed counts.
        policy: which values are equal.

    Returns:
        A share in [0, 1]; 1 if both leave the same. None where the gold fails or changes nothing;
        0 for tables that are cut or hold more than a million cells, for they are not compared.
    """
    if any(state.get("error") or state.get("stopped") for state in (before, gold)):
        return None
    verdict = grade_state(before, gold, submitted, policy=policy)
    if not verdict.gradable:
        return None
    tables = [table for state in (before, gold, submitted) for table in state.get("tables", ())]
    cells = sum(len(table["rows"]) * len(table["columns"]) for table in tables)
    if submitted.get("error") or cells > _MOST_CELLS or any(table.get("cut") for table in tables):
        return 0.0
    read = [read_result(table, policy) for table in tables]
    codes = Codes((value for table in read for row in table.rows for value in row), policy)
    old, right, given = (_rows(state, codes, policy) for state in (before, gold, submitted))
    wanted, made = _Changes(old, right), _Changes(old, given)
    return 1.0 if verdict.correct else 2 * wanted.common(made) / (wanted.total + made.total)


class _Changes:
    """What was added to a bag and what was removed."""

    def __init__(self, before: Counter[Any], after: Counter[Any]) -> None:
        self._added, self._removed = after - before, before - after
        self.total = self._added.total() + self._removed.total()

    def common(self, other: _Changes) -> int:
        """How many changes both have."""
        added, removed = self._added & other._added, self._removed & other._removed
        return added.total() + removed.total()


def _rows(state: Mapping[str, Any], codes: Codes, policy: SqlPolicy) -> Counter[Any]:
    """The rows of all tables, each with its table's name and columns; and the tables themselves."""
    rows: Counter[Any] = Counter()
    for table in state["tables"]:
        head = (table["name"], *table["columns"])
        rows[head, None] += 1
        rows.update((head, tuple(codes[v] for v in r)) for r in read_result(table, policy).rows)
    return rows


def _as_bags(policy: SqlPolicy) -> SqlPolicy:
    return msgspec.structs.replace(policy, columns="permute", order="never")


def _pairs(
    left: Sequence[Counter[int]], right: Sequence[Counter[int]], barred: Set[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Columns of both sides that share values, each in one pair, none in a barred one."""
    shared = [
        ((one & two).total(), -abs(a - b), -a, -b)
        for a, one in enumerate(left)
        for b, two in enumerate(right)
        if (a, b) not in barred
    ]
    pairs: dict[int, int] = {}
    for common, _, a, b in sorted(shared, reverse=True):
        if common and -a not in pairs and -b not in pairs.values():
            pairs[-a] = -b
    return sorted(pairs.items())
