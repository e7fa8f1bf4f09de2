"""What a statement gave: rows as JSON, in the order in which the database gave them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .faults import Fault
from .values import encoded, printable, undecodable

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_PLAIN = frozenset((int, str, bool, type(None)))


class Rows(NamedTuple):
    """The result of one statement.

    Attributes:
        columns: names as the engine gave them; two may be equal.
        lines: the JSON of each row, an array of values (see ``values``).
        row_count: how many rows these are; for a statement that returns none, how many it changed.
        cut: True where there are more rows than were wanted.
        undecodable: how many texts had bytes that are no UTF-8, shown as U+FFFD.
    """

    columns: list[str]
    lines: list[str]
    row_count: int
    cut: bool = False
    undecodable: int = 0

    def to_json(self) -> str:
        """The whole as one JSON object; ``undecodable`` only where it is not 0."""
        text = f'"columns":{_to_json(self.columns)},"rows":[{",".join(self.lines)}]'
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
    left = max_bytes - utf8_size(_to_json(columns))
    if left < 0:
        raise Fault("memory", f"The column names alone take more than {max_bytes:,} bytes.")
    lines: list[str] = []
    replaced = 0
    while (row := cursor.fetchone()) is not None:
        line, undecoded = _line(row)
        left -= utf8_size(line) + 1
        if left < 0 or len(lines) == max_rows:
            return Rows(columns, lines, len(lines), True, replaced)
        lines.append(line)
        replaced += undecoded
    return Rows(columns, lines, len(lines), False, replaced)


def utf8_size(text: str) -> int:
    """Size of a text in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def _line(row: Any) -> tuple[str, int]:
    """The JSON of a row, and how many of its texts could not be decoded whole."""
    line = _to_json([v if type(v) in _PLAIN else encoded(v) for v in row])
    if not undecodable(line):
        return line, 0
    replaced = sum(isinstance(value, str) and undecodable(value) for value in row)
    return _to_json([encoded(value) for value in row]), max(1, replaced)
