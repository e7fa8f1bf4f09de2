"""Which columns of a submitted result may stand for which of the gold's.

A column that a submission writes out itself (``SELECT 'Bob', count(*) FROM emp``, as
``sql_lineage`` tells) was not looked up. It may stand for a column that the gold writes out as
well, and for no other, except where the question had its values already:

* the gold sets something equal to each of them (``WHERE city = 'Bern'``), and another column of the
  submission depends on a table; or
* they differ from row to row, and a table decides whether some of these are there; and the gold
  holds each of them anywhere (``SELECT 'yes' WHERE EXISTS (...) UNION ALL SELECT 'no' WHERE NOT
  EXISTS (...)``), or the submission sets something equal to each of them, and another column of it
  depends on a table. NULL, truth values, 0 and 1 need not be in the gold.

This guards against answers that are written out, and a right answer must pass. Where a task has
further instances, what is written out is wrong on some: there only a text that reads no table is
barred.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import Touched, WrittenColumn, touched


class Bars(msgspec.Struct, frozen=True):
    """The columns of a submission that cannot stand for every column of the gold.

    Attributes:
        written: their places, counted from the end if negative.
        allowed: the places of the gold's columns that they may stand for; None: all.
        whole: they are all that the submission has.
        misplaced: it has one of which the place cannot be said: beside a ``*``.
    """

    written: tuple[int, ...] = ()
    allowed: tuple[int, ...] | None = None
    whole: bool = False
    misplaced: bool = False

    @property
    def hopeless(self) -> bool:
        """True where they cannot stand for any column of the gold, and there are no others."""
        return self.whole and self.allowed == ()

    @property
    def crowded(self) -> bool:
        """True where they are more than the columns of the gold that they may stand for."""
        return self.allowed is not None and len(self.written) > len(self.allowed)

    def forbidden(self, *, width: int, wide: int) -> frozenset[tuple[int, int]]:
        """The pairs of a gold column and a submitted one that cannot stand for each other.

        Args:
            width: the gold's number of columns.
            wide: the submission's.
        """
        if self.allowed is None:
            return frozenset()
        free = {place % width for place in self.allowed if -width <= place < width}
        given = self.places(wide)
        return frozenset((g, o) for g in range(width) if g not in free for o in given)

    def places(self, wide: int) -> frozenset[int]:
        """Their places in a result of ``wide`` columns, counted from 0."""
        if self.allowed is None:
            return frozenset()
        return frozenset(place % wide for place in self.written if -wide <= place < wide)


NO_BARS = Bars()
_COMMON = frozenset(("null", "true", "false", "0", "1"))


def bars_between(
    gold_sql: str, submitted_sql: str, engine: Engine = "sqlite", *, instances: int = 0
) -> Bars:
    """Read both queries for the columns that they write out. Never raises, whatever the texts.

    Where one of them cannot be parsed nothing is barred, unless the submission reads no table.

    Args:
        gold_sql: the gold query.
        submitted_sql: the query that is to return the same.
        engine: whose dialect both are written in.
        instances: further databases on which both are run.
    """
    gold, given = touched(gold_sql, engine), touched(submitted_sql, engine)
    if instances and given.readable and (given.tables or not given.constant):
        return NO_BARS
    if not gold.readable or not given.readable:
        return Bars(allowed=(), whole=True) if given.constant and not gold.constant else NO_BARS
    barred = [column for column in given.written if not _is_excused(column, given, gold)]
    placed = all(column.place is not None for column in gold.written)
    return Bars(
        written=_places(barred),
        allowed=_places(gold.written) if placed else None,
        whole=given.constant and len(barred) == len(given.written),
        misplaced=placed and any(column.place is None for column in barred),
    )


def _places(columns: Sequence[WrittenColumn]) -> tuple[int, ...]:
    return tuple(column.place for column in columns if column.place is not None)


def _is_excused(column: WrittenColumn, given: Touched, gold: Touched) -> bool:
    """Tell whether the question had the values of a column already."""
    if not column.literals:
        return False
    if column.decided and column.literals <= gold.literals | _COMMON:
        return True
    pinned = gold.pinned | given.pinned if column.decided else gold.pinned
    return given.looks_up and column.literals <= pinned
