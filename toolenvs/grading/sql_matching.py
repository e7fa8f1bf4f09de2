"""Whether one table of values is another: the same rows, under one permutation of the columns.

What the gold result allows is an ``Arrangement``: rows in groups, of which so many are taken. A bag
is one group that is taken whole; an order without ties is a group for each row; a LIMIT that cuts
through a tie takes a part of its last group.

Columns are assigned one by one. After each the rows fall into finer classes (equal in all columns
so far), and a class that holds more rows of one side than the other can lose ends the branch. All
is bounded: what takes too many steps is undecided, never slow.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence, Set

import msgspec

from toolenvs.grading.sql_codes import Codes
from toolenvs.grading.sql_policy import DEFAULT_POLICY, SqlPolicy
from toolenvs.grading.sql_values import NUMBERS, Value, equal, near

Row = tuple[Value, ...]

_MOST_STEPS = 4_000_000  # visits of a cell or an edge: about two seconds
_MOST_PERMUTED = 100  # columns; wider tables are compared as they stand


class UndecidedError(ValueError):
    """The comparison takes more steps than it may."""


class Group(msgspec.Struct, frozen=True):
    """Rows of which any ``take`` may stand in a result, in any order among themselves."""

    rows: tuple[Row, ...]
    take: int


class Arrangement(msgspec.Struct, frozen=True):
    """The results that a gold query allows.

    Attributes:
        width: number of columns.
        groups: what is taken, one after the other.
        ordered: False when rows of all groups may be mixed.
    """

    width: int
    groups: tuple[Group, ...]
    ordered: bool = False

    @property
    def size(self) -> int:
        """Number of rows of every allowed result."""
        return sum(group.take for group in self.groups)


def allows(
    gold: Arrangement,
    rows: Sequence[Row],
    *,
    width: int,
    policy: SqlPolicy = DEFAULT_POLICY,
    forbidden: Set[tuple[int, int]] = frozenset(),
) -> bool:
    """Tell whether ``rows`` is one of the results that ``gold`` stands for.

    Args:
        gold: what is allowed.
        rows: the rows to judge, each of ``width`` values.
        width: their number of columns; with ``policy.columns="subset"`` it may be larger.
        policy: which values are equal and which columns may stand for which.
        forbidden: pairs of a gold column and one of ``rows`` that may not.

    Raises:
        UndecidedError: It would take too long to tell.
    """
    if len(rows) != gold.size:
        return False
    return _Assignment(gold, rows, width, policy, forbidden).exists()


class _Budget:
    """Steps that are left."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise UndecidedError("the comparison takes too many steps")


