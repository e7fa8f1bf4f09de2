r"""Numbers as they are written: exact rationals of any size, no float in between.

``read_plain`` is the fast path of the grader: a few microseconds for what most answers are.
"""

from __future__ import annotations

import re
from fractions import Fraction

_GROUPED = r"[1-9][0-9]{0,2}(?:,[0-9]{3})+"
_PLAIN = re.compile(
    rf"([+-]?)({_GROUPED}|[0-9]+)(?:\.([0-9]*)|/([0-9]+))?|([+-]?)\.([0-9]+)", re.ASCII
)
_SCIENTIFIC = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?)[eE]([+-]?[0-9]{1,4})", re.ASCII)
_CHUNK = 4000  # digits; Python refuses to convert more than 4300 at once
_MAX_TEXT = 10_000

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def read_integer(digits: str) -> int:
    """Return the integer that ASCII digits, any number of them, stand for."""
    if len(digits) <= _CHUNK:
        return int(digits)
    head = len(digits) % _CHUNK
    value = int(digits[:head] or "0")
    for start in range(head, len(digits), _CHUNK):
        value = value * 10**_CHUNK + int(digits[start : start + _CHUNK])
    return value


def read_plain(text: str) -> Fraction | None:
    """Return the value of a plainly written number, or None if ``text`` is anything else.

    Plain are ``7``, ``-7``, ``1,000``, ``7.0``, ``.5``, ``7.``, ``3/4`` and ``1.5e-7``, with
    nothing but spaces around. A denominator of zero is no number.
    """
    if len(text) > _MAX_TEXT:
        return None
    text = text.strip()
    match = _PLAIN.fullmatch(text)
    if match is None:
        return _read_scientific(text)
    sign, whole, decimals, denominator, point_sign, point_decimals = match.groups()
    if point_decimals is not None:
        sign, whole, decimals = point_sign, "0", point_decimals
    value = read_decimal(whole.replace(",", ""), decimals or "")
    if denominator is not None:
        divisor = read_integer(denominator)
        if not divisor:
            return None
        value /= divisor
    return -value if sign == "-" else value


def read_decimal(whole: str, decimals: str) -> Fraction:
    """Return the exact value of ``whole.decimals``; either part may be empty."""
    if not decimals:
        return Fraction(read_integer(whole or "0"))
    return Fraction(read_integer(whole + decimals), 10 ** len(decimals))


def read_fraction(text: str) -> Fraction:
    """Return the exact value of a number node: ``7``, ``7.0``, ``.5`` or ``1/3``."""
    top, _, bottom = text.partition("/")
    if bottom:
        return Fraction(read_integer(top), read_integer(bottom))
    whole, _, decimals = top.partition(".")
    return read_decimal(whole, decimals)


def read_repeating(whole: str, decimals: str, period: str) -> Fraction:
    """Return the exact value of ``whole.decimals`` followed by ``period`` without end."""
    shift = 10 ** len(decimals)
    return read_decimal(whole, decimals) + Fraction(
        read_integer(period), shift * (10 ** len(period) - 1)
    )


def read_based(digits: str, base: int) -> int | None:
    """Return the value of ``digits`` in ``base`` (2 to 36), or None if a digit is not of it."""
    known = DIGITS[:base]
    lowered = digits.lower()
    if not lowered or not 2 <= base <= len(DIGITS) or any(digit not in known for digit in lowered):
        return None
    value = 0
    for digit in lowered:
        value = value * base + known.index(digit)
    return value


def _read_scientific(text: str) -> Fraction | None:
    match = _SCIENTIFIC.fullmatch(text)
    if match is None:
        return None
    mantissa = read_plain(match[1])
    exponent = int(match[2])
    if mantissa is None:
        return None
    return mantissa * Fraction(10) ** exponent
