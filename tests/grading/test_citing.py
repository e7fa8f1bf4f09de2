"""Citation marks and quotations in answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.citing import invented_quotes, marked_ids, split_ids, without_marks

PAGE = "Lyon is the river-side town, built in 43 BC. It has 522,250 inhabitants."


@pytest.mark.parametrize(
    ("answer", "bare"),
    [
        ("Lyon [2]", "Lyon"),
        ("Lyon [2][5].", "Lyon"),
        ("Lyon [2], [5]", "Lyon"),
        ("Lyon [2, 5]", "Lyon"),
        ("yes [no]", "yes [no]"),
        ("Lyon [or maybe Paris]", "Lyon [or maybe Paris]"),
        ("Lyon [2, Paris]", "Lyon [2, Paris]"),
        ("Lyon [Rhone,  river]", "Lyon"),
        ("Lyon [Rhone, river] [or Paris]", "Lyon [or Paris]"),
        ("[Rhone, river] Lyon", "Lyon"),
        ("Lyon [Rhone, river], France [D.C.; x]", "Lyon, France"),
        ("Lyon [Rhone, river] and [D.C.; x]", "Lyon"),
        ("Lyon [D.C.; x, Rhone, river; 2]", "Lyon"),
        ("Lyon [a [1]]", "Lyon"),
        ("**Lyon [2]**", "**Lyon**"),
        ('"Lyon [2]"', '"Lyon"'),
        ("(Lyon [2])", "(Lyon)"),
        ("Lyon ([2])", "Lyon ()"),
        ("Lyon [2] and [3]", "Lyon"),
        ("Lyon [2]!", "Lyon!"),
        ("Lyon [[2]]", "Lyon []"),
        ("Lyon [^2]", "Lyon"),
        ("Lyon [id: 2, source: 3]", "Lyon"),
        ('Lyon ["Rhone, river"]', "Lyon"),
        ("Lyon【２】", "Lyon"),
        ("Lyon [2] France", "Lyon [2] France"),
        ("Lyon [no: 2]", "Lyon [no: 2]"),
        ("Lyon", "Lyon"),
        ("Lyon.", "Lyon."),
        ("[2]", "[2]"),
        ("a[0] is it", "a[0] is it"),
        ("a ]", "a ]"),
        ("", ""),
    ],
)
def test_marks_are_no_answer(answer: str, bare: str) -> None:
    """They go if they name known ids, or at the end numbers, unless nothing else is left."""
    assert without_marks(answer, {"Rhone, river", "D.C.; x", "a [1]"}) == bare


def test_marks_name_ids() -> None:
    """Several in one mark, titles with commas, and repeats in order."""
    assert marked_ids("Lyon [2, 5][7; 8] [2]", ()) == ["2", "5", "7", "8", "2"]
    assert marked_ids("x [Stanton, Tennessee]", {"Stanton, Tennessee"}) == ["Stanton, Tennessee"]
    assert marked_ids("no marks (2)", ()) == []
    assert marked_ids("x [Paris, Texas]", {"Stanton, Tennessee"}) == ["Paris, Texas"]
    assert marked_ids('"built[1] in 1914 [2]" [3]', {"2"}) == ["2", "3"]


@given(st.lists(st.sampled_from(["a", "a, b", "b", "b; c, d", "e [f], g", "g"]), min_size=1))
def test_a_mark_that_lists_known_ids_is_read_as_known_ids(ids: list[str]) -> None:
    """Whatever separators and brackets they hold, and none of its words is lost."""
    known = {"a", "a, b", "b", "b; c, d", "e [f], g", "g"}
    listed = "; ".join(ids)
    for found in (split_ids(listed, known), marked_ids(f"Lyon [{listed}]", known)):
        assert set(found) <= known
        assert re.findall(r"\w", "".join(found)) == re.findall(r"\w", listed)


def test_a_long_list_takes_no_quadratic_time() -> None:
    """Nor do many brackets."""
    known = frozenset({", ".join("x" * 400), "a [1]", "b, c"})
    for answer in ("[" + "a, " * 30_000 + "]", "[" * 50_000, "[a [1], " * 10_000, "[1]" * 30_000):
        assert without_marks(answer, known)
        assert marked_ids(answer, known) is not None


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


@pytest.mark.parametrize(
    "quote",
    [
        '"Lyon is the ... town, built in 43 BC"',
        '"Lyon is […] built in 43 BC"',
        '"... the river-side town … has 522,250 inhabitants ..."',
        "\u2018the river-side town\u2019",
        "``the river-side town''",
    ],
)
def test_an_honest_quote_may_leave_words_out(quote: str) -> None:
    """Its parts stand in the text in this order."""
    assert invented_quotes(f"It says {quote} there", [PAGE]) == []


@pytest.mark.parametrize(
    "quote",
    [
        '"town, built in 43 BC"',
        '"town,[1] built in 43 BC"',
        '"town, built in 43 BC [Lyon]"',
        '"town, built in 43 BC [2]."',
        '"[t]he river-side town"',
        '"inhabitants, and the river"',
    ],
)
def test_footnotes_and_marks_are_no_part_of_a_quote(quote: str) -> None:
    """Nor of what is quoted."""
    page = (
        "The river-side town,[1][citation needed] built in 43[2] BC. inhabitants[3], and the river"
    )
    assert invented_quotes(f"It says {quote} there", [page], {"Lyon"}) == []


@pytest.mark.parametrize(
    "quote",
    [
        '"built in 43 BC ... the river-side town"',
        '"the river-side town ... built in 44 BC"',
        'x"this was made up"',
        '"this was made up"x',
        '5"this was made up"',
        "''this was made up''",
        "``this was made up''",
        "\u2018it\u2019s all made up\u2019",
        "\u201ethis was made up\u201c",
        "\u275dthis was made up\u275e",
        "「this was made up」",
        "&quot;this was made up&quot;",
        '"this was\nmade up"',
        '"' + "this was made up " * 300 + '"',
        "x " * 6000 + '"this was made up"',
    ],
)
def test_no_way_to_write_a_quote_hides_it(quote: str) -> None:
    """Whatever its marks, its length and what stands beside it."""
    assert len(invented_quotes(f"It says {quote} there", [PAGE])) == 1


@given(st.text("\"'`.x 5\n\u2018\u2019\u201c…[]", max_size=40))
def test_quotes_are_found_in_any_text(text: str) -> None:
    """Without an error, and none is invented that was there to quote."""
    assert invented_quotes(text, [text]) == []


@given(st.integers(100, 9999), st.integers(0, 9))
def test_a_quote_with_one_digit_changed_is_invented(number: int, last: int) -> None:
    """Whatever the number."""
    page = f"In the year {number} the bridge fell."
    wrong = number - number % 10 + last
    found = invented_quotes(f'Source: "the year {wrong} the bridge"', [page])
    assert bool(found) == (wrong != number)