class _Assignment:
    """The search for the columns of the one table that stand for those of the other.

    A *class* is a number for each row; rows of one class agree in all that was looked at so far.
    Every gold row of a group that is taken whole must be there; rows of the others may be.
    """

    def __init__(
        self,
        gold: Arrangement,
        rows: Sequence[Row],
        width: int,
        policy: SqlPolicy,
        forbidden: Set[tuple[int, int]],
    ) -> None:
        self._policy = policy
        self._forbidden = forbidden
        self._budget = _Budget(_MOST_STEPS)
        self._gold = [row for group in gold.groups for row in group.rows]
        self._given = list(rows)
        self._must = [g.take == len(g.rows) for g in gold.groups for _ in g.rows]
        self._whole = all(self._must)
        self._budget.spend(len(self._gold) * gold.width + len(rows) * width)
        cells = (value for table in (self._gold, self._given) for row in table for value in row)
        self._codes = Codes(cells, policy)
        self._gold_columns = [
            [self._codes[row[column]] for row in self._gold] for column in range(gold.width)
        ]
        self._given_columns = [
            [self._codes[row[column]] for row in self._given] for column in range(width)
        ]
        self._start = _labels(gold)
        firsts: dict[Row, int] = {}
        self._twins = [
            firsts.setdefault(tuple(row[column] for row in self._given), column)
            for column in range(width)
        ]

    def exists(self) -> bool:
        """Tell whether some assignment makes the tables one."""
        if not _fit(*self._start, self._must):
            return False
        wide, given = len(self._gold_columns), len(self._given_columns)
        if wide == given and self._stands(list(range(wide))):
            return True
        if self._policy.columns == "exact" or not wide or wide > given:
            return False
        if given > _MOST_PERMUTED:
            raise UndecidedError(f"more than {_MOST_PERMUTED} columns")
        candidates = [
            [other for other in others if (column, other) not in self._forbidden]
            for column, others in enumerate(self._candidates())
        ]
        if not all(candidates):
            return False
        order = sorted(range(wide), key=lambda column: len(candidates[column]))
        return self._extend(order, candidates, [], *self._start)

    def _stands(self, chosen: Sequence[int]) -> bool:
        """Tell whether the gold's columns are the chosen ones, in order."""
        classes = self._start
        if not self._forbidden.isdisjoint(enumerate(chosen)):
            return False
        for column, other in enumerate(chosen):
            finer = self._finer(*classes, column, other)
            if finer is None:
                return False
            classes = finer
        return self._pair_loose(dict(enumerate(chosen)), *classes)

    def _extend(
        self,
        order: Sequence[int],
        candidates: Sequence[Sequence[int]],
        chosen: list[int],
        gold: list[int],
        given: list[int],
    ) -> bool:
        """Choose for the next column of ``order`` and go on; ``gold, given`` are the classes."""
        if len(chosen) == len(order):
            return self._pair_loose(dict(zip(order, chosen, strict=True)), gold, given)
        column = order[len(chosen)]
        tried: set[int] = set()
        for other in candidates[column]:
            # What a twin failed, it fails; one that may not stand here is no candidate.
            if other in chosen or self._twins[other] in tried:
                continue
            tried.add(self._twins[other])
            finer = self._finer(gold, given, column, other)
            if finer and self._extend(order, candidates, [*chosen, other], *finer):
                return True
        return False

    def _candidates(self) -> list[list[int]]:
        """For each gold column the given ones that hold the same values in the same groups."""
        others = range(len(self._given_columns))
        if not self._whole:
            return [
                [other for other in others if self._finer(*self._start, column, other)]
                for column in range(len(self._gold_columns))
            ]
        self._budget.spend(len(self._given) * (len(self._gold_columns) + len(others)))
        gold, given = self._start
        contents = [Counter(zip(given, column, strict=True)) for column in self._given_columns]
        by_content: dict[frozenset[tuple[tuple[int, int], int]], list[int]] = {}
        for other, content in enumerate(contents):
            by_content.setdefault(frozenset(content.items()), []).append(other)
        wanted = [Counter(zip(gold, column, strict=True)) for column in self._gold_columns]
        return [by_content.get(frozenset(content.items()), []) for content in wanted]

    def _finer(
        self, gold: list[int], given: list[int], column: int, other: int
    ) -> tuple[list[int], list[int]] | None:
        """The classes once these columns count too; None if the tables then differ."""
        self._budget.spend(len(gold) + len(given))
        numbers: dict[tuple[int, int], int] = {}
        finer_gold = [
            numbers.setdefault(pair, len(numbers))
            for pair in zip(gold, self._gold_columns[column], strict=True)
        ]
        finer_given: list[int] = []
        for pair in zip(given, self._given_columns[other], strict=True):
            number = numbers.get(pair)
            if number is None:
                return None
            finer_given.append(number)
        return (finer_gold, finer_given) if _fit(finer_gold, finer_given, self._must) else None

    def _pair_loose(self, chosen: dict[int, int], gold: list[int], given: list[int]) -> bool:
        """Match the rows that counting cannot judge: those that hold loose codes."""
        if not self._codes.loose:
            return True
        for rows, others in self._loose_classes(chosen, gold, given):
            pairing = _Pairing(self._policy, self._budget)
            lefts = [[self._given[row][c] for c in chosen.values()] for row in others]
            rights = [[self._gold[row][c] for c in chosen] for row in rows]
            must = [right for right, row in zip(rights, rows, strict=True) if self._must[row]]
            # Matchings that cover one side each can be joined to one that covers both
            # (Mendelsohn and Dulmage 1958).
            if not pairing.covers(lefts, rights):
                return False
            if len(lefts) < len(rights) and not pairing.covers(must, lefts):
                return False
        return True

    def _loose_classes(
        self, chosen: dict[int, int], gold: list[int], given: list[int]
    ) -> Iterator[tuple[list[int], list[int]]]:
        """The rows of both tables by class, where a class holds a loose code."""
        classes: dict[int, tuple[list[int], list[int]]] = {}
        for row, number in enumerate(gold):
            if any(self._gold_columns[column][row] in self._codes.loose for column in chosen):
                classes.setdefault(number, ([], []))[0].append(row)
        for row, number in enumerate(given):
            if number in classes:
                classes[number][1].append(row)
        yield from classes.values()


