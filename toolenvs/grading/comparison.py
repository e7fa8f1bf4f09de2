"""Compare two answers that have been read, by the form of the gold answer and the task's policy.

``Comparison.equal`` returns a ``Finding``: whether they are equal and which rule said so. Whether
two *expressions* are equal is asked of ``prove``, so that nothing here can take long by itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from toolenvs.grading.approximation import approximate
from toolenvs.grading.exact import Ring, evaluate_rational, proportion
from toolenvs.grading.nodes import (
    INFINITY,
    NEGATIVE_INFINITY,
    Node,
    TooLargeError,
    number,
    symbols,
    walk,
)
from toolenvs.grading.policy import MathPolicy
from toolenvs.grading.regions import read_region

Prove = Callable[[Node, Node], bool]
"""Tell whether two expressions are equal; raises when it cannot."""

EXPRESSIONS = frozenset(
    {"num", "sym", "const", "add", "mul", "div", "pow", "neg", "root", "func", "abs", "floor"}
    | {"ceil", "fact", "deg", "binom"}
)
_MAX_COMPARISONS = 10_000
_EXACT_TEXTS = ("choice", "date", "time", "base")
_ENGLISH = frozenset(
    {"no", "on", "in", "up", "to", "or", "so", "is", "it", "at", "an", "am", "pm", "ok", "do", "go"}
    | {"he", "we", "me", "my", "by", "us", "if", "of", "be", "as", "ad", "ex", "ah", "oh", "hi"}
)


class Finding(NamedTuple):
    """The outcome of a comparison and the rule that decided it."""

    equal: bool
    rule: str


class Comparison:
    """Compares by one policy, asking ``prove`` about expressions, on the account of ``ring``."""

    def __init__(self, policy: MathPolicy, prove: Prove, ring: Ring) -> None:
        self._policy = policy
        self._prove = prove
        self._ring = ring
        self._left = _MAX_COMPARISONS

    def equal(self, gold: Node, answer: Node) -> Finding:
        """Compare an answer with the gold answer.

        Raises:
            TooLargeError: It takes too many comparisons, or what ``prove`` raises.
        """
        self._left -= 1
        if self._left < 0:
            raise TooLargeError("too many comparisons")
        if gold == answer:
            return Finding(True, _rule_of_kind(gold))
        gold, answer = as_product(gold, answer), as_product(answer, gold)
        gold, answer = _as_point(gold, answer), _as_point(answer, gold)
        if gold.op != answer.op:
            gold, answer = _members(gold), _members(answer)
        answer = self._settled(gold, answer)
        named = self._named(gold, answer)
        if named is not None:
            return named
        region = self._region(gold, answer)
        if region is not None:
            return region
        if "percent" in (gold.op, answer.op):
            return self._percent(gold, answer)
        if "quantity" in (gold.op, answer.op):
            return self._quantity(gold, answer)
        return self._by_kind(gold, answer)

    def _by_kind(self, gold: Node, answer: Node) -> Finding:
        if gold.op in EXPRESSIONS and answer.op in EXPRESSIONS:
            return self._expression(gold, answer)
        if gold.op == "choice" or (answer.op == "choice" and gold.op == "sym"):
            return Finding(answer.op in ("choice", "sym") and gold.text == answer.text, "choice")
        if gold.op in ("set", "list"):
            return self._collection(gold, answer)
        if gold.op == "ratio":
            return self._ratio(gold, answer)
        if gold.op != answer.op:
            return Finding(False, "base_missing" if gold.op == "base" else "kind_differs")
        if gold.op == "text" or gold.op in _EXACT_TEXTS:
            return Finding(gold.text == answer.text, gold.op)
        if gold.op in ("tuple", "interval", "union", "inter", "diff", "matrix", "in"):
            return self._structure(gold, answer)
        if gold.op == "rel":
            return self._relation(gold, answer)
        return Finding(False, "kind_differs")

    # -- expressions ------------------------------------------------------------------------------

    def _expression(self, gold: Node, answer: Node) -> Finding:
        if gold in (INFINITY, NEGATIVE_INFINITY) or answer in (INFINITY, NEGATIVE_INFINITY):
            return Finding(gold == answer, "exact_number")
        if self._policy.rel_tol > 0 and (has_decimal(gold) or has_decimal(answer)):
            close = self._close(gold, answer)
            if close is not None:
                return Finding(close, "rel_tol")
        return Finding(self._prove(gold, answer), rule_of(gold, answer))

    def _close(self, gold: Node, answer: Node) -> bool | None:
        expected, value = (evaluate_rational(part, ring=self._ring) for part in (gold, answer))
        if expected is not None and value is not None:
            return abs(value - expected) <= Fraction(self._policy.rel_tol) * abs(expected)
        about, near = approximate(gold), approximate(answer)
        if about is None or near is None:
            return None
        return abs(near - about) <= self._policy.rel_tol * abs(about)

    # -- names, units, percent --------------------------------------------------------------------

    def _named(self, gold: Node, answer: Node) -> Finding | None:
        """Compare where one side or both is ``x = value``; None if neither is."""
        if gold.op != "named" and answer.op != "named":
            return None
        if gold.op == answer.op:
            if gold.text == answer.text:
                return self.equal(gold.args[0], answer.args[0])
            return self._equations(gold, answer, rule="name_differs")
        if answer.op == "named":
            if gold.op == "rel":
                return self._equations(gold, answer, rule="kind_differs")
            return self.equal(gold, answer.args[0])
        if answer.op == "rel" and set(answer.text) == {"="}:
            return self._equations(gold, answer, rule="kind_differs")
        if symbols(gold.args[0]) and "(" not in gold.text:
            return Finding(False, "kind_differs")  # y = 2x + 3 is a line, 2x + 3 is none
        return self.equal(gold.args[0], answer)

    def _equations(self, gold: Node, answer: Node, *, rule: str) -> Finding:
        sides = [_as_equation(gold), _as_equation(answer)]
        if sides[0] is None or sides[1] is None:
            return Finding(False, rule)
        if gold.op == "named" and not symbols(gold.args[0]) and not _solved(gold, answer):
            return Finding(False, rule)  # x = 5 is asked for; 2x = 10 does not give it
        return self._relation(sides[0], sides[1])

    def _settled(self, gold: Node, answer: Node) -> Node:
        """Return the value of ``x = 10/2 = 5`` if all its parts are equal, else it unchanged."""
        if gold.op == "rel" or answer.op != "rel" or set(answer.text) != {"="}:
            return answer
        named = answer.args[0].op == "sym" and (
            gold.op != "named" or gold.text == answer.args[0].text
        )
        sides = answer.args[1:] if named else answer.args
        plain = all(side.op in EXPRESSIONS and not symbols(side) for side in sides)
        if len(sides) < 2 or not plain:
            return answer
        same = all(self._prove(left, right) for left, right in itertools.pairwise(sides))
        return sides[-1] if same else answer

    def _percent(self, gold: Node, answer: Node) -> Finding:
        if gold.op == answer.op:
            return self.equal(gold.args[0], answer.args[0])._replace(rule="percent")
        if answer.op == "percent":
            if gold.op not in EXPRESSIONS:
                return Finding(False, "unit_different" if gold.op == "quantity" else "kind_differs")
            same = self._expression(gold, _hundredth(answer.args[0])).equal
            return Finding(same, "percent_as_fraction")
        if answer.op not in EXPRESSIONS:
            return Finding(False, "unit_different" if answer.op == "quantity" else "kind_differs")
        if self._policy.percent == "lenient" and self.equal(gold.args[0], answer).equal:
            return Finding(True, "percent_missing")
        same = self._expression(_hundredth(gold.args[0]), answer).equal
        return Finding(same, "percent_as_fraction")

    def _quantity(self, gold: Node, answer: Node) -> Finding:
        units = [part.text if part.op == "quantity" else "" for part in (gold, answer)]
        values = [part.args[0] if part.op == "quantity" else part for part in (gold, answer)]
        inner = self.equal(values[0], values[1])
        if units[0] == units[1]:
            return inner._replace(rule="unit") if units[0] else inner
        if units[0] and units[1]:
            return Finding(False, "unit_different")
        rule = "unit_missing" if units[0] else "unit_extra"
        if not inner.equal:
            return inner
        return Finding(self._policy.allow_missing_unit, rule)

    # -- collections ------------------------------------------------------------------------------

    def _collection(self, gold: Node, answer: Node) -> Finding:
        if gold.op == "list" and answer.op == "named":
            return Finding(False, "kind_differs")
        if answer.op not in ("set", "list"):
            alone = gold.op == "set" and len(gold.args) == 1 and answer.op not in ("tuple", "text")
            return self.equal(gold.args[0], answer) if alone else Finding(False, "kind_differs")
        golds, answers = _unnamed(gold.args), _unnamed(answer.args)
        if "set" in (gold.op, answer.op):
            golds, answers = self._distinct(golds), self._distinct(answers)
        if len(golds) != len(answers):
            return Finding(False, gold.op)
        # "x = 3, y = 4" against "3, 4": only the order tells which is which.
        if self._policy.ordered == "always" or _names(golds) != _names(answers):
            return self._in_order(golds, answers, gold.op)
        return self._in_any_order(golds, answers, gold.op)

    def _distinct(self, items: Sequence[Node]) -> list[Node]:
        kept: list[Node] = []
        for item in items:
            if not any(self.equal(other, item).equal for other in kept):
                kept.append(item)
        return kept

    def _in_any_order(self, golds: Sequence[Node], answers: Sequence[Node], rule: str) -> Finding:
        left = list(answers)
        for gold in golds:
            for answer in left:
                finding = self.equal(gold, answer)
                if finding.equal:
                    left.remove(answer)
                    rule = finding.rule if finding.rule.endswith("_missing") else rule
                    break
            else:
                return Finding(False, rule)
        return Finding(True, rule)

    def _in_order(self, golds: Sequence[Node], answers: Sequence[Node], rule: str) -> Finding:
        for gold, answer in zip(golds, answers, strict=True):
            finding = self.equal(gold, answer)
            if not finding.equal:
                return Finding(False, rule)
            rule = finding.rule if finding.rule.endswith("_missing") else rule
        return Finding(True, rule)

    def _structure(self, gold: Node, answer: Node) -> Finding:
        if len(gold.args) != len(answer.args) or gold.text != answer.text:
            return Finding(False, gold.op)
        unordered = gold.op in ("union", "inter")
        if unordered or (gold.op == "tuple" and self._policy.ordered == "never"):
            return self._in_any_order(gold.args, answer.args, gold.op)
        return self._in_order(gold.args, answer.args, gold.op)

    def _region(self, gold: Node, answer: Node) -> Finding | None:
        """Compare an inequality with an interval that says the same; None if neither is one."""
        if gold.op == answer.op and gold.op not in ("list", "rel"):
            return None
        if gold.op == answer.op == "rel" and symbols(gold) != symbols(answer):
            return None
        regions = [read_region(gold), read_region(answer)]
        if regions[0] is None or regions[1] is None or len(regions[0]) != len(regions[1]):
            return None
        return self._in_any_order(regions[0], regions[1], "region")

    def _ratio(self, gold: Node, answer: Node) -> Finding:
        if _is_clock(gold) and answer.op == "ratio":
            same = len(answer.args) == 2 and self._in_order(gold.args, answer.args, "time").equal
            return Finding(same, "time")
        if answer.op in EXPRESSIONS and len(gold.args) == 2 and not _is_reducible_clock(gold):
            return Finding(self._prove(Node("div", gold.args), answer), "ratio")
        if answer.op != "ratio" or len(gold.args) != len(answer.args):
            return Finding(False, "kind_differs" if answer.op != "ratio" else "ratio")
        first = gold.args[0], answer.args[0]
        proportional = all(
            self._prove(Node("mul", (first[0], right)), Node("mul", (first[1], left)))
            for left, right in zip(gold.args[1:], answer.args[1:], strict=True)
        )
        return Finding(proportional, "ratio")

    # -- relations --------------------------------------------------------------------------------

    def _relation(self, gold: Node, answer: Node) -> Finding:
        """Compare equations up to a constant factor, inequalities up to a positive one."""
        rule = _rule_of_kind(gold)
        if len(gold.text) != 1 or len(answer.text) != 1:
            same = gold.text == answer.text
            return self._in_order(gold.args, answer.args, rule) if same else Finding(False, rule)
        (gold_sign, gold_side), (sign, side) = _one_sided(gold), _one_sided(answer)
        if gold_sign != sign:
            return Finding(False, rule)
        if self._prove(gold_side, side):
            return Finding(True, rule)
        factor = None
        if symbols(gold_side) and symbols(side):
            factor = proportion(gold_side, side, ring=self._ring)
        return Finding(bool(factor) and (sign in "=≠" or (factor or 0) > 0), rule)


def as_product(node: Node, other: Node) -> Node:
    r"""Read two or three bare letters as a product, where the other side does not say otherwise.

    ``ab`` is a product beside ``a \cdot b`` and beside ``ba``; ``no`` and ``cat`` are words.
    """
    letters = node.text
    if node.op != "text" or not 2 <= len(letters) <= 3 or letters in _ENGLISH:
        return node
    if not (letters.isascii() and letters.isalpha()):
        return node
    swapped = other.op == "text" and sorted(other.text) == sorted(letters)
    clear = len(letters) == 2 and other.text not in _ENGLISH
    if other.op in EXPRESSIONS or (swapped and clear):
        return Node("mul", tuple(Node("sym", (), letter) for letter in letters))
    return node


def _as_point(node: Node, other: Node) -> Node:
    """Read ``x = 1, y = 2`` as ``(x, y) = (1, 2)`` beside a point, in the order of the names."""
    point = other.op == "tuple" or (other.op == "named" and other.text.startswith("("))
    if not point or node.op != "list" or node.text == "or":
        return node
    values = {item.text: item.args[0] for item in node.args if item.op == "named"}
    names = sorted(values)
    if len(names) != len(node.args) or any(len(name) != 1 for name in names):
        return node
    return Node("named", (Node("tuple", tuple(map(values.__getitem__, names))),), _point(names))


def _point(names: Sequence[str]) -> str:
    return f"({','.join(names)})"


def _members(node: Node) -> Node:
    """Return the set of which ``x`` is said to be an element, where its elements are listed."""
    listed = node.op == "in" and node.args[0].op == "sym" and node.args[1].op == "set"
    return node.args[1] if listed else node


def _is_clock(ratio: Node) -> bool:
    """Tell whether ``4:30`` may be a time of day, which no other numbers stand for."""
    hour, minute = (part.text if part.op == "num" else "" for part in ratio.args[:2])
    if len(ratio.args) != 2 or not (hour + minute).isdigit():
        return False
    return len(hour) in (1, 2) and len(minute) == 2 and int(hour) < 25 and int(minute) < 60


def _is_reducible_clock(ratio: Node) -> bool:
    return _is_clock(ratio) and math.gcd(*(int(part.text) for part in ratio.args)) > 1


def _unnamed(items: Sequence[Node]) -> Sequence[Node]:
    """Drop the name from ``x = 3 or x = 11``, where it is one name."""
    if len(_names(items)) != 1:
        return items
    return [item.args[0] if item.op == "named" else item for item in items]


def _names(items: Sequence[Node]) -> frozenset[str]:
    return frozenset(item.text for item in items if item.op == "named")


def _as_equation(node: Node) -> Node | None:
    if node.op == "named" and len(node.args) == 2 and node.args[0].op in EXPRESSIONS:
        return Node("rel", (node.args[1], node.args[0]), "=")
    return node if node.op == "rel" else None


def _solved(gold: Node, answer: Node) -> bool:
    """Tell whether an equation states the gold answer's variable outright, as ``5 = x`` does."""
    if answer.op == "named":
        return False  # of another variable
    name = Node("sym", (), gold.text)
    return name in answer.args and all(part == name or not symbols(part) for part in answer.args)


