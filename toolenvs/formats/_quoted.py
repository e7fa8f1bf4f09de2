"""Find a delimiter in code, past the strings that may hold the same characters.

A payload's syntax is ``"python"``, ``"sql"`` or ``"text"``. In code the delimiter counts only
outside strings (and SQL's block comments); a line comment does not hide it, for a model may well
close its block there. Text has no strings: an apostrophe is an apostrophe.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Syntax = Literal["python", "sql", "text"]

_STRINGS: dict[Syntax, str] = {
    "python": r"""
        (?:'''(?:[^\\']++|\\.|'(?!''))*+''' | \"\"\"(?:[^\\"]++|\\.|"(?!""))*+\"\"\"
        | (?!''')'(?:[^\\'\n]++|\\.)*+' | (?!\"\"\")"(?:[^\\"\n]++|\\.)*+")
    """,
    "sql": r"""
        (?:'(?:[^']++|'')*+' | "(?:[^"]++|"")*+" | `[^`]*+`
        | /\*.*?\*/ | (?P<tag>\$\w*+\$).*?(?P=tag))
    """,
}
_OPEN: dict[Syntax, str] = {
    "python": r"""(?:'''.*+ | \"\"\".*+ | ['"](?:[^\\\n]++|\\.)*+)""",
    "sql": r"""(?:['"`].*+ | /\*.*+ | \$\w*+\$.*+)""",
}
_COMMENT: dict[Syntax, str] = {"python": r"\#", "sql": "--"}


def find_delimiter(
    text: str, start: int, *, delimiter: str, syntax: Syntax
) -> tuple[re.Match[str] | None, int]:
    """Find the first match of ``delimiter`` at or after ``start`` that is no part of a string.

    Args:
        text: the whole message.
        start: where the payload begins.
        delimiter: a regular expression; compiled with MULTILINE.
        syntax: what the payload is written in.

    Returns:
        The match, or None; and the place of the last quote that was never closed before, -1 if
        there is none (then a missing match means that the delimiter is not there at all).
    """
    unclosed = -1
    for found in _pattern(delimiter, syntax).finditer(text, start):
        if found.lastgroup == "open":
            unclosed = found.start()
        elif found.lastgroup == "delimiter":
            return found, unclosed
    return None, unclosed


@lru_cache(maxsize=256)
def _pattern(delimiter: str, syntax: Syntax) -> re.Pattern[str]:
    if syntax == "text":
        return re.compile(f"(?P<delimiter>{delimiter})", re.MULTILINE)
    comment = rf"(?P<comment>{_COMMENT[syntax]}(?:(?!{delimiter})[^\n])*+)"
    parts = (
        f"(?P<delimiter>{delimiter})",
        f"(?P<string>{_verbose(_STRINGS[syntax])})",
        f"(?P<open>{_verbose(_OPEN[syntax])})",
        comment,
    )
    return re.compile("|".join(parts), re.MULTILINE | re.DOTALL)


def _verbose(pattern: str) -> str:
    return re.sub(r"\s+", "", pattern)