class _Pairing:
    """Pairs rows whose values are equal within the tolerance: bipartite matching."""

    def __init__(self, policy: SqlPolicy, budget: _Budget) -> None:
        self._policy = policy
        self._budget = budget

    def covers(self, lefts: Sequence[Sequence[Value]], rights: Sequence[Sequence[Value]]) -> bool:
        """Tell whether each of ``lefts`` has a partner of its own among ``rights``."""
        if not lefts or len(lefts) > len(rights):
            return not lefts
        if len(lefts) == len(rights) and self._in_step(lefts, rights):
            return True
        return self._saturates(self._partners(lefts, rights))

    def _in_step(self, lefts: Sequence[Sequence[Value]], rights: Sequence[Sequence[Value]]) -> bool:
        """Tell whether the sorted rows are equal one by one, which settles most cases."""
        self._budget.spend(len(lefts))
        pairs = zip(sorted(lefts, key=_sort_key), sorted(rights, key=_sort_key), strict=True)
        return all(self._equal(left, right) for left, right in pairs)

    def _equal(self, left: Sequence[Value], right: Sequence[Value]) -> bool:
        return all(equal(a, b, self._policy) for a, b in zip(left, right, strict=True))

    def _partners(
        self, lefts: Sequence[Sequence[Value]], rights: Sequence[Sequence[Value]]
    ) -> list[list[int]]:
        """For each left row the right ones that equal it.

        Sorted by the column of most distinct numbers, they lie around its own place.
        """
        numeric = [c for c, value in enumerate(rights[0]) if value[0] in NUMBERS]
        key = max(numeric, key=lambda c: len({row[c] for row in rights}))
        places = sorted(range(len(rights)), key=lambda r: rights[r][key][1])
        numbers = [rights[r][key][1] for r in places]
        partners: list[list[int]] = []
        for left in lefts:
            middle = bisect.bisect_left(numbers, left[key][1])
            around = (range(middle, len(places)), range(middle - 1, -1, -1))
            found: list[int] = []
            for side in around:
                for place in side:
                    self._budget.spend(1)
                    right = rights[places[place]]
                    if not near(left[key], right[key], self._policy):
                        break
                    if self._equal(left, right):
                        found.append(places[place])
            partners.append(found)
        return partners

    def _saturates(self, partners: Sequence[Sequence[int]]) -> bool:
        """Tell whether a matching covers all left rows, by augmenting paths."""
        owner: dict[int, int] = {}
        partner: dict[int, int] = {}
        for start in range(len(partners)):
            reached: dict[int, int] = {}
            free = self._free_right(start, partners, owner, reached)
            if free is None:
                return False
            while True:  # flip the path back to its start
                left = reached[free]
                owner[free], partner[left], free = left, free, partner.get(left, -1)
                if left == start:
                    break
        return True

    def _free_right(
        self,
        start: int,
        partners: Sequence[Sequence[int]],
        owner: dict[int, int],
        reached: dict[int, int],
    ) -> int | None:
        """A right row without an owner, and the alternating path to it in ``reached``."""
        waiting = [start]
        for left in waiting:  # grows while it is walked: breadth first
            self._budget.spend(1 + len(partners[left]))
            for right in partners[left]:
                if right not in reached:
                    reached[right] = left
                    if right not in owner:
                        return right
                    waiting.append(owner[right])
        return None


def _sort_key(row: Sequence[Value]) -> list[tuple[str, object]]:
    """Numbers by size whatever their kind; what is no number is the same in a whole class."""
    return [("", number) if kind in NUMBERS else (kind, "") for kind, number in row]


def _labels(gold: Arrangement) -> tuple[list[int], list[int]]:
    """The first classes: where order counts, the number of the row's group, else one for all."""
    gold_labels: list[int] = []
    given_labels: list[int] = []
    for number, group in enumerate(gold.groups):
        label = number if gold.ordered else 0
        gold_labels += [label] * len(group.rows)
        given_labels += [label] * group.take
    return gold_labels, given_labels


def _fit(gold: list[int], given: list[int], must: list[bool]) -> bool:
    """Tell whether each class has room for its given rows, and they for those that must be."""
    present = Counter(given)
    room = Counter(gold)
    if any(count > room[number] for number, count in present.items()):
        return False
    if len(gold) == len(given):
        return True  # and then each class is exactly full
    needed = Counter(number for number, needs in zip(gold, must, strict=True) if needs)
    return all(count <= present[number] for number, count in needed.items())
