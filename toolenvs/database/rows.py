"""What a statement gave: rows as JSON, in the order in which the database gave them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from .faults import Fault
from .values import encoded, printable, undecodable

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_PLAIN = frozenset((int, str, bool, type(None)))
_MOST_AT_ONCE, _SHORT = 64, 1000  # rows fetched together, while they take so few bytes on average


class Rows(NamedTuple):
    """The result of one statement.

    Attributes:
        columns: names as the engine gave them; two may be equal.
        json: the rows as JSON: an array of arrays of values (see ``values``).
        row_count: how many rows these are; for a statement that returns none, how many it changed.
        cut: True where there are more rows than were wanted.
        undecodable: how many texts had bytes that are no UTF-8, shown as U+FFFD.
    """

    columns: Sequence[str] = ()
    json: str = "[]"
    row_count: int = 0
    cut: bool = False
    undecodable: int = 0

    def to_json(self) -> str:
        """The whole as one JSON object; ``undecodable`` only where it is not 0."""
        text = f'"columns":{_to_json(self.columns)},"rows":{self.json}'
        text += f',"row_count":{self.row_count},"cut":{"true" if self.cut else "false"}'
        return f'{{{text},"undecodable":{self.undecodable}}}' if self.undecodable else f"{{{text}}}"


def fetched(cursor: Any, *, max_rows: int, max_bytes: int) -> Rows:
    """Take rows from a DBAPI cursor until they end or the next one is too much.

    Args:
        cursor: one whose statement returns rows.
        max_rows: most rows.
        max_bytes: most bytes of JSON that the rows and the names of their columns may take.

    Raises:
        Fault: The names alone take more than ``max_bytes``.
    """
    columns = [printable(str(column[0])) for column in cursor.description]
    page = _Page(max_rows, max_bytes - utf8_size(_to_json(columns)))
    if page.left < 0:
        raise Fault("memory", f"The column names alone take more than {max_bytes:,} bytes.")
    wanted = 1
    while (rows := cursor.fetchmany(wanted)) and page.takes(rows):
        wanted = page.next_rows(wanted)
    return Rows(columns, f"[{','.join(page.parts)}]", page.rows, page.cut, page.undecodable)


class _Page:
    """Rows that are wanted, as JSON, and how many more there may be."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self.left = max_bytes
        self.parts: list[str] = []
        self.rows = 0
        self.undecodable = 0
        self.cut = False
        self._max_rows = max_rows
        self._used = 0

    def takes(self, rows: Sequence[Any]) -> bool:
        """Add rows, as many as there is room for; tell whether all were."""
        fitting = rows[: self._max_rows - self.rows]
        if fitting and not self._add(fitting):
            for row in fitting:
                if not self._add((row,)):
                    break
        self.cut = len(fitting) < len(rows) or self.cut
        return not self.cut

    def next_rows(self, last: int) -> int:
        """How many rows to fetch: few while they are large."""
        short = self._used <= self.rows * _SHORT
        return min(2 * last, _MOST_AT_ONCE) if short else 1

    def _add(self, rows: Sequence[Any]) -> bool:
        text, undecoded = _text(rows)
        size = utf8_size(text) + 1
        self.cut = size > self.left
        if self.cut:
            return False
        self.parts.append(text)
        self.left -= size
        self._used += size
        self.rows += len(rows)
        self.undecodable += undecoded
        return True


def utf8_size(text: str) -> int:
    """Size of a text in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def _text(rows: Sequence[Any]) -> tuple[str, int]:
    """The JSON of rows without its brackets, and how many texts could not be decoded whole."""
    text = _to_json([[v if type(v) in _PLAIN else encoded(v) for v in row] for row in rows])
    if not undecodable(text):
        return text[1:-1], 0
    found = sum(isinstance(v, str) and undecodable(v) for row in rows for v in row)
    return _to_json([[encoded(value) for value in row] for row in rows])[1:-1], max(1, found)
