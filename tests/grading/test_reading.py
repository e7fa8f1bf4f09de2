"""Reading whole answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.nodes import Node, ReadError
from toolenvs.grading.notation import normalize, outer_brackets, split_items
from toolenvs.grading.reading import read_answer

PIECES = [*"x17{}()[]\\,.^_+-*/= $%!|&:", "\\frac", "\\sqrt", "\\text", " and ", "\\begin{matrix}"]
mathematics = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def op_of(text: str) -> str:
    """Return the form that a text is read as."""
    return read_answer(normalize(text)).op


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (r"$\left(\dfrac{1}{2},\,3\right).$", r"(\frac{1}{2}, 3)"),
        (r"\(7\)", "7"),
        ("$5", "＄5"),
        ("$5$", "5"),
        (r"\$5", "＄5"),
        (r"7,\!250", "7250"),
        (r"11,\! 111,\! 111", "11111111"),
        ("7{,}250", "7250"),
        (r"10\,080", "10080"),
        (r"(1,\,200)", "(1, 200)"),
        ("The answer is $5$.", "5"),
        ("**5**", "5"),
        ('"Evelyn"', "Evelyn"),
        ("x² − 5", "x^{2} - 5"),
        ("0.333...", "0.333..."),
        (r"\text{and}", "and"),
        (r"a \\ b", r"a \\ b"),
        ("6.02 x 10^23", r"6.02\times 10^23"),
    ],
)
def test_notations_become_one(text: str, normal: str) -> None:
    """What carries no meaning is taken away, and nothing else."""
    assert normalize(text) == normal


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("7", "num"),
        ("2 1/3", "add"),
        ("3, 11", "list"),
        ("1,000, 2,000", "list"),
        ("7,250", "num"),
        ("(7,250)", "tuple"),
        ("[2,5)", "interval"),
        ("[1, 2, 3]", "list"),
        (r"\{3\}", "set"),
        ("{3, 11}", "set"),
        (r"(0,9) \cup (9,36)", "union"),
        (r"1 \pm \sqrt{19}", "list"),
        (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", "matrix"),
        ("x = 5", "named"),
        ("f(x) = 2x", "named"),
        ("2x = 10", "rel"),
        (r"-2 \leq x < 7", "rel"),
        (r"x \in [1, 2]", "in"),
        ("18%", "percent"),
        ("12 m", "quantity"),
        ("12m", "mul"),
        ("12 cm", "quantity"),
        (r"90^\circ", "quantity"),
        (r"\sin 30^\circ", "func"),
        ("5th", "quantity"),
        ("134_5", "base"),
        ("3:4", "ratio"),
        ("(C)", "choice"),
        ("C", "sym"),
        ("Evelyn", "text"),
        ("São Paulo", "text"),
        ("no solution", "set"),
        ("11:30 p.m.", "time"),
        ("June 5, 2020", "date"),
        ("sin x", "func"),
    ],
)
def test_the_form_of_an_answer_is_seen(text: str, op: str) -> None:
    """Each kind of answer is read as what it is."""
    assert op_of(text) == op


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "0.333...",
        "2 3",
        "x 2",
        r"2\frac{3}{2}",
        r"\frac{1}{2}3",
        "1/2x/3y",
        "x/2y",
        "(1,000)",
        "7 or",
        "and 7",
        "٧",
        "5 ≈ 5.1",
        "(3, 11",
        "3, 11)",
        r"\foo{7}",
        r"\begin{cases} 1 \end{cases}",
        r"\begin{pmatrix} 1 & 0 \\ 0 \end{pmatrix}",
        r"\sum_{k=1}^n k",
        "12\\text{ if } x",
        "7 less than x is 3",
        "135_5",
        "lambda: 7",
        "__import__('os')",
        "(1,2) + 3",
        r"\pm 1 \pm 2",
        "x" * 20_000,
        "(" * 100 + "1" + ")" * 100,
        "\x00",
    ],
)
def test_what_is_not_understood_as_a_whole_is_refused(text: str) -> None:
    """No fragment is read out of a text of which a part means nothing or two things."""
    if text == "lambda: 7":
        assert op_of(text) == "ratio"  # the Greek letter to 7: harmless, and equal to no number
        return
    with pytest.raises(ReadError):
        read_answer(normalize(text))


def test_the_gold_answer_settles_what_could_be_read_in_two_ways() -> None:
    """12m is a length beside a length and a product beside an expression in m."""
    length = read_answer("12 m")
    product = read_answer("3m + 1")
    assert read_answer("12m", like=length) == length
    assert read_answer("12 m", like=product).op == "mul"
    choice = Node("choice", (), "C")
    assert read_answer("C) 12", like=choice) == choice
    assert read_answer("C) or D)", like=choice).op != "choice"
    with pytest.raises(ReadError):
        read_answer("(C) is wrong", like=choice)


@given(text=st.text(max_size=40) | mathematics)
def test_reading_ends_in_a_node_or_a_read_error(text: str) -> None:
    """Any text is read or refused; nothing else is raised."""
    try:
        node = read_answer(normalize(text))
    except ReadError:
        return
    assert isinstance(node, Node)


def test_lists_are_split_at_the_top_level_only() -> None:
    """Commas in brackets and in numbers do not split; words do."""
    assert split_items("(1, 2), (3, 4)", grouped=True) == (["(1, 2)", "(3, 4)"], ",")
    assert split_items("1,000 and 2", grouped=True) == (["1000", "2"], "and")
    assert split_items("1,000", grouped=False) == (["1", "000"], ",")
    assert split_items("3, 5, and 7", grouped=True) == (["3", "5", "7"], "and")
    assert split_items("sand", grouped=True) == (["sand"], "")
    assert outer_brackets("(1, 2]") == ("(", "1, 2", "]")
    assert outer_brackets("(1)(2)") is None
