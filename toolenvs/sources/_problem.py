"""What a problem generator returns, and how its program is filled in."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np


class Problem(NamedTuple):
    """A generated problem.

    Attributes:
        prompt: the question.
        answer: what the reference implementation computed.
        program: Python (standard library, numpy, sympy) that prints the answer; where there is
            another way than the reference's, it takes that one, so that the two check each other.
    """

    prompt: str
    answer: str
    program: str


def fill(template: str, **values: Any) -> str:
    """Put ``values`` into a program as literals where ``$name`` stands, and dedent it.

    Values are numbers, texts and lists of these that a generator drew, written by ``repr``.
    """
    program = textwrap.dedent(template).lstrip("\n")
    for name in sorted(values, key=len, reverse=True):
        program = program.replace(f"${name}", repr(values[name]))
    return program


def whole(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return int(rng.integers(low, high + 1))


def several(rng: np.random.Generator, n: int, low: int, high: int) -> list[int]:
    """``n`` whole numbers from ``low`` to ``high``, both included."""
    return [whole(rng, low, high) for _ in range(n)]
