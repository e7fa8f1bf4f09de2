r"""Decide equality exactly, in this process, where that takes a bounded amount of work.

An expression becomes a quotient of two polynomials with rational coefficients. What they are
polynomials in ("generators"): the variables, pi, e, i, the square roots of primes, and, as unknowns
of their own, sub-expressions that are not understood (``\sin x``, ``2^n``). With i^2 = -1 and
sqrt(p)^2 = p the form is unique, so for expressions without unknowns a difference of zero decides
in both directions; with unknowns it proves equality only. (That pi and e satisfy no equation
together is not proved, but believed; nothing else is taken on trust.)

All work is paid from a fixed amount of fuel, by the size of the numbers, so that what is too large
is refused after the same steps in every process and at any load. The processor time of the thread
is a second limit, for what the fuel should misjudge.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction

from toolenvs.grading.approximation import approximate
from toolenvs.grading.nodes import INFINITY, Node, TooLargeError, UndefinedError, symbols
from toolenvs.grading.numerals import read_fraction
from toolenvs.grading.radicals import exact_root, split_square, trial_limit

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

MAX_BITS = 1 << 16
_FUEL = 60_000
_CPU_S = 0.5
_ALMOST_NOTHING = 1e-9
_MAX_TERMS = 3_000
_MAX_EXPANDED = 64
_MAX_FACTORIAL = 2_000
_UNKNOWN = "?"
_ROOT = "√"


class Quotient:
    """``top / bottom``, two polynomials; ``bottom`` is not zero."""

    __slots__ = ("bottom", "top")

    def __init__(self, top: Polynomial, bottom: Polynomial) -> None:
        self.top = top
        self.bottom = bottom

    @property
    def rational(self) -> Fraction | None:
        """The value, if it is a rational number."""
        if not self.top:
            return Fraction(0)
        if self.top.keys() != self.bottom.keys():
            return None
        ratios = {value / self.bottom[monomial] for monomial, value in self.top.items()}
        return ratios.pop() if len(ratios) == 1 else None

    @property
    def names(self) -> set[str]:
        """The generators that it is made of."""
        parts = (*self.top, *self.bottom)
        return {name for monomial in parts for name, _ in monomial}

    @property
    def known(self) -> bool:
        """True when no generator is an unknown, so that a difference from zero is a proof."""
        return not any(name.startswith(_UNKNOWN) for name in self.names)

    @property
    def constant(self) -> bool:
        """True when it holds no variable (an unknown may hold one)."""
        return all(name in ("pi", "e", "i") or name[0] == _ROOT for name in self.names)

    def key(self) -> str:
        """Return a text that is equal only for equal quotients of one ring."""
        scale = self.bottom[min(self.bottom)]
        parts = (sorted(part.items()) for part in (self.top, self.bottom))
        return "/".join("+".join(_hex(v / scale) + repr(m) for m, v in part) for part in parts)


def evaluate_rational(node: Node, *, ring: Ring | None = None) -> Fraction | None:
    """Return the value of an expression if it is, exactly, a rational number.

    Args:
        node: an expression.
        ring: whose account pays for it; None for one of its own.

    Raises:
        TooLargeError: The work is more than the fuel allows.
        UndefinedError: It has no value.
    """
    return (ring or Ring()).remembered(node).rational


def proportion(left: Node, right: Node, *, ring: Ring | None = None) -> Fraction | None:
    """Return the rational number c with ``left = c * right``, or None if there is none.

    Raises:
        TooLargeError: The work is more than the fuel allows.
        UndefinedError: One of them has no value, or ``right`` is zero.
    """
    ring = ring or Ring()
    value = ring.remembered(Node("div", (left, right))).rational
    return None if ring.doubtful else value


class Ring:
    """Arithmetic on quotients that counts its work, all in one account."""

    def __init__(self) -> None:
        self._fuel = _FUEL
        self._pays = 0
        self._until = time.thread_time() + _CPU_S
        self.doubtful = False
        """True once something was calculated with that may have no value."""
        self._roots: dict[Fraction, Quotient] = {}
        self._unknowns: dict[str, str] = {}
        self._values: dict[Node, Quotient] = {}

    def decide(self, left: Node, right: Node) -> bool | None:
        """Tell whether two expressions are equal; None where this form cannot prove it.

        Raises:
            TooLargeError: The work is more than the fuel allows.
            UndefinedError: One of them has no value.
        """
        first, second = self.remembered(left), self.remembered(right)
        if not self.subtract(first, second).top:
            return None if self.doubtful and left != right else True
        return False if first.known and second.known else None

    def remembered(self, node: Node) -> Quotient:
        """Return ``evaluate(node)``, calculated once."""
        value = self._values.get(node)
        if value is None:
            value = self._values[node] = self.evaluate(node)
        return value

    def evaluate(self, node: Node) -> Quotient:
        """Return the unique form of an expression."""
        self._doubt(node)
        simple = {"add": self._add, "mul": self._multiply, "div": self._divide}
        if node.op in simple:
            values = [self.remembered(part) for part in node.args]
            value = values[0]
            for other in values[1:]:
                value = simple[node.op](value, other)
            return value
        if node.op == "num":
            return _rational(read_fraction(node.text))
        if node == INFINITY:
            raise UndefinedError("infinity is no number to calculate with")
        if node.op in ("sym", "const"):
            return _generator(node.text)
        if node.op == "neg":
            return self.subtract(_rational(Fraction(0)), self.remembered(node.args[0]))
        if node.op == "pow":
            return self._power(node)
        if node.op == "root":
            return self._root(node)
        return self._apply(node)

    def _doubt(self, node: Node) -> None:
        """Notice a division or a function that may have no value though none is seen here."""
        if node.op == "div":
            below = self.remembered(node.args[1])
            if below.known or not below.top:
                return
            size = abs(approximate(node.args[1]) or 0)
        elif node.op == "func":
            about = approximate(node)
            if about is None and symbols(node):
                return
            size = 1 / (1 + abs(about)) if about is not None else 0
        else:
            return
        self.doubtful |= size < _ALMOST_NOTHING

    def subtract(self, left: Quotient, right: Quotient) -> Quotient:
        """Return ``left - right``."""
        return self._add(left, Quotient({m: -c for m, c in right.top.items()}, right.bottom))

    def _add(self, left: Quotient, right: Quotient) -> Quotient:
        if left.bottom == right.bottom:
            return Quotient(self._sum(left.top, right.top), left.bottom)
        top = self._sum(
            self._product(left.top, right.bottom), self._product(right.top, left.bottom)
        )
        return Quotient(top, self._product(left.bottom, right.bottom))

    def _multiply(self, left: Quotient, right: Quotient) -> Quotient:
        return Quotient(
            self._product(left.top, right.top), self._product(left.bottom, right.bottom)
        )

    def _divide(self, left: Quotient, right: Quotient) -> Quotient:
        if not right.top:
            raise UndefinedError("division by zero")
        return self._multiply(left, Quotient(right.bottom, right.top))

    def _sum(self, left: Polynomial, right: Polynomial) -> Polynomial:
        total = dict(left)
        for monomial, value in right.items():
            self._pay(value)
            sum_ = total.get(monomial, Fraction(0)) + value
            if sum_:
                total[monomial] = sum_
            else:
                total.pop(monomial, None)
        if len(total) > _MAX_TERMS:
            raise TooLargeError("too many terms")
        return total

    def _product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        if right == {(): Fraction(1)}:
            return left
        total: Polynomial = {}
        for first, one in left.items():
            for second, other in right.items():
                self._pay(one, other)
                factor, monomial = _join(first, second)
                value = total.get(monomial, Fraction(0)) + one * other * factor
                if value:
                    total[monomial] = value
                else:
                    total.pop(monomial, None)
        return total

    def _pay(self, *values: Fraction) -> None:
        bits = sum(v.numerator.bit_length() + v.denominator.bit_length() for v in values)
        if bits > MAX_BITS:
            raise TooLargeError("numbers of too many digits")
        self._fuel -= 1 + (bits >> 10) ** 2
        self._pays += 1
        if self._fuel < 0 or (not self._pays % 256 and time.thread_time() > self._until):
            raise TooLargeError("too much arithmetic")

    def _power(self, node: Node) -> Quotient:
        base, exponent = (self.remembered(part) for part in node.args)
        power = exponent.rational
        if power is None:
            return self._unknown(node.op, base, exponent)
        if power.denominator == 2 and base.rational is not None:
            return self._integer_power(self._square_root(base.rational), power.numerator)
        several = max(len(base.top), len(base.bottom)) > 1
        if power.denominator != 1 or (several and abs(power) > _MAX_EXPANDED):
            return self._unknown(node.op, base, exponent)
        return self._integer_power(base, power.numerator)

    def _integer_power(self, base: Quotient, exponent: int) -> Quotient:
        if not exponent:
            if not base.top:
                raise UndefinedError("zero to the power of zero")
            return _rational(Fraction(1))
        if exponent < 0:
            return self._integer_power(self._divide(_rational(Fraction(1)), base), -exponent)
        rational = base.rational
        if rational is not None:
            return _rational(self._rational_power(rational, exponent))
        half = self._integer_power(base, exponent // 2) if exponent > 1 else None
        if half is None:
            return base
        square = self._multiply(half, half)
        return self._multiply(square, base) if exponent % 2 else square

    def _rational_power(self, base: Fraction, exponent: int) -> Fraction:
        if abs(base) in (0, 1):
            return base if exponent % 2 else abs(base)
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if (size - 1 or 1) * exponent > MAX_BITS:
            raise TooLargeError("a power of too many digits")
        value = base**exponent
        self._pay(value)
        return value

    def _root(self, node: Node) -> Quotient:
        index, radicand = (self.remembered(part) for part in node.args)
        degree, value = index.rational, radicand.rational
        if degree is None or degree.denominator != 1 or degree < 2 or value is None:
            return self._unknown(node.op, index, radicand)
        if degree == 2:
            return self._square_root(value)
        negative = value < 0
        if negative and degree % 2 == 0:
            return self._unknown(node.op, index, radicand)
        roots = [
            exact_root(part, int(degree)) for part in (abs(value).numerator, value.denominator)
        ]
        if roots[0] is None or roots[1] is None:
            # The real root of a negative number, as schools teach it.
            inner = self._unknown(node.op, index, _rational(abs(value)))
            return self.subtract(_rational(Fraction(0)), inner) if negative else inner
        root = Fraction(roots[0], roots[1])
        return _rational(-root if negative else root)

    def _square_root(self, value: Fraction) -> Quotient:
        """Return the root as a product of roots of primes, of i and of a rational."""
        known = self._roots.get(value)
        if known is None:
            known = self._roots[value] = self._new_square_root(value)
        return known

    def _new_square_root(self, value: Fraction) -> Quotient:
        product = value.numerator * value.denominator
        self._pay(Fraction(product))
        tried = min(math.isqrt(abs(product)), trial_limit(abs(product)))
        # Each prime that divides is divided out, and each division costs by the length.
        self._fuel -= (tried + product.bit_length()) * (1 + (product.bit_length() >> 9)) // 160
        self._pay()
        outside, primes, rest = split_square(abs(product))
        names = [(f"{_ROOT}{prime}", 1) for prime in primes]
        if rest > 1:
            names.append((self._name(f"{_ROOT}{rest:x}"), 1))
        if product < 0:
            names.append(("i", 1))
        factor = Fraction(outside, value.denominator)
        return Quotient({tuple(sorted(names)): factor} if factor else {}, {(): Fraction(1)})

    def _apply(self, node: Node) -> Quotient:
        values = [self.remembered(part) for part in node.args]
        if node.op == "deg":
            return self._multiply(values[0], _generator("pi", Fraction(1, 180)))
        numbers = [number for value in values if (number := value.rational) is not None]
        if numbers and len(numbers) == len(values):
            known = self._apply_rational(node, numbers)
            if known is not None:
                return _rational(known)
        return self._unknown(node.op + node.text, *values)

    def _apply_rational(self, node: Node, values: list[Fraction]) -> Fraction | None:
        value = values[0]
        if node.op == "abs":
            return abs(value)
        if node.op in ("floor", "ceil"):
            return Fraction(math.floor(value) if node.op == "floor" else math.ceil(value))
        if node.op == "fact" and value.denominator == 1:
            if value < 0:
                raise UndefinedError("factorial of a negative number")
            if value > _MAX_FACTORIAL:
                raise TooLargeError("too large a factorial")
            self._fuel -= int(value) >> 2
            self._pay()
            return Fraction(math.factorial(int(value)))
        if node.op == "binom" and all(v.denominator == 1 and v >= 0 for v in values):
            if max(values) > _MAX_FACTORIAL:
                raise TooLargeError("too large a binomial")
            self._fuel -= int(max(values)) >> 2
            self._pay()
            return Fraction(math.comb(int(values[0]), int(values[1])))
        return None

    def _unknown(self, name: str, *values: Quotient) -> Quotient:
        self._fuel -= sum(len(value.top) + len(value.bottom) for value in values)
        return _generator(self._name(f"{name}({','.join(value.key() for value in values)})"))

    def _name(self, key: str) -> str:
        """Return a short name for an unknown: the same for the same key."""
        return self._unknowns.setdefault(key, f"{_UNKNOWN}{len(self._unknowns)}")


def _join(first: Monomial, second: Monomial) -> tuple[int, Monomial]:
    """Multiply two monomials; the number comes from i * i and sqrt(p) * sqrt(p)."""
    if not first or not second:
        return 1, first or second
    powers = dict(first)
    for name, power in second:
        powers[name] = powers.get(name, 0) + power
    factor = 1
    for name, power in list(powers.items()):
        if power > 1 and name[0] == _ROOT:
            factor *= int(name[1:])
            powers[name] = 0
        elif power > 1 and name == "i":
            factor = -factor
            powers[name] = 0
    return factor, tuple(sorted((name, power) for name, power in powers.items() if power))


def _hex(value: Fraction) -> str:
    """Write a number of any size: Python refuses decimal digits beyond 4300."""
    return f"{value.numerator:x}|{value.denominator:x}"


def _generator(name: str, factor: Fraction = Fraction(1)) -> Quotient:
    return Quotient({((name, 1),): factor}, {(): Fraction(1)})


def _rational(value: Fraction) -> Quotient:
    return Quotient({(): value} if value else {}, {(): Fraction(1)})
