"""Plainly written numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.numerals import read_based, read_integer, read_plain, read_repeating


@given(top=st.integers(), bottom=st.integers(min_value=1))
def test_a_fraction_is_read_exactly(top: int, bottom: int) -> None:
    """Fractions of any size keep their exact value."""
    assert read_plain(f"{top}/{bottom}") == Fraction(top, bottom)


@given(value=st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_a_decimal_is_an_exact_rational(value: object) -> None:
    """A decimal is the rational that its digits say, not a float near it."""
    assert read_plain(f"{value:f}") == Fraction(str(value))


@pytest.mark.parametrize("length", [1, 3999, 4000, 4001, 9000])
def test_long_integers_pass_the_limit_of_the_interpreter(length: int) -> None:
    """Python refuses to convert more than 4300 digits; here any number of them is read."""
    assert read_integer("9" * length) == 10**length - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.", 7),
        (".5", Fraction(1, 2)),
        ("-.5", Fraction(-1, 2)),
        ("+7", 7),
        ("-0", 0),
        ("1,234,567.5", Fraction(2469135, 2)),
        ("1e3", 1000),
        ("6.72e-5", Fraction(672, 10**7)),
        ("1/0", None),
        ("1,00", None),
        ("0,123", None),
        ("1,0000", None),
        ("٧", None),
        ("７", None),
        ("1_000", None),
        ("0x7", None),
        ("--7", None),
        ("7 7", None),
        ("", None),
        ("e", None),
        ("nan", None),
        ("1" * 10_001, None),
    ],
)
def test_only_plain_numbers_are_plain(text: str, value: Fraction | int | None) -> None:
    """Anything but a number in ASCII digits, well grouped, is left to the full reader."""
    assert read_plain(text) == value


def test_repeating_decimals_and_bases() -> None:
    """0.1(6) is 1/6; digits beyond a base are no number of it."""
    assert read_repeating("0", "1", "6") == Fraction(1, 6)
    assert read_based("134", 5) == 44
    assert read_based("1A", 16) == 26
    assert read_based("135", 5) is None
    assert read_based("1", 1) is None
