"""Units, dates and times."""

from __future__ import annotations

import pytest

from toolenvs.grading.moments import read_clock, read_date
from toolenvs.grading.units import read_unit, split_magnitude, unit_words


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("cm", "centimetre"),
        ("Centimeters", "centimetre"),
        ("square inches", "inch^2"),
        ("inches^2", "inch^2"),
        ("in^{2}", "inch^2"),
        ("sq. ft.", "foot^2"),
        ("cubic feet", "foot^3"),
        ("miles per hour", "hour^-1 mile"),
        ("mph", "hour^-1 mile"),
        ("m/s^2", "metre second^-2"),
        ("meters per second squared", "metre second^-2"),
        ("apples", "apple"),
        ("berries", "berry"),
        ("boxes", "box"),
        ("classes", "class"),
        ("years old", "year"),
        ("units", ""),
        ("not", None),
        ("more than", None),
        ("halves", None),
        ("million", None),
        ("x", None),
        ("7", None),
        ("", None),
    ],
)
def test_spellings_of_a_unit_are_one(text: str, unit: str | None) -> None:
    """A unit has one spelling; a word that changes the meaning of a number is none."""
    assert read_unit(text) == unit


@pytest.mark.parametrize("word", ["nope", "false", "pairs", "widgets", "squared", "square", "per"])
def test_an_answer_has_no_units_but_known_ones(word: str) -> None:
    """Beside a gold answer a word counts if a table or the gold answer itself has it."""
    assert read_unit(word, named=frozenset()) is None
    assert read_unit("apples", named=frozenset()) == "apple"
    assert read_unit("widgets", named=unit_words("hour^-1 widget")) == "widget"


def test_magnitudes_are_factors() -> None:
    """Million, dozen and their like multiply; what follows them is the unit."""
    assert split_magnitude("million dollars") == (10**6, "dollars")
    assert split_magnitude("hundred thousand") == (10**5, "")
    assert split_magnitude("dozen of eggs") == (12, "eggs")
    assert split_magnitude("eggs") == (1, "eggs")


@pytest.mark.parametrize("text", ["June 5, 2020", "5 June 2020", "Jun. 5th, 2020", "2020-06-05"])
def test_spellings_of_a_date_are_one(text: str) -> None:
    """A date has one spelling."""
    assert read_date(text) == "2020-06-05"


def test_what_is_no_moment_is_none() -> None:
    """A month that does not exist and an hour after twelve are refused."""
    assert read_date("Juneau 5") is None
    assert read_date("2020-13-05") is None
    assert read_clock("13:00 pm") is None
    assert read_clock("11:75 pm") is None
    assert read_clock("11:30 p.m.") == read_clock("11:30PM") == "11:30 pm"
    assert read_clock("12 noon") == "12:00 pm"
