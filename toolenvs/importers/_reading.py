"""The records of a file: the items of a JSON list, the lines of JSON Lines, or the whole text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.errors import DataError

_DEEPEST = 200
"""Levels of a record: a walk over one that is deeper could end this program."""


class Record(msgspec.Struct, frozen=True):
    """One record.

    Attributes:
        content: JSON data; the text of a file that is no JSON.
        place: ``path``, ``path:line`` or ``path[number]``.
        number: which record it is, from 0.
    """

    content: Any
    place: str
    number: int


def read_records(path: Path) -> Iterator[Record]:
    """Read a file.

    Raises:
        DataError: It cannot be read, is empty, or a line of JSON Lines is no JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the file cannot be read: {error}") from None
    if not text.strip():
        raise DataError(f"{path}: the file is empty.")
    if text.lstrip()[0] not in "[{":
        yield Record(text, str(path), 0)
        return
    try:
        whole = read_json(text)
    except ValueError:
        yield from _lines(path, text)
        return
    items = whole if isinstance(whole, list) else [whole]
    for number, item in enumerate(items):
        place = f"{path}[{number}]" if isinstance(whole, list) else str(path)
        yield Record(item, place, number)


def _lines(path: Path, text: str) -> Iterator[Record]:
    number = 0
    for line_number, line in enumerate(text.split("\n"), 1):  # U+2028 is no end of a line
        if not line.strip():
            continue
        place = f"{path}:{line_number}"
        try:
            yield Record(read_json(line), place, number)
        except ValueError as error:
            raise DataError(f"{place}: this is no JSON: {error}") from None
        number += 1


def read_json(text: str) -> Any:
    """Read JSON data.

    Raises:
        ValueError: It is none, or has more than 200 levels.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [data]
    for _ in range(_DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return data
    raise ValueError("it is nested too deeply")


def _parts(data: Any) -> Iterable[Any]:
    if isinstance(data, dict):
        return data.values()
    return data if isinstance(data, list) else ()
