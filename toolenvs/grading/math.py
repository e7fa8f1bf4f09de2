"""Grade an answer to a problem of mathematics against the gold answer.

The way of an answer: its box (``boxed``), one notation (``notation``), a tree (``reading``),
a comparison by the gold answer's form (``comparison``). Expressions are compared exactly in this
process where that is bounded work (``exact``), else in a killable helper (``worker``). Nothing is
ever evaluated from text. Plain numbers take the fast path: exact rationals, no sympy, microseconds.
"""

from __future__ import annotations

import functools
from fractions import Fraction

from toolenvs.grading.boxed import extract_boxed, extract_submitted
from toolenvs.grading.comparison import EXPRESSIONS, Comparison, Finding
from toolenvs.grading.exact import Ring
from toolenvs.grading.nodes import (
    INFINITY,
    NEGATIVE_INFINITY,
    Node,
    ReadError,
    TooLargeError,
    UndefinedError,
    symbols,
    walk,
)
from toolenvs.grading.notation import THOUSANDS, normalize, unwrap_text
from toolenvs.grading.numerals import read_plain
from toolenvs.grading.policy import Kind, MathPolicy, Verdict
from toolenvs.grading.reading import MAX_CHARACTERS, canonical_text, read_answer, read_choice

__all__ = ["MathPolicy", "Verdict", "check_gold", "grade"]

_DEFAULT = MathPolicy()
_NOT_GRADABLE = Verdict(False, "gold_not_gradable", "gold", gradable=False)
_MAX_WORDS = 5
_HELPER_SHARE = 0.75
_PROSE_WORDS = """
all any every each some see above below proof omitted vary varies depends such that which where
their there with listed if then when because since infinitely answers various
"""
_PROSE = frozenset(_PROSE_WORDS.split())
_MAX_CHARACTERS = 1_000_000


def grade(
    gold: str, answer: str, *, policy: MathPolicy = _DEFAULT, timeout_s: float = 2.0
) -> Verdict:
    r"""Tell whether ``answer`` equals ``gold``.

    The answer is graded whole. A box in it counts where it is all of it, or where the rest is prose
    around it (``boxed.extract_submitted``); of several boxes each must be right. What does not
    parse as a whole is wrong; so is what cannot be decided. The verdict is the same in any thread,
    event loop or forked process.

    Args:
        gold: the gold answer: the content of a box, or text that holds one.
        answer: the submitted text, likewise.
        policy: the rules of this task.
        timeout_s: seconds that it may take in all: three quarters are processor time of the helper
            process (waiting for others' turns does not count), the rest is for what is done here.

    Returns:
        The verdict; no text raises an exception.

    Raises:
        RuntimeFailure: The helper process cannot run; nothing is known of the answer.

    >>> grade(r"\frac{21}{80}", "0.2625").correct
    True
    """
    gold = _boxed(gold)
    verdict = _NOT_GRADABLE
    prover = _Prover(timeout_s)
    for part in extract_submitted(answer) if len(answer) <= _MAX_CHARACTERS else ("",):
        verdict = _grade(gold, part, policy, prover)
        if not verdict.correct:
            break
    return verdict


def _grade(gold: str, answer: str, policy: MathPolicy, prover: _Prover) -> Verdict:
    if policy.kind in ("auto", "number"):
        plain = _grade_plain(gold, answer, policy)
        if plain is not None:
            return plain
    gold_node = _read_gold(gold, policy)
    if gold_node is None:
        return _NOT_GRADABLE
    if len(answer) > MAX_CHARACTERS:
        return Verdict(False, "unparsed_answer", "too_long")
    try:
        text = normalize(answer)
        if not unwrap_text(text):
            return Verdict(False, "no_answer", "empty")
        same = _is_same(normalize(gold), text)
        answer_node = gold_node if same else _read(text, policy.kind, gold_node)
        finding = Comparison(policy, prover, prover.ring).equal(gold_node, answer_node)
    except UndefinedError:
        return Verdict(False, "unparsed_answer", "undefined")
    except ReadError:
        return Verdict(False, "unparsed_answer", "unparsed")
    except (TooLargeError, RecursionError):
        return Verdict(False, "grader_timeout", "too_large")
    except _UndecidedError:
        return Verdict(False, "undecided", "expression")
    return _verdict(finding)


