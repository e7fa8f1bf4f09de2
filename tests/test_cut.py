"""A cut text fits, says that it was cut, and keeps its two ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolenvs.cut import cut, utf8_size


@given(st.text(max_size=400), st.integers(0, 300), st.sampled_from([len, utf8_size]))
def test_the_result_fits_and_an_uncut_text_is_itself(
    text: str, limit: int, measure: object
) -> None:
    """For all texts, limits and measures: never larger, and flagged exactly when changed."""
    size = utf8_size if measure is utf8_size else len
    shortened, was_cut = cut(text, limit, size)
    assert size(shortened) <= limit
    assert was_cut == (shortened != text)
    assert was_cut == (size(text) > limit)


def test_head_and_tail_stay_and_the_marker_counts() -> None:
    """The reader sees both ends and how much is missing between them."""
    text = "HEAD" + "-" * 5000 + "TAIL"
    shortened, was_cut = cut(text, 100)
    assert was_cut
    assert shortened.startswith("HEAD")
    assert shortened.endswith("TAIL")
    head, _, rest = shortened.partition("\n[... ")
    number, _, tail = rest.partition(" characters left out ...]\n")
    assert len(head) + int(number) + len(tail) == len(text)


def test_two_characters_are_the_head() -> None:
    """Where no marker fits, the beginning is kept (C06 e)."""
    assert cut("Hello World!", 2) == ("He", True)
