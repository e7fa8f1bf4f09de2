"""Interleaved runs: every way once a round, in order, warm-up not counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.bench.interleave import clocked, interleave
from toolenvs.errors import UsageError


@given(st.integers(1, 6), st.integers(0, 3), st.integers(1, 4))
def test_rounds_take_turns_and_values_pair_up(repeats: int, warmup: int, ways: int) -> None:
    """Order is A B C A B C ...; the i-th value of every way is of the i-th counted round."""
    order: list[int] = []

    def way(number: int) -> Callable[[], float]:
        def once() -> float:
            order.append(number)
            return float(len(order))

        return once

    rounds: list[int] = []
    seconds = interleave(
        {i: way(i) for i in range(ways)},
        repeats=repeats,
        warmup=warmup,
        progress=lambda: rounds.append(len(order)),
    )
    assert order == list(range(ways)) * (warmup + repeats)
    for i in range(ways):
        assert seconds[i] == [float((warmup + r) * ways + i + 1) for r in range(repeats)]
    assert rounds == [ways * (r + 1) for r in range(warmup + repeats)]


def test_a_run_of_nothing_is_refused() -> None:
    """No repeat or no way gives no figure."""
    with pytest.raises(UsageError, match="repeats=0"):
        interleave({"a": lambda: 1.0}, repeats=0)
    with pytest.raises(UsageError, match="something to run"):
        interleave({}, repeats=1)


def test_a_failing_way_ends_the_run() -> None:
    """A wrong answer is an error, not a figure."""

    def broken() -> float:
        raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"):
        interleave({"a": lambda: 1.0, "b": broken}, repeats=3)


def test_a_clocked_action_takes_time() -> None:
    """Even nothing takes one tick, so ratios exist."""
    assert clocked(lambda: None) > 0
