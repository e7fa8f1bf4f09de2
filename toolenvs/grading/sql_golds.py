"""Gold queries as defog writes them: several in one text, with columns of which any will do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from toolenvs.errors import UsageError

_MOST_GOLDS = 64


def expand_golds(text: str) -> list[str]:
    """The gold queries that a text of defog's form stands for.

    Golds are separated by semicolons. ``{a, b}`` among the columns means that any of them suffice:
    one gold for each choice of at least one, in order, all of them first; ``{}`` (in GROUP BY)
    takes the same choice, without its new names. Quoted text and comments are left alone.

    >>> expand_golds("SELECT {id, name}, sum(x) FROM t GROUP BY {}")[1]
    'SELECT id, sum(x) FROM t GROUP BY id'

    Raises:
        UsageError: A brace is not closed, ``{}`` comes before any choice, or there are more than 64
            golds.
    """
    golds: list[str] = []
    for statement in _split(text):
        golds += [gold for gold in _expand(statement) if gold not in golds]
        if len(golds) > _MOST_GOLDS:
            raise UsageError(f"the gold {statement[:80]!r} stands for over {_MOST_GOLDS} queries.")
    return golds


def _split(text: str) -> list[str]:
    """Statements without their semicolons; braces do not disturb."""
    statements = [""]
    for piece, plain in _pieces(text):
        for number, part in enumerate(piece.split(";") if plain else [piece]):
            if number:
                statements.append("")
            statements[-1] += part
    return [statement.strip() for statement in statements if statement.strip()]


def _expand(statement: str) -> list[str]:
    """One gold for each choice from each of its ``{a, b}``."""
    parts: list[str] = [""]  # text and choices in turn
    inside = False
    for piece, plain in _pieces(statement):
        for character in piece:
            if plain and character in "{}":
                if inside == (character == "{"):
                    raise UsageError(f"braces do not pair in the gold {statement[:80]!r}.")
                inside = not inside
                parts.append("")
            else:
                parts[-1] += character
    if inside:
        raise UsageError(f"a brace is not closed in the gold {statement[:80]!r}.")
    choices = [_choices(part) for part in parts[1::2] if part.strip()]
    if not choices and len(parts) > 1:
        raise UsageError(f"'{{}}' repeats no choice in the gold {statement[:80]!r}.")
    if len(choices) == 0:
        return [statement]
    total = math.prod(map(len, choices))
    if total > _MOST_GOLDS:
        raise UsageError(f"the gold {statement[:80]!r} stands for {total} queries.")
    return [_filled(parts, chosen) for chosen in itertools.product(*choices)]


def _choices(part: str) -> list[tuple[str, ...]]:
    columns = _columns(part)
    sizes = range(len(columns), 0, -1)
    if 2 ** len(columns) - 1 > _MOST_GOLDS:
        raise UsageError(f"{{{part}}} offers too many columns to choose from.")
    return [chosen for size in sizes for chosen in itertools.combinations(columns, size)]


def _columns(part: str) -> list[str]:
    """The columns between commas that stand outside brackets and quotes."""
    columns = [""]
    depth = 0
    for piece, plain in _pieces(part):
        for character in piece:
            if plain:
                depth += (character == "(") - (character == ")")
            if plain and character == "," and depth == 0:
                columns.append("")
            else:
                columns[-1] += character
    return [column.strip() for column in columns if column.strip()]


def _filled(parts: Sequence[str], chosen: Sequence[tuple[str, ...]]) -> str:
    waiting = list(chosen)
    current: tuple[str, ...] = chosen[0]
    text = ""
    for number, part in enumerate(parts):
        if number % 2 == 0:
            text += part
        elif part.strip():
            current = waiting.pop(0)
            text += ", ".join(current)
        else:
            text += ", ".join(map(_without_new_name, current))
    return text


def _without_new_name(column: str) -> str:
    words = column.split()
    cut = len(words) > 2 and words[-2].upper() == "AS"
    return " ".join(words[:-2]) if cut else column


def _pieces(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is plain: neither quoted nor a comment."""
    pieces: list[tuple[str, bool]] = []
    start = place = 0
    while place < len(text):
        end = _end_of_quoted(text, place)
        if end > place:
            pieces += [(text[start:place], True), (text[place:end], False)]
            start = end
        place = max(place + 1, end)
    return [*pieces, (text[start:], True)]


def _end_of_quoted(text: str, place: int) -> int:
    """Where the quoted text or comment that begins at ``place`` ends; ``place`` if none does."""
    for opening, closing in (("'", "'"), ('"', '"'), ("--", "\n"), ("/*", "*/")):
        if text.startswith(opening, place):
            end = text.find(closing, place + len(opening))
            return len(text) if end < 0 else end + len(closing)
    return place
