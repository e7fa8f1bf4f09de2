"""Statistics of timings: what holds for every sample."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.bench.statistics import median_interval, paired_ratios, percentile

seconds = st.floats(min_value=1e-6, max_value=1e4)
samples = st.lists(seconds, min_size=1, max_size=60)


@given(samples)
def test_percentiles_are_ordered_and_inside_the_sample(values: list[float]) -> None:
    """Min <= p50 <= p95 <= max, up to the rounding of the interpolation."""
    p50, p95 = percentile(values, 50), percentile(values, 95)
    assert min(values) <= p50 * (1 + 1e-12)
    assert p50 <= p95 * (1 + 1e-12)
    assert p95 <= max(values) * (1 + 1e-12)


@given(samples)
def test_the_interval_holds_the_median_and_ends_at_sample_values(values: list[float]) -> None:
    """Low and high are values of the sample, on either side of its median."""
    interval = median_interval(values)
    assert interval.low <= interval.median * (1 + 1e-12)
    assert interval.median <= interval.high * (1 + 1e-12)
    assert {interval.low, interval.high} <= set(values)
    assert interval.n == len(values)


@given(st.lists(seconds, min_size=6, max_size=200))
def test_the_interval_keeps_its_confidence(values: list[float]) -> None:
    """From six values on the stated confidence is at least 95 percent."""
    assert 0.95 <= median_interval(values).confidence < 1.0


@given(samples)
def test_the_interval_does_not_depend_on_order(values: list[float]) -> None:
    """A sample is a set: reversing it changes nothing."""
    assert median_interval(values) == median_interval(values[::-1])


def test_the_interval_matches_the_published_ranks() -> None:
    """N = 10 gives ranks 2 and 9 (97.9 percent); n = 20 gives ranks 6 and 15 (95.9 percent)."""
    ten = median_interval([float(i) for i in range(1, 11)])
    twenty = median_interval([float(i) for i in range(1, 21)])
    assert (ten.low, ten.high) == (2.0, 9.0)
    assert ten.confidence == pytest.approx(0.9785, abs=1e-4)
    assert (twenty.low, twenty.high) == (6.0, 15.0)
    assert twenty.confidence == pytest.approx(0.9586, abs=1e-4)


def test_few_values_state_what_little_they_can_say() -> None:
    """Three values: smallest and largest, 75 percent; one value: no confidence at all."""
    assert median_interval([3.0, 1.0, 2.0]).confidence == pytest.approx(0.75)
    assert median_interval([3.0]).confidence == 0.0


@given(samples, st.floats(min_value=0.01, max_value=100))
def test_ratios_of_a_multiple_are_that_factor(values: list[float], factor: float) -> None:
    """Pairs that differ by a constant factor give it in every round."""
    ratios = paired_ratios([value * factor for value in values], values)
    assert ratios == pytest.approx([factor] * len(values))


def test_samples_that_cannot_be_compared_are_refused() -> None:
    """No value, unequal lengths and a time of 0 are errors, not figures."""
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])
    with pytest.raises(ValueError, match="pair up"):
        paired_ratios([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="above 0"):
        paired_ratios([1.0], [0.0])
