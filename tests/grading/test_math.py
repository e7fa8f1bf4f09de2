"""Grading as a whole: pairs of every kind, promises for all texts, real data."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import UsageError
from toolenvs.grading.boxed import extract_boxed, extract_marked
from toolenvs.grading.math import MathPolicy, check_gold, grade

PAIRS = json.loads(Path(__file__).with_name("pairs.json").read_text(encoding="utf-8"))
NOTATIONS = (
    "{}",
    " {} ",
    "${}$",
    r"\({}\)",
    r"\boxed{{{}}}",
    r"so it is \boxed{{ {}. }}",
    "{}.",
    "{}.0",
    "{}.000",
    "({})",
    r"\left({}\right)",
    "x = {}",
    "x={}",
    r"\text{{}}{}",
    "**{}**",
    "The answer is {}.",
    r"\frac{{{}}}{{1}}",
    "{}/1",
    "1 \\cdot {}",
    r"{}\text{{ units}}",
    "{} apples",
    "--{}",
    "+{}",
)
texts = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [*"x17{}()[]\\,.^_+-*/= $%!|&:<>", r"\frac", r"\sqrt", r"\text", " and ", r"\pm", r"\boxed"]
    ),
    max_size=25,
).map("".join)


@pytest.mark.parametrize(
    ("kind", "gold", "answer", "correct"),
    [(kind, *pair) for kind, pairs in PAIRS.items() for pair in pairs],
)
def test_pairs_are_judged_by_their_kind(kind: str, gold: str, answer: str, correct: bool) -> None:
    """Every pair of the table is judged as it should be."""
    verdict = grade(gold, answer)
    assert verdict.gradable, kind
    assert verdict.correct is correct, verdict


@given(gold=texts, answer=texts)
def test_no_text_raises(gold: str, answer: str) -> None:
    """Whatever the texts, there is a verdict, and it does not contradict itself."""
    verdict = grade(gold, answer, timeout_s=0.0)
    assert verdict.correct is (verdict.reason == "equal")
    assert verdict.gradable is (verdict.reason != "gold_not_gradable")


@given(gold=texts)
def test_a_gradable_gold_equals_itself(gold: str) -> None:
    """A gold answer is right for itself exactly when it can be graded."""
    checked = check_gold(gold)
    assert checked.correct is checked.gradable
    assert grade(gold, gold, timeout_s=0.0).correct is checked.correct


@given(value=st.integers(), notation=st.sampled_from(NOTATIONS))
def test_an_integer_is_itself_in_every_notation(value: int, notation: str) -> None:
    """However an integer is written, it equals itself and not its neighbour, both ways round."""
    text = notation.format(f"({value})" if notation[0] in "-+1" and value < 0 else value)
    for gold, answer in ((str(value), text), (text, str(value))):
        assert grade(gold, answer).correct
    assert not grade(str(value + 1), text).correct
    assert not grade(text, str(value + 1)).correct


@given(value=st.integers(min_value=1000))
def test_thousands_may_be_separated(value: int) -> None:
    """Commas in all their LaTeX guises do not change a number."""
    grouped = f"{value:,}"
    for text in (grouped, grouped.replace(",", r",\!"), grouped.replace(",", "{,}")):
        assert grade(str(value), text).correct
        assert not grade(str(value + 1), text).correct


numbers = st.one_of(
    st.integers(-20, 20).map(str),
    st.fractions(-3, 3, max_denominator=9).map(
        lambda f: rf"\frac{{{f.numerator}}}{{{f.denominator}}}"
    ),
    st.decimals(-3, 3, places=2).map(lambda d: f"{d:f}"),
    st.integers(0, 12).map(lambda n: rf"\sqrt{{{n}}}"),
)


@given(left=numbers, right=numbers)
def test_equality_of_numbers_is_symmetric(left: str, right: str) -> None:
    """Gold and answer may be swapped."""
    assert grade(left, right).correct is grade(right, left).correct


@given(items=st.lists(st.integers(0, 9), min_size=2, max_size=5), seed=st.randoms())
def test_only_tuples_are_ordered(items: list[int], seed: object) -> None:
    """Lists and sets are equal in any order, tuples in one."""
    swapped = items[::-1]
    gold, answer = (", ".join(map(str, each)) for each in (items, swapped))
    assert grade(gold, answer).correct
    assert grade(f"\\{{{gold}\\}}", f"\\{{{answer}\\}}").correct
    assert grade(f"({gold})", f"({answer})").correct is (items == swapped)
    assert not grade(gold, f"{answer}, 10").correct


def test_tolerance_is_for_decimals_only() -> None:
    """A declared relative tolerance applies where a decimal is written, never to integers."""
    loose = MathPolicy(rel_tol=1e-3)
    assert not grade("1/3", "0.3333").correct
    assert grade("1/3", "0.3333", policy=loose).correct
    assert grade(r"\sqrt{2}", "1.414", policy=loose).correct
    assert grade(r"33.3\%", "0.3333", policy=loose).correct
    assert not grade("1/3", "0.34", policy=loose).correct
    assert not grade("1000", "1001", policy=MathPolicy(rel_tol=0.1)).correct
    assert not grade("0", "0.0001", policy=loose).correct
    assert grade("1e-9", "1.0001e-9", policy=loose).correct
    assert not grade("1e-9", "2e-9", policy=loose).correct


@pytest.mark.parametrize(
    "item",
    [
        "+".join([r"\sqrt{2000!}"] * 60),
        "+".join(rf"\sqrt{{{at}!}}" for at in range(1900, 2000)),
        "+".join(rf"\frac{{3^{{{at}}}}}{{7^{{4000}}}}" for at in range(4000, 4040)),
        "(x+y+z+1)^{15}",
    ],
)
def test_a_comparison_has_one_account(item: str) -> None:
    """However many pairs a list makes, all are paid from one account of work."""
    answer = ", ".join(f"1.1+{at}+{item}" for at in range(6))
    started = time.process_time()
    verdict = grade("1.5, 2, 3, 4, 5, 6", answer, policy=MathPolicy(rel_tol=1e-3))
    assert not verdict.correct
    assert time.process_time() - started < 2  # a hang guard; it takes a quarter of a second


def test_kinds_can_be_declared() -> None:
    """A task may say that its answers are numbers, texts or choices."""
    text, choice, number = (MathPolicy(kind=kind) for kind in ("text", "choice", "number"))
    assert grade("1/2 cup of flour, sifted", "1/2 Cup of flour, sifted.", policy=text).correct
    assert not grade("0.5", "1/2", policy=text).correct
    assert grade("b", "(B) 12", policy=choice).correct
    assert not grade("B", "A or B", policy=choice).correct
    assert not check_gold("12", choice).gradable
    assert not check_gold("2x", number).gradable
    assert check_gold(r"2\pi \text{ cm}", number).gradable
    assert not grade("7", "Lyon", policy=number).correct


def test_order_can_be_declared() -> None:
    """A task may demand the order of a list, or free that of a tuple."""
    assert not grade("3, 11", "11, 3", policy=MathPolicy(ordered="always")).correct
    assert grade("(3, 11)", "(11, 3)", policy=MathPolicy(ordered="never")).correct


def test_a_policy_comes_from_the_keywords_of_a_task() -> None:
    """What a task declares is checked when the policy is made."""
    assert msgspec.convert({"percent": "strict"}, MathPolicy).percent == "strict"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"percents": "strict"}, MathPolicy)
    with pytest.raises(UsageError):
        MathPolicy(rel_tol=-1.0)
    with pytest.raises(UsageError):
        MathPolicy(rel_tol=float("nan"))


@pytest.mark.parametrize(
    ("gold", "answer", "reason", "rule"),
    [
        ("7", "7.0", "equal", "exact_number"),
        ("7", "8", "different", "exact_number"),
        ("7", "", "no_answer", "empty"),
        ("7", r"\boxed{ }", "no_answer", "empty"),
        ("7", "seven ??", "unparsed_answer", "unparsed"),
        ("7", "1/0", "unparsed_answer", "undefined"),
        ("7", "x" * 20_000, "unparsed_answer", "too_long"),
        ("7", "9^{9^9}", "grader_timeout", "too_large"),
        ("7", r"\ln 0", "undecided", "expression"),
        ("7", "6, 7", "different", "kind_differs"),
        ("7", "7 apples", "equal", "unit_extra"),
        ("7 pears", "7 apples", "different", "unit_different"),
        ("134_5", "134", "different", "base_missing"),
        ("x = 5", "y = 5", "different", "name_differs"),
        ("y = x", "2y = 2x", "equal", "equation"),
        ("[1, 2]", r"1 \le x \le 2", "equal", "region"),
        ("(B)", "B", "equal", "choice"),
        ("Lyon", "lyon", "equal", "text"),
        ("3, 5", "5, 3", "equal", "list"),
        (r"3\text{ m}, 5\text{ m}", "5, 3", "equal", "unit_missing"),
    ],
)
def test_a_verdict_says_why(gold: str, answer: str, reason: str, rule: str) -> None:
    """The reason and the rule that decided are in the verdict."""
    verdict = grade(gold, answer)
    assert (verdict.reason, verdict.rule) == (reason, rule)


def test_plain_numbers_need_no_sympy() -> None:
    """The fast path and the exact arithmetic import neither sympy nor subprocess."""
    program = (
        "import sys; from toolenvs.grading.math import grade; before = set(sys.modules)\n"
        "assert grade('18', '18.0').correct and grade(r'\\sqrt{8}', r'2\\sqrt2').correct\n"
        "new = set(sys.modules) - before\n"
        "assert not new & {'sympy', 'toolenvs.grading.worker'}, new\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.shared
def test_math500_golds_equal_themselves_and_their_solutions(shared: Path) -> None:
    """500 of 500 rows of MATH-500 are right for their own gold and for their solution's box."""
    rows = [json.loads(line) for line in _lines(shared / "data/math/math500_test.jsonl")]
    assert len(rows) == 500
    for row in rows:
        gold = row["answer"]
        assert check_gold(gold).gradable, gold
        assert grade(gold, gold).correct, gold
        assert grade(gold, extract_boxed(row["solution"]) or "").correct, gold
        assert grade(gold, row["solution"]).correct, gold


