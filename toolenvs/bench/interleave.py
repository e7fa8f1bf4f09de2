"""Time several ways of doing one thing in turn: A B C A B C ..., so that all meet the same load."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from toolenvs.errors import UsageError

K = TypeVar("K")

Timed = Callable[[], float]
"""Does it once, checks what came out, and returns the seconds that the doing alone took."""

Progress = Callable[[], None]
"""Called at the end of each round, those of the warm-up too."""


def interleave(
    ways: Mapping[K, Timed], *, repeats: int, warmup: int = 1, progress: Progress | None = None
) -> dict[K, list[float]]:
    """Run each way once in every round; ``warmup`` rounds do not count, ``repeats`` do.

    Returns:
        Seconds by way; the i-th value of each comes from the i-th round, so values pair up.

    Raises:
        UsageError: There is nothing to run.
    """
    if repeats < 1 or warmup < 0 or not ways:
        raise UsageError(f"repeats={repeats}: give at least 1, and something to run.")
    seconds: dict[K, list[float]] = {key: [] for key in ways}
    for number in range(warmup + repeats):
        for key, timed in ways.items():
            took = timed()
            if number >= warmup:
                seconds[key].append(took)
        if progress is not None:
            progress()
    return seconds


def clocked(action: Callable[[], object]) -> float:
    """Seconds that one call of ``action`` takes, at least one tick of the clock."""
    began = time.perf_counter_ns()
    action()
    return max(1, time.perf_counter_ns() - began) / 1e9
