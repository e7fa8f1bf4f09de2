"""Numbers that options may have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import UsageError
from toolenvs.ranges import checked_number, checked_whole


@given(st.integers(-5, 15))
def test_whole_numbers_in_range_pass_and_no_others(value: int) -> None:
    """Numpy's too, as Python's own."""
    for given_as in (value, np.int64(value)):
        if 0 <= value <= 9:
            assert type(checked_whole("n", given_as, most=9)) is int
        else:
            with pytest.raises(UsageError, match=r"n=.*must be a whole number from 0 to 9\."):
                checked_whole("n", given_as, most=9)


@pytest.mark.parametrize("value", [True, None, "3", 3.0, math.nan, int, [3]])
def test_what_is_no_whole_number_is_refused_by_name(value: Any) -> None:
    """A text, a fraction, a flag and a type are none."""
    with pytest.raises(UsageError, match=r"n=.*must be a whole number of 1 or more\."):
        checked_whole("n", value, least=1)


@pytest.mark.parametrize("value", [True, None, "3", math.nan, math.inf, -1, 0])
def test_numbers_are_finite_and_in_range(value: Any) -> None:
    """The end itself is left out where it is to be."""
    with pytest.raises(UsageError, match=r"x=.*must be a finite number above 0, to 2\."):
        checked_number("x", value, most=2, above=True)
    assert checked_number("x", 2, most=2, above=True) == 2