def check_gold(gold: str, policy: MathPolicy = _DEFAULT) -> Verdict:
    """Tell whether a gold answer can be graded: it is read as a whole and equals itself.

    Prose is not gradable unless the policy's kind is ``text``. An answer to a task whose gold
    answer is not gradable is never right.

    Args:
        gold: the gold answer.
        policy: the rules of its task.

    Returns:
        ``gradable`` and ``correct`` are both True or both False.
    """
    gold = _boxed(gold)
    node = _read_gold(gold, policy)
    if node is None:
        return _NOT_GRADABLE
    prover = _Prover(0.0)
    return _verdict(Comparison(policy, prover, prover.ring).equal(node, node))


class _UndecidedError(ValueError):
    """Neither equality nor inequality could be proved."""


class _Prover:
    """Decides equality of expressions: exactly in this process, else by the helper."""

    def __init__(self, timeout_s: float) -> None:
        self.ring = Ring()
        self._left_s = timeout_s * _HELPER_SHARE

    def __call__(self, left: Node, right: Node) -> bool:
        if left == right:
            return True
        exact = self.ring.decide(left, right)
        if exact is not None:
            return exact
        if self._left_s <= 0:
            raise TooLargeError("the time of the comparison is used up")
        from toolenvs.grading import worker  # the one module of grading that starts a process

        proof = worker.prove_equal(left, right, timeout_s=self._left_s)
        self._left_s -= proof.cpu_s
        if proof.equal is None:
            raise _UndecidedError
        return proof.equal


def _boxed(text: str) -> str:
    if len(text) > _MAX_CHARACTERS:
        return ""
    boxed = extract_boxed(text)
    return text if boxed is None else boxed


def _grade_plain(gold: str, answer: str, policy: MathPolicy) -> Verdict | None:
    """Compare two plainly written numbers; None if either is anything else."""
    expected = read_plain(gold)
    value = read_plain(answer) if expected is not None else None
    if expected is None or value is None:
        return None
    if policy.rel_tol > 0 and ("." in gold or "." in answer):
        tolerance = Fraction(policy.rel_tol) * abs(expected)
        return _verdict(Finding(abs(value - expected) <= tolerance, "rel_tol"))
    return _verdict(Finding(value == expected, "exact_number"))


def _is_same(gold: str, answer: str) -> bool:
    """Tell whether two normalized texts are one, also as ``100,200`` and ``100, 200`` are."""
    return answer == gold or bool(THOUSANDS.fullmatch(gold) and answer.replace(", ", ",") == gold)


@functools.lru_cache(maxsize=4096)
def _read_gold(gold: str, policy: MathPolicy) -> Node | None:
    """Return the gold answer's tree, or None if it cannot be graded."""
    if len(gold) > MAX_CHARACTERS:
        return None
    try:
        node = _read(normalize(gold), policy.kind, None)
    except (ReadError, RecursionError):
        return None
    if policy.kind == "number" and not _is_number(node):
        return None
    prose = policy.kind == "auto" and any(map(_is_prose, walk(node)))
    return None if prose or not _is_defined(node) else node


def _read(text: str, kind: Kind, gold: Node | None) -> Node:
    if kind == "text":
        words = canonical_text(text)
        if not words:
            raise ReadError("empty")
        return Node("text", (), words)
    if kind == "choice":
        choice = read_choice(unwrap_text(text), gold or Node("choice"))
        if choice is None:
            raise ReadError("not a choice")
        return choice
    return read_answer(text, like=gold)


def _is_number(node: Node) -> bool:
    if node.op in ("quantity", "percent", "named"):
        return _is_number(node.args[0])
    return node.op == "base" or (node.op in EXPRESSIONS and not symbols(node))


def _is_prose(node: Node) -> bool:
    words = node.text.split()
    return node.op == "text" and (len(words) > _MAX_WORDS or not _PROSE.isdisjoint(words))


def _is_defined(node: Node) -> bool:
    """Tell whether every expression in it has a value, as far as that is cheap to see."""
    if node in (INFINITY, NEGATIVE_INFINITY):
        return True
    if node.op not in EXPRESSIONS:
        return all(map(_is_defined, node.args))
    try:
        Ring().evaluate(node)
    except TooLargeError:
        return True
    except UndefinedError:
        return False
    return True


def _verdict(finding: Finding) -> Verdict:
    return Verdict(finding.equal, "equal" if finding.equal else "different", finding.rule)
