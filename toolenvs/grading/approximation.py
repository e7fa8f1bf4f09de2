"""Approximate the value of a constant expression, for comparisons with a declared tolerance."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

from toolenvs.grading.nodes import Node
from toolenvs.grading.numerals import read_fraction

_CONSTANTS = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "ln": cmath.log,
    "exp": cmath.exp,
}
_MAX_FACTORIAL = 100


def approximate(node: Node) -> complex | None:
    """Return the value of an expression without variables, about 15 digits, or None.

    None stands for a variable, a function that is not known here, no value, or a value beyond
    what floating point can hold.
    """
    try:
        value = _value(node)
    except (ArithmeticError, ValueError, KeyError):
        return None
    return value if cmath.isfinite(value) else None


def _value(node: Node) -> complex:
    if node.op == "num":
        return complex(float(read_fraction(node.text)))
    if node.op == "const":
        return _CONSTANTS[node.text]
    args = [_value(part) for part in node.args]
    if node.op == "func":
        base = cmath.log(args[1]) if len(args) > 1 else None
        if node.text == "log":
            return cmath.log(args[0]) / (base or math.log(10))
        return _FUNCTIONS[node.text](args[0])
    return _arithmetic(node.op, args)


def _arithmetic(op: str, args: list[complex]) -> complex:
    if op == "add":
        return sum(args, 0j)
    if op == "mul":
        return math.prod(args, start=1 + 0j)
    if op == "neg":
        return -args[0]
    if op == "div":
        return args[0] / args[1]
    if op == "pow":
        return args[0] ** args[1]
    if op == "root":
        return args[1] ** (1 / args[0])
    if op == "abs":
        return complex(abs(args[0]))
    if op == "deg":
        return args[0] * math.pi / 180
    if op == "fact" and not args[0].imag and args[0].real <= _MAX_FACTORIAL:
        return complex(math.gamma(args[0].real + 1))
    raise ValueError(f"no approximation of {op}")
