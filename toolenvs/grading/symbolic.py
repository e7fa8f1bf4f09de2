"""The killable helper: decides equality of expressions by sympy. Run as a program, not imported.

It is a program of its own that imports nothing of the package, since it is started with the bare
interpreter and must be up soon. Requests and replies are frames: four bytes of length, then JSON.
A request is ``{"left": node, "right": node, "cpu_s": seconds}``; a node is ``[op, args, text]``; a
reply is ``{"equal": true | false | null, "why": "...", "cpu_s": seconds}``. ``worker`` holds the
other end.

No text reaches sympy: its objects are built node by node, numbers from integers, functions from a
table, and variables under names made here (``v0``, ``v1``).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_MAX_BITS = 1 << 17
_MAX_FACTORIAL = 2_000
_MEMORY_BYTES = 2 << 30
_DIGITS = 60
_SECONDS_BETWEEN_LOOKS = 5.0
_POINTS = ((17, 11), (-13, 7), (5, 19), (-31, 23), (43, 29), (-3, 37))


class TooLargeError(Exception):
    """To build or evaluate it would take too long."""


def main(arguments: list[str]) -> None:
    """Serve requests on standard input until it ends, the parent is gone or nothing comes.

    Args:
        arguments: seconds to wait for a request before ending; then folders to import from.
    """
    idle_s = float(arguments[0])
    sys.path.extend(folder for folder in arguments[1:] if folder not in sys.path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    sys.set_int_max_str_digits(0)
    prover = Prover()
    parent = os.getppid()
    _send({"why": "ready"})
    while _wait(idle_s, parent):
        request = _receive()
        if request is None:
            return
        _limit_cpu(float(request["cpu_s"]))
        started = time.process_time()
        reply = prover.answer(request["left"], request["right"])
        _send({**reply, "cpu_s": time.process_time() - started})


class Prover:
    """Builds sympy expressions and compares them."""

    def __init__(self) -> None:
        import sympy

        self._sympy = sympy
        names = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp")
        inverses = ("asin", "acos", "atan", "acot", "asec", "acsc")
        self._functions = {name: getattr(sympy, name) for name in (*names, *inverses)}
        self._functions["ln"] = sympy.log

    def answer(self, left: Any, right: Any) -> dict[str, Any]:
        """Compare two nodes; never raises."""
        try:
            return {"equal": self._compare(left, right), "why": ""}
        except (TooLargeError, MemoryError, OverflowError):
            return {"equal": None, "why": "too_large"}
        except Exception as error:  # sympy may raise anything; then nothing is proved
            return {"equal": None, "why": type(error).__name__}

    def _compare(self, left: Any, right: Any) -> bool | None:
        names = sorted(_names(left) | _names(right))
        if self._differ_somewhere(left, right, names):
            return False
        variables = {name: self._sympy.Symbol(f"v{at}") for at, name in enumerate(names)}
        first, second = self.build(left, variables), self.build(right, variables)
        if first == second:
            return True
        difference = first - second
        for simplify in self._simplifications():
            with contextlib.suppress(NotImplementedError, ValueError, TypeError, AttributeError):
                simpler = simplify(difference)
                if simpler == 0:
                    return True
                if simpler.is_Rational:
                    return False
        return None

    def _simplifications(self) -> Iterator[Callable[[Any], Any]]:
        sympy = self._sympy
        yield sympy.expand
        yield lambda value: sympy.radsimp(sympy.sqrtdenest(value))
        yield lambda value: sympy.cancel(sympy.together(value))
        yield lambda value: sympy.expand(sympy.expand_trig(sympy.expand_log(value, force=False)))
        yield sympy.trigsimp
        yield self._by_tangent
        yield self._by_minimal_polynomial
        yield sympy.simplify
        yield lambda value: sympy.simplify(value.rewrite(sympy.exp))
        yield lambda value: sympy.simplify(sympy.logcombine(value))

    def _by_minimal_polynomial(self, value: Any) -> Any:
        """Return 0 for an algebraic number that is zero, which nothing else may notice."""
        if value.free_symbols or not value.is_algebraic:
            return value
        unknown = self._sympy.Dummy()
        polynomial = self._sympy.minimal_polynomial(value, unknown)
        return self._sympy.Integer(0) if polynomial == unknown else value

    def _by_tangent(self, value: Any) -> Any:
        """Return 0 for a sum of angles near 0 whose tangent is 0, such as arctan 2 + ... - pi/4."""
        sympy = self._sympy
        inverse = value.has(sympy.atan, sympy.asin, sympy.acos, sympy.acot)
        if value.free_symbols or not inverse or not value.is_real or abs(value.evalf()) > 1:
            return value
        tangent = sympy.simplify(sympy.expand_trig(sympy.tan(value)))
        return self._sympy.Integer(0) if tangent == 0 else value

    def _differ_somewhere(self, left: Any, right: Any, names: list[str]) -> bool:
        """Tell whether the two differ at one of a few rational points, to 60 digits."""
        for start in range(len(_POINTS) if names else 1):
            values = itertools.islice(itertools.cycle(_POINTS), start, start + len(names))
            point = {
                name: self._sympy.Rational(top + 2 * at, bottom)
                for at, (name, (top, bottom)) in enumerate(zip(names, values, strict=False))
            }
            first, second = (self._components(side, point) for side in (left, right))
            known = [abs(part) for part in (*first, *second) if part is not None]
            tolerance = max(known, default=0) * self._sympy.Float(10) ** (20 - _DIGITS)
            for one, other in zip(first, second, strict=True):
                if one is not None and other is not None and abs(one - other) > tolerance:
                    return True
        return False

    def _components(self, node: Any, point: dict[str, Any]) -> list[Any]:
        """Return the real and the imaginary part at a point, each None where it is not known.

        A part that is zero, but not seen to be, comes out of ``evalf`` as noise of one bit: it says
        nothing about a difference, which is then for simplification to decide.
        """
        parts = self.build(node, point).evalf(_DIGITS).as_real_imag()
        if not all((part.is_Float or part.is_Rational) and part.is_finite for part in parts):
            return [None, None]
        return [None if getattr(part, "_prec", _DIGITS) <= 1 else part for part in parts]

    def build(self, node: Any, point: dict[str, Any]) -> Any:
        """Return the sympy expression of a node, each variable replaced by what ``point`` says.

        Raises:
            TooLargeError: To evaluate it would take too long.
        """
        sympy = self._sympy
        op, args, text = node
        if op == "num":
            return self._rational(text)
        if op == "sym":
            return point[text]
        if op == "const":
            return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "oo": sympy.oo}[text]
        values = [self.build(part, point) for part in args]
        if op == "add":
            return sympy.Add(*values)
        if op == "mul":
            return sympy.Mul(*values)
        if op == "func":
            return self._function(text, values)
        return {
            "neg": lambda x: -x,
            "div": self._quotient,
            "pow": self._power,
            "root": self._root,
            "abs": sympy.Abs,
            "floor": sympy.floor,
            "ceil": sympy.ceiling,
            "deg": lambda x: x * sympy.pi / 180,
            "fact": self._factorial,
            "binom": self._binomial,
        }[op](*values)

    def _rational(self, text: str) -> Any:
        top, _, bottom = text.partition("/")
        whole, _, decimals = top.partition(".")
        return self._sympy.Rational(
            int((whole + decimals) or "0"), int(bottom or 10 ** len(decimals))
        )

    def _function(self, name: str, values: list[Any]) -> Any:
        sympy = self._sympy
        if name == "log":
            return sympy.log(values[0], values[1] if len(values) > 1 else sympy.Integer(10))
        return self._functions[name](values[0])

    def _quotient(self, top: Any, bottom: Any) -> Any:
        """Divide, but not by a number that is zero without being seen to be."""
        if bottom.is_number and not bottom.is_Rational:
            parts = bottom.evalf(_DIGITS).as_real_imag()
            if all(part == 0 or getattr(part, "_prec", _DIGITS) <= 1 for part in parts):
                raise ZeroDivisionError
        return top / bottom

    def _power(self, base: Any, exponent: Any) -> Any:
        if base.is_Rational and exponent.is_Rational:
            size = max(int(base.p).bit_length(), int(base.q).bit_length())
            if size * abs(exponent) > _MAX_BITS and base not in (0, 1, -1):
                raise TooLargeError
        elif exponent.is_Integer and abs(exponent) > 10_000 and base.is_number and not base.is_Atom:
            raise TooLargeError
        return self._sympy.Pow(base, exponent)

    def _root(self, index: Any, radicand: Any) -> Any:
        if radicand.is_number and radicand.is_negative and index.is_Integer and index % 2:
            # The real root, as schools teach it, not the principal one.
            return -self._root(index, -radicand)
        return self._power(radicand, 1 / index)

    def _factorial(self, value: Any) -> Any:
        if value.is_Number and abs(value) > _MAX_FACTORIAL:
            raise TooLargeError
        return self._sympy.factorial(value)

    def _binomial(self, top: Any, bottom: Any) -> Any:
        if any(value.is_Number and abs(value) > _MAX_FACTORIAL for value in (top, bottom)):
            raise TooLargeError
        return self._sympy.binomial(top, bottom)


def _names(node: Any) -> set[str]:
    op, args, text = node
    return {text} if op == "sym" else {name for part in args for name in _names(part)}


def _limit_cpu(seconds: float) -> None:
    """End this process after so much more processor time, even if nobody is left to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 3
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _wait(idle_s: float, parent: int) -> bool:
    """Wait for a request; False when it is time to end."""
    waited = 0.0
    while waited < idle_s:
        step = min(_SECONDS_BETWEEN_LOOKS, idle_s - waited)
        if select.select([0], [], [], step)[0]:
            return True
        if os.getppid() != parent:
            return False
        waited += step
    return False


def _receive() -> Any:
    head = _read(4)
    body = _read(int.from_bytes(head, "big")) if head else b""
    return json.loads(body) if body else None


def _read(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            return b""
        data += piece
    return data


def _send(reply: dict[str, Any]) -> None:
    body = json.dumps(reply).encode()
    os.write(1, len(body).to_bytes(4, "big") + body)


if __name__ == "__main__":
    main(sys.argv[1:])
