"""Citation marks and quotations in answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.citing import invented_quotes, marked_ids, without_marks

PAGE = "Lyon is the river-side town, built in 43 BC. It has 522,250 inhabitants."


@pytest.mark.parametrize(
    ("answer", "bare"),
    [
        ("Lyon [2]", "Lyon"),
        ("Lyon [2][5].", "Lyon"),
        ("Lyon [2], [5]", "Lyon [2],"),
        ("Lyon", "Lyon"),
        ("Lyon.", "Lyon."),
        ("[2]", "[2]"),
        ("a[0] is it", "a[0] is it"),
        ("a ]", "a ]"),
        ("", ""),
    ],
)
def test_marks_at_the_end_are_no_answer(answer: str, bare: str) -> None:
    """They go, unless there is nothing else."""
    assert without_marks(answer) == bare


def test_marks_name_ids() -> None:
    """Several in one mark, titles with commas, and repeats in order."""
    assert marked_ids("Lyon [2, 5][7; 8] [2]", ()) == ["2", "5", "7", "8", "2"]
    assert marked_ids("x [Stanton, Tennessee]", {"Stanton, Tennessee"}) == ["Stanton, Tennessee"]
    assert marked_ids("no marks (2)", ()) == []


@pytest.mark.parametrize(
    "quote",
    [
        "the river-side town, built",
        "the river‑side town , built",
        "The RIVER–SIDE town built",
        "has 522250 inhabitants",
    ],
)
def test_honest_quotes_are_found(quote: str) -> None:
    """Quote and source go through one normal form."""
    assert invented_quotes(f"Quote: “{quote}” [2]", [PAGE]) == []


@pytest.mark.parametrize(
    "quote",
    ["built in 44 BC", "has 522,251 inhabitants", "the river-side village, built", "in 43 B"],
)
def test_changed_quotes_are_not(quote: str) -> None:
    """One digit, one word, half a word."""
    assert len(invented_quotes(f'It says "{quote}" there', [PAGE, "other"])) == 1


def test_titles_and_quoted_answers_are_no_quotations() -> None:
    """Fewer than three words, and an answer that stands in quotation marks as a whole."""
    assert invented_quotes('the song "Love Me"', [PAGE]) == []
    assert invented_quotes('"Gone with the Wind"', [PAGE]) == []
    assert invented_quotes("6'2\" tall and then 7'1\"", [PAGE]) == []


@given(st.integers(100, 9999), st.integers(0, 9))
def test_a_quote_with_one_digit_changed_is_invented(number: int, last: int) -> None:
    """Whatever the number."""
    page = f"In the year {number} the bridge fell."
    wrong = number - number % 10 + last
    found = invented_quotes(f'Source: "the year {wrong} the bridge"', [page])
    assert bool(found) == (wrong != number)
