"""Roots of natural numbers, exactly: what comes out of a root and what stays below it."""

from __future__ import annotations

import math

_MAX_RADICAND = 10**10


def exact_root(value: int, degree: int) -> int | None:
    """Return the ``degree``-th root of a natural number if it is an integer, else None."""
    if value < 2:
        return value
    if degree >= value.bit_length():
        return None
    root = 1 << -(-value.bit_length() // degree)
    while True:  # Newton's iteration from above
        better = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if better >= root:
            return root if root**degree == value else None
        root = better


def split_square(value: int) -> tuple[int, list[int], int]:
    """Write a natural number as ``outside^2 * product(primes) * rest``.

    ``rest`` is 1 unless the number is too large to be factored; then it has no small factor.
    """
    whole = math.isqrt(value)
    if whole * whole == value:
        return whole, [], 1
    outside, primes, divisor = 1, [], 2
    limit = trial_limit(value)
    while divisor <= limit and divisor * divisor <= value:
        count = 0
        while value % divisor == 0:
            value //= divisor
            count += 1
        outside *= divisor ** (count // 2)
        if count % 2:
            primes.append(divisor)
        divisor += 1 if divisor == 2 else 2
    whole = math.isqrt(value)
    if whole * whole == value:
        return outside * whole, primes, 1
    if divisor * divisor > value:
        return outside, [*primes, value], 1
    return outside, primes, value


def trial_limit(value: int) -> int:
    """Return up to which divisor ``split_square`` looks for factors: what it costs."""
    return 100_000 if value <= _MAX_RADICAND else 2_000
