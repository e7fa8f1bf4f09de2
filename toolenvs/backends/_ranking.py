"""The order of what was found: by score, and where scores are equal by id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TOLERANCE = 2e-6
"""Scores that differ by less, relatively, are equal: sums of 32-bit numbers are no exacter."""

Scored = tuple[float, int]
"""A score and the place of a passage."""


def equal_scores(one: float, other: float) -> bool:
    """Tell whether two scores are equal but for rounding."""
    return abs(one - other) <= TOLERANCE * max(abs(one), abs(other))


def cut_is_clear(found: Sequence[Scored], top_k: int) -> bool:
    """Tell whether what follows the last of ``found`` cannot be among the ``top_k`` best.

    Args:
        found: the best of all that there are, the best first.
        top_k: how many are wanted.
    """
    return len(found) > top_k and not equal_scores(found[top_k - 1][0], found[-1][0])


def in_order(found: Sequence[Scored], top_k: int, id_of: Callable[[int], str]) -> list[Scored]:
    """The ``top_k`` best; equal scores become one number and are ordered by id.

    Args:
        found: scores and places, the best first.
        top_k: how many are wanted.
        id_of: the id of the passage at a place.
    """
    ordered: list[Scored] = []
    start = 0
    while start < len(found) and len(ordered) < top_k:
        end = start + 1
        while end < len(found) and equal_scores(found[end - 1][0], found[end][0]):
            end += 1
        group = [place for _, place in found[start:end]]
        if len(group) > 1:
            group.sort(key=id_of)
        ordered += [(found[start][0], place) for place in group]
        start = end
    return ordered[:top_k]
