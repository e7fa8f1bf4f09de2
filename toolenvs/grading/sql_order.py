"""What a gold query fixes of the order and the choice of its rows.

Rows that tie in the keys of an ORDER BY may stand in any order, and where a LIMIT cuts through them
any of them may be taken. From the outline of a gold, its result and that of its probe
(``sql_outline``) follows every result that it may have.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from toolenvs.grading.sql_matching import Arrangement, Group, Row, UndecidedError, allows
from toolenvs.grading.sql_outline import Outline
from toolenvs.grading.sql_policy import DEFAULT_POLICY, SqlPolicy
from toolenvs.grading.sql_values import Value, equal

_EXACT_COLUMNS = SqlPolicy(columns="exact")
_TIE_POLICY = DEFAULT_POLICY  # keys that differ by the rounding of floats tie, too


class TieUnknownError(ValueError):
    """Which rows tie at the limit cannot be seen."""


def arrange(
    outline: Outline,
    rows: Sequence[Row],
    *,
    width: int,
    probe: Sequence[Row] | None = None,
    probe_cut: bool = False,
    policy: SqlPolicy = DEFAULT_POLICY,
    widened: bool = False,
) -> Arrangement:
    """The results that a gold query allows.

    Where the keys are known, rows that tie may stand in any order, and where a LIMIT cuts through
    them any of them may be taken. Where they are not (an ORDER BY by what DISTINCT dropped, a probe
    that did not run or does not fit the result), an ordered result is the one row after row.

    Args:
        outline: how the gold orders.
        rows: its result, each row of ``width`` values.
        width: its number of columns.
        probe: the result of ``outline.probe``, if that ran.
        probe_cut: more rows than ``probe`` holds exist.
        policy: whether order counts.
        widened: take all rows that tie at the limit.

    Raises:
        TieUnknownError: Whether rows tie at the limit cannot be seen: the probe was cut, or the
            limit leaves rows out by a key that is not among the columns.
    """
    ordered = policy.order == "always" or (policy.order == "auto" and outline.ordered)
    plain = _plain(rows, width, ordered)
    more = probe is not None and (probe_cut or len(probe) > len(rows))
    if more and outline.keys is None and outline.limit >= 0:
        raise TieUnknownError("the keys are not known")
    if outline.keys is None or (policy.order == "always" and not outline.ordered):
        return plain
    if outline.shown and ordered:
        keys = [[row[key] for key in outline.keys if key < width] for row in rows]
        plain = Arrangement(width, tuple(_tied(rows, keys)), ordered)
    if not outline.probe or probe is None:
        return plain
    limited = _limited(outline, probe, cut=probe_cut, widened=False)
    found = Arrangement(width, limited, ordered)
    if not _holds(found, rows, width):
        return plain
    if widened:
        all_tied = _limited(outline, probe, cut=probe_cut, widened=True)
        return Arrangement(width, all_tied, ordered)
    return found


def _holds(found: Arrangement, rows: Sequence[Row], width: int) -> bool:
    """Tell whether the gold's own result is one of those found; else the probe was misread."""
    try:
        return allows(found, rows, width=width, policy=_EXACT_COLUMNS)
    except UndecidedError:
        return False


def _plain(rows: Sequence[Row], width: int, ordered: bool) -> Arrangement:
    groups = [[row] for row in rows] if ordered else [rows]
    return Arrangement(width, tuple(Group(tuple(group), len(group)) for group in groups), ordered)


def _limited(
    outline: Outline, probe: Sequence[Row], *, cut: bool, widened: bool
) -> tuple[Group, ...]:
    """The groups of the probe's rows that the limit takes from, with how many of each."""
    first = outline.offset
    last = first + outline.limit if outline.limit >= 0 else len(probe)
    groups: list[Group] = []
    start = 0
    for group in key_groups(outline, probe):
        if start >= last:
            break
        end = start + len(group.rows)
        take = max(0, min(end, last) - max(start, first))
        if take:
            if cut and end == len(probe):
                raise TieUnknownError("the probe was cut")
            groups.append(Group(group.rows, len(group.rows) if widened else take))
        start = end
    return tuple(groups)


def key_groups(outline: Outline, probe: Sequence[Row]) -> Iterator[Group]:
    """The rows of a probe without their keys, in groups that tie; needs ``outline.keys``."""
    assert outline.keys is not None
    shown = [row[: len(row) - outline.appended] for row in probe]
    ranks = [row[-1] for row in probe] if outline.ranked else ()
    return _tied(shown, [[row[key] for key in outline.keys] for row in probe], ranks)


def _tied(
    rows: Sequence[Row], keys: Sequence[Sequence[Value]], ranks: Sequence[Value] = ()
) -> Iterator[Group]:
    """Runs of rows whose keys, or ranks, are equal to those of the next."""
    for run in _runs(keys, ranks):
        if run:
            yield Group(tuple(rows[place] for place in run), len(run))


def _runs(keys: Sequence[Sequence[Value]], ranks: Sequence[Value]) -> Iterator[list[int]]:
    run: list[int] = []
    for place in range(len(keys)):
        one = bool(run and ranks) and ranks[place - 1] == ranks[place]
        if run and not one and not _same_keys(keys[place - 1], keys[place]):
            yield run
            run = []
        run.append(place)
    yield run


def _same_keys(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return all(itertools.starmap(_same_key, zip(left, right, strict=True)))


def _same_key(left: Value, right: Value) -> bool:
    return equal(left, right, _TIE_POLICY)
