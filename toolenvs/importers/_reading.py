"""The records of a file: the items of a JSON list, the lines of JSON Lines, or the whole text.

A record that cannot be read is one with a fault, so that it never costs the others. Bytes that are
no UTF-8 are kept as lone surrogates, which every record of this package can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.errors import DataError
from toolenvs.importers._notes import shown

_DEEPEST = 200
"""Levels of a record: a walk over one that is deeper could end this program."""

_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},]', re.DOTALL)
_NO_UTF8 = re.compile("[\udc80-\udcff]")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One record.

    Attributes:
        place: ``path``, ``path:line`` or ``path[number]``.
        number: which record it is, from 0.
        content: JSON data; the text of a file that is no JSON.
        fault: why there is no content, ``""`` if there is.
        problems: what is odd about its bytes.
    """

    place: str
    number: int
    content: Any = None
    fault: str = ""
    problems: tuple[str, ...] = ()


def read_records(path: Path) -> Iterator[Record]:
    """Read a file.

    Raises:
        DataError: It cannot be read, is empty, or is no text.
    """
    text = _read_text(path)
    if text.lstrip()[0] not in "[{":
        yield Record(place=str(path), number=0, content=text, problems=_oddities(text))
        return
    try:
        whole = read_json(text)
    except ValueError as error:
        yield from _pieces(path, text, error)
        return
    if not isinstance(whole, list):
        yield _record(str(path), 0, text)
        return
    # Read again piece by piece: only then is it known whose bytes are odd.
    if _oddities(text) or _Keys(text).doubled:
        yield from _items(path, text)
        return
    for number, item in enumerate(whole):
        yield Record(place=f"{path}[{number}]", number=number, content=item)


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


class _Keys:
    """Which keys of JSON data stand twice in one object, where a reader sees only the last."""

    def __init__(self, text: str) -> None:
        self.doubled: list[str] = []
        json.loads(text, object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value in pairs:
            if key in data:
                self.doubled.append(key)
            data[key] = value
        return data


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error}") from None
    if b"\0" in raw:
        place = raw.index(b"\0")
        raise DataError(f"{path}: this is no UTF-8 text: byte {place} is zero; convert it first.")
    text = raw.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    if not text.strip():
        raise DataError(f"{path}: the file is empty.")
    return text.replace("\r\n", "\n")


def _record(place: str, number: int, text: str) -> Record:
    try:
        content = read_json(text)
    except ValueError as error:
        fault = f"this is no JSON: {error}: {shown(text.strip())}"
        return Record(place=place, number=number, fault=fault)
    doubled = [
        f"the key {shown(key)} stands twice in one object; the last one counts."
        for key in _Keys(text).doubled
    ]
    return Record(
        place=place, number=number, content=content, problems=(*_oddities(text), *doubled)
    )


def _pieces(path: Path, text: str, error: ValueError) -> Iterator[Record]:
    """The records of a text that is no JSON as a whole."""
    if text.lstrip()[0] == "[" and not _text_behind(text):
        yield from _items(path, text)
        return
    lines = list(_lines(path, text))
    if any(isinstance(line.content, dict) for line in lines) or len(lines) == 1:
        yield from lines
    else:  # one broken document, not many broken lines
        fault = f"this is no JSON: {error}: {shown(text.strip())}"
        line = getattr(error, "lineno", 1)  # not told by what is only too deep
        yield Record(place=f"{path}:{line}", number=0, fault=fault)


def _lines(path: Path, text: str) -> Iterator[Record]:
    number = 0
    for line_number, line in enumerate(text.split("\n"), 1):  # U+2028 is no end of a line
        if line.strip():
            yield _record(f"{path}:{line_number}", number, line)
            number += 1


def _items(path: Path, text: str) -> Iterator[Record]:
    for number, (start, end) in enumerate(_spans(text)):
        record = _record(f"{path}[{number}]", number, text[start:end])
        if record.fault:
            line = text.count("\n", 0, end) + 1
            fault = f"{record.fault} (up to line {line})"
            record = msgspec.structs.replace(record, fault=fault)
        yield record


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the items of a list stand, by brackets and commas alone: they may be no JSON."""
    depth, start = 0, 0
    for mark in _MARK.finditer(text):
        kind = mark[0]
        if kind in "[{":
            depth += 1
            start = mark.end() if depth == 1 else start
        elif kind in "]}":
            depth -= 1
        if depth == 0 or (depth == 1 and kind == ","):
            if depth or text[start : mark.start()].strip():
                yield start, mark.start()
            start = mark.end()
        if depth <= 0 and kind in "]}":
            return
    if text[start:].strip():
        yield start, len(text)


def _text_behind(text: str) -> bool:
    """Tell whether something follows the end of the list that a text begins with."""
    depth = 0
    for mark in _MARK.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if depth <= 0:
            return bool(text[mark.end() :].strip())
    return False


def _oddities(text: str) -> tuple[str, ...]:
    found = _NO_UTF8.search(text)
    if found is None:
        return ()
    byte = ord(found[0]) - 0xDC00
    return (f"byte 0x{byte:02x} is no UTF-8; such bytes are kept as lone surrogates.",)


def _parts(data: Any) -> Iterable[Any]:
    if isinstance(data, dict):
        return data.values()
    return data if isinstance(data, list) else ()
