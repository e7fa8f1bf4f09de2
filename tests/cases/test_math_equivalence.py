"""The cases of the kind math_equivalence, and H01, as far as comparing answers goes."""

from __future__ import annotations

import ast
import asyncio
import builtins
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from toolenvs.grading import math as grading
from toolenvs.grading import worker
from toolenvs.grading.boxed import extract_boxed
from toolenvs.grading.math import MathPolicy, Verdict, check_gold, grade

FRACTION = r"\frac{3}{1+\sqrt{5}}"
Pair = tuple[str, str]


@pytest.mark.parametrize(
    ("message", "correct"),
    [
        pytest.param(r"Hence \boxed{\frac{3}{1+\sqrt{5}}}.", True, id="M01a"),
        pytest.param(r"I have to use \boxed . So \boxed{\dfrac{3}{1+\sqrt5}}", True, id="M01b"),
        pytest.param(r"\boxed{\frac{3}{1+\sqrt{5}}} is what I put in \boxed", True, id="M01c"),
        pytest.param(r"\boxed{\frac{3}{1+\sqrt{5}", False, id="M01d"),
        pytest.param(r"\boxed{\boxed{\frac{3}{1+\sqrt{5}}}}", True, id="M01e"),
    ],
)
def test_M01_boxes_are_found_by_counting_braces(message: str, correct: bool) -> None:
    """A box with braces in it is found whole; one that never closes is no answer."""
    assert (extract_boxed(message) is not None) is correct
    assert grade(FRACTION, message).correct is correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        pytest.param(r"$\frac{5}{7^{30}}$", r"$\frac{5}{7^{31}}$", id="M02a"),
        pytest.param(r"$4-\frac{7}{\mathrm{w}}$", r"$4+\frac{7}{\mathrm{w}}$", id="M02b"),
        pytest.param("5x-2y+8=0", "x+7y-3=0", id="M02c"),
        pytest.param("7", r"$7\sqrt(3)$", id="M02d"),
    ],
)
def test_M02_no_fragment_is_compared(gold: str, answer: str) -> None:
    """Formulas that share a number, a side or many zeros are not equal."""
    assert not grade(gold, answer).correct
    assert grade(gold, gold).correct
    assert grade(answer, answer).correct


@pytest.mark.parametrize(
    ("gold", "answer", "correct"),
    [
        pytest.param("3 and 11", r"\boxed{11}", False, id="M04a"),
        pytest.param("3, 11", r"\boxed{11, 3}", True, id="M04b"),
        pytest.param("7", "5, 6, 7", False, id="M04c"),
        pytest.param("7", r"\boxed{7} or \boxed{6}", False, id="M04d"),
        pytest.param("6", r"\boxed{7} or \boxed{6}", False, id="M04d-no-box-is-picked"),
        pytest.param("6", r"\boxed{6} or \boxed{6}", True, id="M04d-one-answer"),
        pytest.param("Lyon", "", False, id="M04e"),
        pytest.param("Lyon", "Paris or Lyon or Nice", False, id="M04f"),
    ],
)
def test_M04_a_list_is_compared_as_a_whole(gold: str, answer: str, correct: bool) -> None:
    """A part of a list and a list of guesses are wrong; of several boxes all must be right."""
    assert grade(gold, answer).correct is correct


@pytest.mark.parametrize(
    ("gold", "answer", "correct", "rule"),
    [
        pytest.param(r"18\%", r"\boxed{0.18}", True, "percent_as_fraction", id="M06a"),
        pytest.param(r"18\%", r"\boxed{1.8}", False, "percent_as_fraction", id="M06b"),
        pytest.param("18", r"\boxed{18\%}", False, "percent_as_fraction", id="M06c"),
        pytest.param(r"12\text{ m}", r"\boxed{12\text{ cm}}", False, "unit_different", id="M06d"),
        pytest.param(r"12\text{ m}", r"\boxed{12}", True, "unit_missing", id="M06e"),
        pytest.param(r"18\%", r"\boxed{18}", True, "percent_missing", id="M06f"),
    ],
)
def test_M06_units_and_percent_follow_the_policy(
    gold: str, answer: str, correct: bool, rule: str
) -> None:
    """A missing unit is a matter of policy, a different one is wrong; the rule is named."""
    verdict = grade(gold, answer)
    assert (verdict.correct, verdict.rule) == (correct, rule)


