"""Exact arithmetic on expressions, and its limits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.exact import Ring, evaluate_rational, proportion
from toolenvs.grading.expression import read_expression
from toolenvs.grading.nodes import TooLargeError, UndefinedError
from toolenvs.grading.radicals import exact_root, split_square


def decide(left: str, right: str) -> bool | None:
    """Compare two texts by the exact form."""
    return Ring().decide(read_expression(left), read_expression(right))


polynomials = st.recursive(
    st.one_of(st.integers(0, 9).map(str), st.sampled_from(["x", "y", "\\pi", "i", "\\sqrt{2}"])),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=6,
)


@given(left=polynomials, right=polynomials, third=polynomials)
def test_the_laws_of_arithmetic_hold(left: str, right: str, third: str) -> None:
    """Sums and products may be swapped and multiplied out; adding 1 makes a difference."""
    assert decide(f"({left}) + ({right})", f"({right}) + ({left})") is True
    assert decide(f"({left})*({right})", f"({right})*({left})") is True
    product = f"({third})*(({left}) + ({right}))"
    assert decide(product, f"({third})*({left}) + ({third})*({right})") is True
    assert decide(left, f"{left} + 1") is False


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (r"\frac{3}{1+\sqrt5}", r"\frac{3(\sqrt5-1)}{4}", True),
        (r"\sqrt{50}", r"5\sqrt2", True),
        (r"\sqrt{-4}", "2i", True),
        (r"(1+i)^4", "-4", True),
        (r"\frac{x^2-1}{x-1}", "x+1", True),
        (r"\sqrt[3]{-8}", "-2", True),
        ("4^{3/2}", "8", True),
        ("x^{1000}", "x^{1001}", False),
        (r"\frac{5}{7^{30}}", r"\frac{5}{7^{31}}", False),
        (r"\pi", "3.14159265358979", False),
        (r"\cot x + 1", r"1 + \cot x", True),
        (r"\cot x", r"\frac{\cos x}{\sin x}", None),
        ("2^{n+1}", "2^{1+n}", True),
        ("(x+1)^{1000}", "(1+x)^{1000}", True),
        (r"\sqrt{2+\sqrt3}", "1", None),
        (r"\sqrt{12345678910111213}", "2", None),
    ],
)
def test_expressions_are_decided_or_left(left: str, right: str, equal: bool | None) -> None:
    """What this form can prove it proves, in both directions; the rest it leaves open."""
    assert decide(left, right) is equal


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^{9}}",
        "9^9^9^9",
        "10000000!",
        "(((10!)!)!)!",
        "(1+10^{-9})^{10^{9}}",
        r"\binom{10^9}{5\cdot10^8}",
        "2^{60000}3^{60000}",
        "(x+y+z)^{60}",
        "+".join(rf"\frac{{3^{{10000}}}}{{7^{{{at}}}}}" for at in range(9000, 9200)),
        "+".join(rf"\sqrt{{{at}}}" for at in range(9999999667, 9999999967)),
        "+".join(rf"\sqrt{{{at}!}}" for at in range(1500, 2000)),
        "+".join(rf"\sqrt[{at}]{{{2000 - at}!+1}}" for at in range(3, 200)),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_computed(text: str) -> None:
    """Powers, factorials and long sums of large numbers run out of fuel, not of time."""
    with pytest.raises(TooLargeError):
        decide(text, "7")


@pytest.mark.parametrize(
    "text", ["1/0", "0^0", "0^{-1}", r"\frac{1}{\sqrt4-2}", r"1/(x-x)", r"(-3)!"]
)
def test_what_has_no_value_is_undefined(text: str) -> None:
    """A division by zero is not a number, nor equal to one."""
    with pytest.raises(UndefinedError):
        decide(text, "7")


def test_values_and_proportions() -> None:
    """Rational values and rational factors between expressions come out exactly."""
    assert evaluate_rational(read_expression(r"\frac{1}{3} + 0.25")) == Fraction(7, 12)
    assert evaluate_rational(read_expression("x")) is None
    assert proportion(read_expression("2x - 4y"), read_expression("2y - x")) == -2
    assert proportion(read_expression("2x - 4y"), read_expression("x + y")) is None


@given(value=st.integers(0, 10**30), degree=st.integers(2, 9))
def test_integer_roots_are_exact(value: int, degree: int) -> None:
    """A root is returned exactly where there is one."""
    assert exact_root(value**degree, degree) == value
    root = exact_root(value, degree)
    assert root is None or root**degree == value


@given(value=st.integers(1, 10**12))
def test_squares_are_split_off(value: int) -> None:
    """The parts of a split radicand multiply to it."""
    outside, primes, rest = split_square(value)
    product = outside**2 * rest
    for prime in primes:
        product *= prime
    assert product == value
