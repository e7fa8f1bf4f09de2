"""Finding the statements in a text, without understanding them.

Only comments, quotes and semicolons are read, by the rules of the engine, and each statement is
handed on letter by letter as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from .faults import Fault

Dialect = Literal["sqlite", "postgres"]
MAX_CHARS = 200_000
"""Most characters of a text that is looked at."""

_QUOTES = r"""
    | '(?:[^']|'')*+(?:'|\Z)
    | "(?:[^"]|"")*+(?:"|\Z)
"""
_PLAIN = r"[A-Za-z0-9_][\w$]*+ | [^\s\ufeff'\"`\[;/$\-A-Za-z0-9_]++ | ."
_POSTGRES_NAME = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+"
_TOKENS: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(
        rf"""
        (?P<blank> [\s\ufeff]++ | --[^\n]*+ | /\*.*?(?:\*/|\Z) | (?P<comment> (?!)))
        | (?P<end> ;)
        | (?P<word> `(?:[^`]|``)*+(?:`|\Z) | \[[^\]]*+(?:\]|\Z) {_QUOTES} | {_PLAIN})
        """,
        re.VERBOSE | re.DOTALL,
    ),
    "postgres": re.compile(
        rf"""
        (?P<blank> [ \t\n\r\f\v]++ | --[^\n\r]*+ | (?P<comment> /\*))
        | (?P<end> ;)
        | (?P<word> [eE]'(?:[^'\\]|''|\\.)*+(?:'|\Z) {_QUOTES}
            | \$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)?)\$
                .*?(?:\$(?P=tag)\$|\Z)
            | {_POSTGRES_NAME} | [0-9]++ | [^ \t\n\r\f\v'";/$\-A-Za-z0-9_\x80-\U0010ffff]++ | .)
        """,
        re.VERBOSE | re.DOTALL,
    ),
}
_HEAD_WORDS = 6
_TRIGGER = re.compile(r"(?:EXPLAIN (?:QUERY PLAN )?)?CREATE (?:TEMP |TEMPORARY )?TRIGGER\b")
_NESTED = re.compile(r"/\*|\*/")
_FENCE = "```"


def sole_statement(text: str, dialect: Dialect) -> str:
    """The one statement in ``text``, as it was written, without its semicolon.

    A byte order mark at the start is not part of it, nor are a Markdown fence around it all and
    comments after the semicolon.

    Raises:
        Fault: There is none, or more than one, or no database could read the text.
    """
    if len(text) > MAX_CHARS:
        raise Fault("bad_arguments", f"The statement is longer than {MAX_CHARS:,} characters.")
    if "\0" in text:
        raise Fault("bad_arguments", "The statement holds a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Fault(
            "bad_arguments", "The statement holds a character that is no Unicode."
        ) from None
    found = list(statements(_unfenced(text), dialect))
    if not found:
        raise Fault("bad_arguments", "The statement is empty: there is nothing to run.")
    if len(found) > 1:
        raise Fault("bad_arguments", f"One statement per call: this holds {len(found)}.")
    return found[0]


def _unfenced(text: str) -> str:
    """What stands in a Markdown fence, where that is all there is."""
    whole = text.strip()
    if not (whole.startswith(_FENCE) and whole.endswith(_FENCE)):
        return text
    first, newline, rest = whole.partition("\n")
    language = first.removeprefix(_FENCE).strip()
    plain = not language or language.isalnum()
    return rest.removesuffix(_FENCE) if newline and plain else text


def statements(text: str, dialect: Dialect) -> Iterator[str]:
    """The statements in ``text``, each without its semicolon; those that say nothing are left out.

    A comment belongs to the statement that follows it.
    """
    text = text.removeprefix("\ufeff")
    start = 0
    words = _Words()
    for kind, begin, end in _tokens(text, dialect):
        if kind == "word":
            words.add(text[begin:end])
        elif kind == "end" and words.in_trigger and dialect == "sqlite":
            words.add(";")
        elif kind == "end":
            if words.count:
                yield text[start:begin]
            start, words = end, _Words()
    if words.count:
        yield text[start:].rstrip()


def words(statement: str, dialect: Dialect, *, most: int) -> list[str]:
    """The first names and keywords of a statement, in upper case; at most ``most``."""
    tokens = _tokens(statement, dialect)
    found = (statement[begin:end] for kind, begin, end in tokens if kind == "word")
    return list(islice((text.upper() for text in found if text.isidentifier()), most))


class _Words:
    """What must be known of a statement's words to see where it ends.

    In the body of a trigger semicolons stand between statements, and the one after ``; END`` is its
    own, as SQLite's shell has it.
    """

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []
        self._last = ("", "")

    def add(self, word: str) -> None:
        self.count += 1
        short = word[:10].upper()
        self._last = (self._last[1], short)
        if len(self._first) < _HEAD_WORDS:
            self._first.append(short)

    @property
    def in_trigger(self) -> bool:
        """Tell whether the next semicolon belongs to the statement."""
        return bool(_TRIGGER.match(" ".join(self._first))) and self._last != (";", "END")


def _tokens(text: str, dialect: Dialect) -> Iterator[tuple[str, int, int]]:
    """Kind (``blank``, ``word``, or ``end``: a semicolon), begin and end of each token."""
    place = 0
    while place < len(text):
        token = _TOKENS[dialect].match(text, place)
        assert token is not None
        end = token.end()
        if token["comment"]:
            end = _end_of_comment(text, end)
        yield token.lastgroup or "word", place, end
        place = end


def _end_of_comment(text: str, place: int) -> int:
    """Where a comment ends that may hold others, as PostgreSQL has them."""
    depth = 1
    for mark in _NESTED.finditer(text, place):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