def test_M06_a_strict_policy_demands_unit_and_percent() -> None:
    """Told so, a task refuses what lacks its unit or its percent sign."""
    strict = MathPolicy(allow_missing_unit=False, percent="strict")
    assert not grade(r"12\text{ m}", "12", policy=strict).correct
    assert not grade(r"18\%", "18", policy=strict).correct
    assert grade(r"18\%", "0.18", policy=strict).correct
    assert grade(r"12\text{ m}", "12 meters", policy=strict).correct


M07_BAD = [r"\boxed{9^{9^{9}}}", r"\boxed{10000000!}", r"\boxed{(1+10^{-9})^{10^{9}}}"]
M07_PAIRS = [*(("7", bad) for bad in M07_BAD), (r"\frac{21}{80}", "0.2625")]
# Symbolic, so that the helper process takes part: one that is proved, one that is refused.
M07_HELPED = [(r"\cot x", r"\frac{\cos x}{\sin x}"), (r"\sqrt[3]{2}", r"(1+\sqrt2)^{10^{6}}")]


def graded(pairs: list[Pair]) -> list[Verdict]:
    """Grade each pair in this thread of this process."""
    return [grade(gold, answer) for gold, answer in pairs]


def in_a_thread(pairs: list[Pair]) -> list[Verdict]:
    """Grade in a thread of a pool."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(graded, pairs).result()


def in_an_event_loop(pairs: list[Pair]) -> list[Verdict]:
    """Grade in a thread beside an event loop."""

    async def main() -> list[Verdict]:
        return await asyncio.to_thread(graded, pairs)

    return asyncio.run(main())


def _grade_into(queue: Any, pairs: list[Pair]) -> None:
    queue.put(graded(pairs))


def in_a_forked_worker(pairs: list[Pair]) -> list[Verdict]:
    """Grade in a daemonic forked process, which may not have children of multiprocessing's."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_grade_into, args=(queue, pairs), daemon=True)
    process.start()
    verdicts: list[Verdict] = queue.get(timeout=60)
    process.join(60)
    return verdicts


