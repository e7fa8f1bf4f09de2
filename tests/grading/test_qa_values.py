"""Dates and numbers in words."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.qa_values import Date, digits_for_words, read_date

UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def spelled(number: int) -> str:
    """A number below 10^9 in English words."""
    for size, name in ((10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {spelled(number % size)}" if number % size else ""
            return f"{spelled(number // size)} {name}{rest}"
    if number < 20:
        return UNITS[number]
    return TENS[number // 10] + (f" {UNITS[number % 10]}" if number % 10 else "")


@given(st.integers(0, 10**9 - 1))
def test_every_number_in_words_is_that_in_digits(number: int) -> None:
    """Also with what stands around it."""
    assert digits_for_words(spelled(number).split()) == (str(number),)
    around = ["about", *spelled(number).split(), "ships"]
    assert digits_for_words(around) == ("about", str(number), "ships")


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("one hundred and five", "105"),
        ("seven and eight", "7 and 8"),
        ("one two three", "1 2 3"),
        ("twenty first century", "21st century"),
        ("the twelfth night", "the 12th night"),
        ("one hundred and eleventh", "111th"),
        ("$1.5 million", "$1500000"),
        ("2 thousand", "2000"),
        ("million", "million"),
        ("and", "and"),
        ("hundred and one dalmatians", "101 dalmatians"),
        ("", ""),
    ],
)
def test_numbers_end_where_they_do(words: str, digits: str) -> None:
    """Words that do not go on with a number begin the next, or are none."""
    assert " ".join(digits_for_words(words.split())) == digits


@given(st.dates(datetime.date(1000, 1, 1)))
def test_a_date_is_read_in_each_of_its_forms(day: datetime.date) -> None:
    """Day first, month first, and as ISO writes it."""
    month = f"{day:%B}".lower()
    for text in (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day} {day.year}",
        f"{month[:3]} {day.day}th {day.year}",
        f"the {day.day}th of {month} {day.year}",
        day.isoformat(),
    ):
        assert read_date(text) == Date(day.year, day.month, day.day)


@pytest.mark.parametrize("text", ["31 february 2018", "5/6/2018", "may", "2018", "13 2018", ""])
def test_what_is_no_date(text: str) -> None:
    """Days that do not exist, and forms that leave something to guess."""
    assert read_date(text) is None
