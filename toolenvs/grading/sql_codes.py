"""Small integers in place of values, so that whole tables can be compared by counting.

Equality with a tolerance is not transitive, and rounding values before counting them would break
pairs that lie on both sides of a step. Hence numbers that are linked by a chain of near numbers
share a code. Mostly all numbers of a code are equal to one another, and then counting is exact. A
code of which that is not true is *loose*: rows that hold it are matched one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from toolenvs.grading.sql_policy import SqlPolicy
from toolenvs.grading.sql_values import MEASURED, NUMBERS, Value, equal, near

_MOST_PAIRED = 32  # distinct numbers of one chain that are compared each with each


class Codes:
    """Codes of a set of values: equal values have equal codes.

    Args:
        values: all that will be asked for.
        policy: which values are equal.

    Attributes:
        loose: the codes that unequal values may share.
    """

    def __init__(self, values: Iterable[Value], policy: SqlPolicy) -> None:
        self._codes: dict[Value, int] = {}
        loose: set[int] = set()
        numbers: list[Value] = []
        measured = False
        for value in set(values):
            if value[0] in NUMBERS:
                numbers.append(value)
                measured = measured or value[0] in MEASURED
            else:
                self._codes[value] = len(self._codes)
        code = len(self._codes)
        for chain in _chains(numbers, policy) if measured else ([number] for number in numbers):
            for value in chain:
                self._codes[value] = code
            if not _all_equal(chain, policy):
                loose.add(code)
            code += 1
        self.loose = frozenset(loose)

    def __getitem__(self, value: Value) -> int:
        return self._codes[value]


def _chains(numbers: list[Value], policy: SqlPolicy) -> Iterable[list[Value]]:
    """Runs of sorted numbers in which each is near to the next."""
    numbers.sort(key=lambda value: value[1])
    chain: list[Value] = []
    for number in numbers:
        if chain and not near(chain[-1], number, policy):
            yield from _linked(chain)
            chain = []
        chain.append(number)
    yield from _linked(chain)


def _linked(chain: list[Value]) -> Iterable[list[Value]]:
    """The chain, or its numbers one by one if all of them are exact."""
    if all(number[0] == "int" for number in chain):
        return ([number] for number in chain)
    return [chain]


def _all_equal(chain: Sequence[Value], policy: SqlPolicy) -> bool:
    if len(chain) > _MOST_PAIRED:
        return False
    return all(equal(a, b, policy) for a, b in itertools.combinations(chain, 2))
