r"""What may stand before an equals sign as the name of an answer: ``x``, ``f(x)``, ``Area``."""

from __future__ import annotations

import re

from toolenvs.grading.expression import read_expression
from toolenvs.grading.nodes import Node, ReadError
from toolenvs.grading.notation import unwrap_text
from toolenvs.grading.tokens import GREEK, NAMES

_NAME = re.compile(r"(?:m?\s*\\(?:angle|triangle)\s*)?[a-zA-Z][a-zA-Z' ]*(?:\([a-zA-Z]\))?")
_ARITHMETIC = re.compile(r"[-+*/^,\[\]]|(?<![_0-9{])[0-9]|\\(?:frac|sqrt|cdot|times|pm)")
_LETTERS = re.compile(r"[a-zA-Z]{1,2}|[A-Z]{3,6}|abc|pqr|xyz|[a-zA-Z]'{1,3}")
_VALUE_AT = re.compile(r"[fghpqFGHPQ]'{0,3}\s*\(\s*-?[0-9]+\s*\)")
_APPLIED = re.compile(r"[a-zA-Z]'{0,3}\s*\([a-zA-Z](?:\s*,\s*[a-zA-Z]){0,3}\)")
_ANGLE = re.compile(r"m?\s*\\(?:angle|triangle)\s*[A-Z]{1,4}")
_POINT = re.compile(r"\([a-z](?:,[a-z]){1,3}\)")
_SOUGHT_WORDS = """
answer result total sum difference product quotient ratio remainder value solution mean median mode
average area perimeter circumference volume length width height depth radius diameter base side
distance speed velocity time age rate price cost profit revenue tax tip interest change amount
number probability slope intercept discriminant determinant angle degree order period max min
maximum minimum gcd lcm
"""
_SOUGHT = frozenset(_SOUGHT_WORDS.split())
_NO_NAMES = frozenset({"no", "not", "never", "false", "wrong"})
_MAX_NAME = 40


def read_name(text: str, like: Node | None) -> tuple[Node, ...] | None:
    r"""Read what stands before an equals sign; None if it is an expression rather than a name.

    A name is one symbol (``x``, ``a_1``, ``\vec{v}``), a function of symbols (``f(x)``), letters
    side by side (``AB``), an angle (``\angle ABC``) or a word for what is sought (``Area``). Any
    other words (``not x``) name something in the gold answer only, or after it.
    """
    plain = unwrap_text(text)
    if _POINT.fullmatch(plain) and len(set(plain)) == len(plain.replace(",", "")) + 1:
        return ()
    if _VALUE_AT.fullmatch(plain):
        return _name_parts(text)
    if not plain or len(plain) > _MAX_NAME or _ARITHMETIC.search(text):
        return None
    words = plain.split()
    if not NAMES.isdisjoint(words[:1]) and words[0] not in GREEK:
        return None
    if _LETTERS.fullmatch(plain) and plain.lower() not in _NO_NAMES:
        return _name_parts(text)
    sought = plain.lower().removeprefix("the ") in _SOUGHT
    if sought or _APPLIED.fullmatch(plain) or _ANGLE.fullmatch(plain):
        return _name_parts(text)
    parts = _name_parts(text)
    if parts and (parts[0].op == "sym" or parts[0].text in ("e", "i")):
        return parts
    given = like is None or (like.op == "named" and like.text == spell_name(text))
    return parts if given and not parts and _NAME.fullmatch(plain) else None


def _name_parts(text: str) -> tuple[Node, ...]:
    try:
        return (read_expression(text),)
    except ReadError:
        return ()


def spell_name(name: str) -> str:
    r"""Return a name without spaces, braces and ``\text``, to be compared."""
    return re.sub(r"[\s{}]", "", unwrap_text(name))
