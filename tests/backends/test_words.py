"""Snippets: the part of a text that fits a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.backends._words import snippet

FILLER = "Nothing of note is said in this sentence at all. " * 30


def test_a_short_text_is_whole() -> None:
    """In one line."""
    assert snippet("A city.\n\nIn France.", "oslo") == "A city. In France."


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_part_with_the_words_is_shown(place: int) -> None:
    """Wherever it stands; it begins with its sentence."""
    told = "The treaty was signed in Oslo by two kings. "
    text = FILLER * place + told + FILLER * (2 - place)
    shown = snippet(text, "Who signed a treaty at Oslo?", most=120)
    assert told.strip() in shown
    assert shown.startswith("... ") == (place > 0)
    assert shown.endswith(" ...") == (place < 2)


def test_rare_words_count_more_than_common_ones() -> None:
    """A window with the one word that stands once is better than one with a frequent word."""
    text = "city city city city. " + FILLER + "A city of gold. " + FILLER
    assert "gold" in snippet(text, "city gold", most=100)


def test_endings_are_forgiven() -> None:
    """The query's word need not stand there letter by letter."""
    assert "campers" in snippet(FILLER + "The campers left. " + FILLER, "camper", most=100)


def test_without_the_words_it_is_the_beginning() -> None:
    """As when a page was found by its title, or by meaning."""
    assert snippet(FILLER, "zebra", most=50).startswith("Nothing of note")


@given(text=st.text(), query=st.text(), most=st.integers(20, 200))
def test_a_snippet_is_one_line_of_the_text(text: str, query: str, most: int) -> None:
    """For all texts: bounded, in one line, and nothing but the text and dots."""
    shown = snippet(text, query, most=most)
    assert len(shown) <= most + 8
    assert len(shown.splitlines()) <= 1
    flat = " ".join(text.split())
    assert shown.removeprefix("... ").removesuffix(" ...") in flat or shown in flat