@pytest.mark.shared
def test_math500_golds_do_not_equal_each_other(shared: Path) -> None:
    """Each MATH-500 gold against twenty others is right only where both are equal indeed."""
    golds = [json.loads(line)["answer"] for line in _lines(shared / "data/math/math500_test.jsonl")]
    equal = [
        {"120", r"120^\circ"},
        {"15", r"15\mbox{ cm}^2"},
        {r"2\sqrt{5}", r"2 \sqrt{5}"},
        {"5", "x=5"},
        {r"\frac14", r"\frac{1}{4}"},
        {"10080", r"10,\!080"},
        {"-2,1", "1,-2"},
        {"30", r"30^\circ"},
        {"36", r"36^\circ"},
        {"36", r"\$36"},
        {"90", r"90^\circ"},
    ]
    for at, gold in enumerate(golds):
        for step in range(1, 21):
            other = golds[(at + 23 * step) % len(golds)]
            if grade(gold, other).correct:
                assert gold == other or {gold, other} in equal


@pytest.mark.shared
def test_gsm8k_labels_are_reproduced(shared: Path) -> None:
    """All 5276 labels of real model outputs are what the grader says."""
    count = 0
    for line in _lines(shared / "data/math/gsm8k_example_model_solutions.jsonl"):
        row = json.loads(line)
        gold = extract_marked(row.pop("ground_truth"), "A:") or ""
        row.pop("question")
        for output in row.values():
            answer = extract_marked(output["solution"], "A:")
            assert grade(gold, answer or "").correct is output["is_correct"]
            count += 1
    assert count == 5276


@pytest.mark.shared
def test_other_data_sets_are_gradable(shared: Path) -> None:
    """Golds of SVAMP, SAT, TTRL and Calc-X are gradable and equal themselves."""
    folder = shared / "data/math"
    golds = [str(json.loads(line)["Answer"]) for line in _lines(folder / "svamp_test.jsonl")]
    golds += [json.loads(line)["Answer"] for line in _lines(folder / "sat_math_test.jsonl")]
    golds += [json.loads(line)["result"] for line in _lines(folder / "calc_x_sample.jsonl")]
    golds += [row["answer"] for row in json.loads((folder / "ttrl_math_l1.json").read_text())]
    assert len(golds) == 1085
    for gold in golds:
        assert check_gold(gold).correct, gold
        assert grade(gold, rf"so \boxed{{{gold}}}.").correct, gold


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
