"""Summaries of timings that hold without any assumption on how timings are distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

CONFIDENCE = 0.95


class Interval(msgspec.Struct, frozen=True):
    """A median with an interval for it.

    Attributes:
        median: the sample's median.
        low, high: two of the sample's own values between which the median of the whole
            population lies with probability ``confidence``.
        confidence: at least 0.95 from 6 values on; with fewer, what smallest and largest can give.
        n: number of values.
    """

    median: float
    low: float
    high: float
    confidence: float
    n: int


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which ``percent`` (0 to 100) of the sample lies, interpolated linearly.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("a percentile needs at least one value.")
    return float(np.percentile(np.asarray(values, dtype=np.float64), percent))


def median_interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval:
    """The median and the narrowest pair of order statistics that holds it with ``confidence``.

    The k-th smallest and k-th largest of n independent values miss the population's median with
    probability ``2 P(Bin(n, 1/2) < k)``, whatever the distribution (the sign test inverted).

    Raises:
        ValueError: There are no values.

    Source: W. J. Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("an interval needs at least one value.")
    missed = math.ldexp(1.0, 1 - n)  # by smallest and largest; 1 for a single value
    rank, chance = 1, missed
    for k in range(2, (n + 1) // 2 + 1):
        chance += math.ldexp(1.0, 1 - n) * math.comb(n, k - 1)
        if chance > 1.0 - confidence:
            break
        rank, missed = k, chance
    return Interval(
        median=percentile(ordered, 50.0),
        low=ordered[rank - 1],
        high=ordered[n - rank],
        confidence=1.0 - missed,
        n=n,
    )


def paired_ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """``over[i] / under[i]``: each pair was measured in the same round of an interleaved run.

    Raises:
        ValueError: The lengths differ, or a value is not above 0.
    """
    if len(over) != len(under):
        raise ValueError(f"{len(over)} and {len(under)} values do not pair up.")
    if not all(value > 0 for value in (*over, *under)):
        raise ValueError("timings to compare must be above 0.")
    return [a / b for a, b in zip(over, under, strict=True)]
