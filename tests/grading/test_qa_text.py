"""Signs, powers, marks of markdown: what a normal form keeps, and what it takes for spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.qa import QaPolicy, check_gold, grade, overlap
from toolenvs.grading.qa_text import unify

VALUES = (
    *(
        "5",
        "2.5",
        "½",
        "π",
        "∞",
        "infinity",
        "x",
        "√2",
        "five",
        "inf",
        "Ⅳ",
        "٣",
        ".5",
        "5%",
        "5 km",
    ),
    *("$5", "US$5", "R$5", "₩5", "₽5", "₿5", "USD 5", "$5 million", "(5)", "(3+4)", "[5]", '"5"'),
)
PLACES = (
    "{}",
    "({})",
    '"{}"',
    "'{}'",
    "x = {}",
    "x={}",
    "from {} to 9",
    "x, {}",
    ">{}",
    "{} or so",
)
DASHES = "-\u2212\u2013\u2014\u2012\ufe63\uff0d"


@given(st.sampled_from(VALUES), st.sampled_from(PLACES), st.sampled_from(DASHES))
def test_a_sign_is_never_lost(value: str, place: str, dash: str) -> None:
    """Before whatever it stands, and wherever that stands."""
    positive, negative = place.format(value), place.format(dash + value)
    assert not grade(positive, negative).correct
    assert not grade(negative, positive).correct
    assert grade(negative, place.format(f"-{value}")).correct
    assert overlap(positive, negative).f1 < 1.0


@given(st.sampled_from(("C", "Lyon", "5", "New York")), st.sampled_from("+#%$€₩°^²=~<>±√♭½"))
def test_a_symbol_is_never_lost(name: str, symbol: str) -> None:
    """Before a name or behind it."""
    for text in (name + symbol, symbol + name):
        assert not grade(name, text).correct
        assert not grade(text, name).correct


short = st.lists(st.sampled_from([*"5-.,x²₂½&#;`<>()[]\"'/*_ $", "km", "a ", " an ", "&#53;"]))


@given(short.map("".join), short.map("".join))
def test_no_digit_is_lost(one: str, other: str) -> None:
    """Equal answers have the same digits."""
    policy = QaPolicy(dates="text")
    if check_gold(one).gradable and grade(one, other, policy=policy).correct:
        found = [sorted(filter(str.isdigit, unify(text))) for text in (one, other)]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- $5", "-$5"),
        ("-(5)", "-5"),
        ("- (5)", "-5"),
        ("- -5", "-5"),
        ("--π", "-π"),
        ("- Lyon", "Lyon"),
        ("- **Lyon**", "Lyon"),
        ('- "Heroes"', "Heroes"),
        ("> Lyon", "Lyon"),
        ("Yahoo!-owned", "Yahoo owned"),
        ("well-", "well"),
        ("x²", "x^2"),
        ("Ca²⁺", "Ca2+"),
        ("OH⁻", "OH-"),
        ("C₁₂H₂₂", "C12H22"),
        ("`Lyon`", "Lyon"),
        ("O`Brien", "O'Brien"),
        ("```\nLyon\n```", "Lyon"),
        ("```python\nprint(5)\n```", "print(5)"),
        ("**Lyon**.", "Lyon"),
        ("**New York**, ", "New York"),
        ("<Lyon>", "Lyon"),
        ("&lt;Lyon&gt;", "Lyon"),
        ("R&amp;D", "R and D"),
        ("東京 タワー", "東京タワー"),
        ("❝Heroes❞", "Heroes"),
    ],
)
def test_how_it_is_written_does_not_matter(one: str, other: str) -> None:
    """Bullets, code, emphasis, entities, and raised signs."""
    assert grade(one, other).correct
    assert grade(other, one).correct
    assert overlap(one, other).f1 == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-(3+4)", "-3+4"),
        ("x:-y", "x:y"),
        ("x/-y", "x/y"),
        ("C--", "C"),
        ("C--", "C++"),
        ("10--", "10"),
        ("π-", "π"),
        ("$-", "$"),
        ("- $5", "$5"),
        ("x²", "x2"),
        ("πr²", "πr2"),
        ("E = mc²", "E = mc2"),
        ("Ca²⁺", "Ca²"),
        ("101₂", "1012"),
        ("a<b", "a>b"),
        ("<5", "5"),
        ("A*.", "A."),
        ("```5\n6```", "6"),
    ],
)
def test_what_may_mean_something_matters(one: str, other: str) -> None:
    """Marks of calculating, powers and comparisons."""
    assert not grade(one, other).correct
    assert not grade(other, one).correct


@pytest.mark.parametrize(
    "gold",
    [
        *"¿。•=~^`|·<\u0301\x00\ufeff",
        "¿?",
        "<>",
        "a an",
        "the an",
        "The a",
        "=~",
        "&nbsp;",
        "- -",
        "-(",
    ],
)
def test_marks_and_articles_that_are_no_answer(gold: str) -> None:
    """Whatever the script; what may be a name or a symbol that was asked for is one."""
    assert not check_gold(gold).gradable
    for fine in ("%", "+", "$", "&", "*", "#", "!!!", "♪", "½", "a", "The The", "°"):
        assert check_gold(fine).gradable
