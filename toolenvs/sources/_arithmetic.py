"""Arithmetic written by people, read by a small checked grammar and written out as Python.

    sum     = product {("+" | "-") product}
    product = signed {("*" | "/") signed}
    signed  = {"+" | "-"} value
    value   = (number | "(" sum ")") {"%"}

There is no name, call, power or comparison in it, so what comes out can only be arithmetic on the
numbers that stand in the text, and it is bounded by the text's length.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

_MAX_CHARS = 300
_MAX_DEPTH = 20
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+|\d+\.)|(?P<sign>[-+*/()%]))"
)
_LOOKALIKES = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})


class Arithmetic(NamedTuple):
    """An expression: Python text that is exact (it uses ``F`` for ``Fraction``), and its value."""

    python: str
    value: Fraction
    operators: int


def read_arithmetic(text: str) -> Arithmetic | None:
    """Read one expression as a whole.

    Returns:
        None when the text is anything else, is too long or too deep, or divides by zero.
    """
    tokens = _tokens(text.translate(_LOOKALIKES))
    if not tokens:
        return None
    reader = _Reader(tokens)
    try:
        result = reader.sum()
    except (_NotArithmeticError, ZeroDivisionError):
        return None
    return result if reader.at_end() else None


def _tokens(text: str) -> list[str]:
    text = text.strip()
    if not text.isascii() or len(text) > _MAX_CHARS:
        return []
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return []
        tokens.append(match["number"] or match["sign"])
        position = match.end()
    return tokens


class _NotArithmeticError(Exception):
    pass


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def sum(self) -> Arithmetic:
        left = self.product()
        while sign := self._take("+-"):
            right = self.product()
            value = left.value + right.value if sign == "+" else left.value - right.value
            left = _joined(left, sign, right, value)
        return left

    def product(self) -> Arithmetic:
        left = self.signed()
        while sign := self._take("*/"):
            right = self.signed()
            value = left.value * right.value if sign == "*" else left.value / right.value
            left = _joined(left, sign, right, value)
        return left

    def signed(self) -> Arithmetic:
        sign = 1
        while taken := self._take("+-"):
            sign = -sign if taken == "-" else sign
        inner = self.value()
        if sign == 1:
            return inner
        return Arithmetic(f"-{inner.python}", -inner.value, inner.operators)

    def value(self) -> Arithmetic:
        if self._take("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise _NotArithmeticError
            inner = self.sum()
            if not self._take(")"):
                raise _NotArithmeticError
            self._depth -= 1
            result = inner._replace(python=f"({inner.python})")
        else:
            result = _number(self._take_any())
        while self._take("%"):
            result = Arithmetic(f"({result.python} / F(100))", result.value / 100, result.operators)
        return result

    def _take(self, allowed: str) -> str:
        if self._next < len(self._tokens) and self._tokens[self._next] in allowed:
            return self._take_any()
        return ""

    def _take_any(self) -> str:
        if self.at_end():
            raise _NotArithmeticError
        self._next += 1
        return self._tokens[self._next - 1]


def _number(token: str) -> Arithmetic:
    digits = token.replace(",", "")
    if not digits.strip("0123456789.") and digits.strip("."):
        value = Fraction(digits.rstrip("."))
        whole = "." not in digits
        return Arithmetic(str(int(digits)) if whole else f"F('{digits.rstrip('.')}')", value, 0)
    raise _NotArithmeticError


def _joined(left: Arithmetic, sign: str, right: Arithmetic, value: Fraction) -> Arithmetic:
    # A quotient of two whole numbers would be a float: F keeps it exact.
    divisor = f"F({right.python})" if sign == "/" else right.python
    return Arithmetic(
        f"{left.python} {sign} {divisor}", value, left.operators + right.operators + 1
    )