def _one_sided(relation: Node) -> tuple[str, Node]:
    """Write ``left < right`` as a sign and ``right - left``, so that only ``> ≥ = ≠`` remain."""
    left, right = relation.args
    if relation.text in "<≤":
        left, right = right, left
    sign = {"<": ">", "≤": "≥"}.get(relation.text, relation.text)
    return sign, Node("add", (left, Node("neg", (right,))))


def _hundredth(node: Node) -> Node:
    return Node("div", (node, number("100")))


def rule_of(gold: Node, answer: Node) -> str:
    """Return which rule compares two expressions: by exact value or as expressions."""
    parts = itertools.chain(walk(gold), walk(answer))
    plain = all(part.op in ("num", "neg", "div", "add", "mul") for part in parts)
    return "exact_number" if plain else "expression"


def _rule_of_kind(node: Node) -> str:
    if node.op in EXPRESSIONS:
        return rule_of(node, node)
    if node.op == "rel":
        return "equation" if set(node.text) == {"="} else "inequality"
    if node.op == "named":
        return _rule_of_kind(node.args[0])
    return "unit" if node.op == "quantity" and node.text else node.op


def has_decimal(node: Node) -> bool:
    """Tell whether a number in it is written with a decimal point."""
    return any(part.op == "num" and "." in part.text for part in walk(node))