def children() -> set[int]:
    """Return the process ids of this process's children, zombies too."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


CONTEXTS = [graded, in_a_thread, in_an_event_loop, in_a_forked_worker]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc and forks")
@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.__name__)
def test_M07_the_verdict_is_the_same_everywhere(
    context: Callable[[list[Pair]], list[Verdict]],
) -> None:
    """Power towers end at once, the next pair is right, no process is left, in any context."""
    worker.stop()
    before = children()
    started = time.monotonic()
    verdicts = context(M07_PAIRS)
    assert time.monotonic() - started < 30  # a hang guard; it takes a millisecond
    assert [verdict.reason for verdict in verdicts] == ["grader_timeout"] * 3 + ["equal"]
    assert [verdict.correct for verdict in verdicts] == [False] * 3 + [True]
    assert children() == before
    helped = context(M07_HELPED)
    assert [verdict.reason for verdict in helped] == ["equal", "grader_timeout"]
    worker.stop()
    assert children() == before


def test_M07_an_overrun_ends_within_its_budget() -> None:
    """A pair that sympy cannot decide in time is wrong, and its process is gone."""
    gold = r"\cos\frac{\pi}{97}\cos\frac{\pi}{89}"
    equal = r"\frac{\cos\frac{186\pi}{8633}+\cos\frac{8\pi}{8633}}{2}"
    verdict = grade(gold, equal, timeout_s=0.5)
    assert (verdict.correct, verdict.reason) == (False, "grader_timeout")
    assert worker.helper_pid() is None
    assert grade(r"\frac{21}{80}", "0.2625").correct


@pytest.mark.parametrize("answer", [r"\boxed{7}", "banana", "", r"\boxed{4}", "squares"])
@pytest.mark.parametrize(
    "gold",
    [
        "all primes that are 1 mod 4, listed with their squares",
        "any even number works",
        "see the proof above",
        r"\begin{cases} 1 & x > 0 \\ 0 & x \le 0 \end{cases}",
        "",
        "1/0",
    ],
)
def test_M08_a_gold_that_cannot_be_graded_never_pays(gold: str, answer: str) -> None:
    """Such a row is reported as not gradable, and no answer to it is right."""
    assert not check_gold(gold).gradable
    verdict = grade(gold, answer)
    assert (verdict.correct, verdict.reason) == (False, "gold_not_gradable")
    assert not verdict.gradable
    assert not grade(gold, gold).correct


@pytest.mark.parametrize(
    ("gold", "answer", "correct"),
    [
        pytest.param("134_5", r"\boxed{1345}", False, id="M09a"),
        pytest.param("134_5", r"\boxed{134_{5}}", True, id="M09b"),
        pytest.param("7250", r"\boxed{7,\!250}", True, id="M09c"),
        pytest.param("7250", r"\boxed{7{,}250}", True, id="M09d"),
        pytest.param("(7, 250)", r"\boxed{7,250}", False, id="M09e"),
        pytest.param(r"2\frac{1}{3}", r"\boxed{\frac{7}{3}}", True, id="M09f"),
        pytest.param(r"2\frac{1}{3}", r"\boxed{\frac{2}{3}}", False, id="M09g"),
    ],
)
def test_M09_notations_of_numbers_are_read_as_meant(gold: str, answer: str, correct: bool) -> None:
    """Bases, thousands and mixed numbers are neither glued together nor torn apart."""
    assert grade(gold, answer).correct is correct


H01_PROGRAMS = [
    "__import__('pathlib').Path('{marker}').touch()",
    "(1).__class__.__mro__[1]",
    "exec('x=1')",
    "lambda: 7",
    "open('/etc/passwd').read()",
    "7 if __import__('os').system('touch {marker}') else 7",
    "Symbol('x').subs('x', 7)",
    "().__class__.__bases__[0].__subclasses__()",
    "7;import os",
    "S('7')",
    r"\text{__import__('os')}",
    "x_{__import__('os')}",
    r"\mathrm{exec}(7)",
]


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("text was handed to an evaluator")


@pytest.mark.parametrize("program", H01_PROGRAMS)
@pytest.mark.parametrize("gold", ["7", r"\sin x", "Lyon", "(1, 2)"])
def test_H01_an_answer_is_never_evaluated(
    program: str, gold: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program as an answer is a wrong answer; nothing runs and nothing is left changed."""
    marker = tmp_path / "owned"
    modules = set(sys.modules)
    with monkeypatch.context() as patch:
        for name in ("eval", "exec", "compile", "open"):
            patch.setattr(builtins, name, _refuse)
        patch.setattr(os, "system", _refuse)
        verdict = grade(gold, rf"\boxed{{{program.replace('{marker}', str(marker))}}}")
    assert not verdict.correct
    assert not marker.exists()
    assert set(sys.modules) - modules <= {"toolenvs.grading.worker"}
    assert grade("7", r"\boxed{7}").correct


def test_H01_no_source_of_grading_evaluates_text() -> None:
    """No call in the package's grading hands a text to Python's or sympy's evaluators."""
    forbidden = {
        "eval",
        "exec",
        "compile",
        "sympify",
        "parse_expr",
        "parse_latex",
        "S",
        "nsimplify",
    }
    folder = Path(grading.__file__).parent
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                owner = getattr(getattr(node.func, "value", None), "id", "")
                called = owner != "re" and name in forbidden
                assert not called, f"{path.name}:{node.lineno} calls {name}"
            if isinstance(node, ast.Name | ast.Attribute):
                assert getattr(node, "id", getattr(node, "attr", "")) not in forbidden - {
                    "compile",
                    "S",
                }
