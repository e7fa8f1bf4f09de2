"""Files of rows: read once from the start to the end, then any row again by its number.

What stays in memory is where each row begins, not what it holds.

    JsonLines   one JSON object a line
    JsonArray   one JSON array of objects, over any number of lines
    CsvRows     comma-separated values with a head line; every field is a text
"""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from toolenvs.errors import DataError
from toolenvs.sources._jsonlines import Row, check_file, decode, json_type, read_at, read_lines

_BLANKS = " \t\r\n"
_BOM = "\ufeff"


class RowFile(Protocol):
    """Rows by number, counted from 0. Iterating reads the file and must come first."""

    def __iter__(self) -> Iterator[Row]: ...

    def __getitem__(self, number: int) -> Row: ...


def stem_of(path: Path) -> str:
    """The name of a file up to its first dot, which default ids begin with."""
    return path.name.split(".")[0] or path.name


class JsonLines:
    """One JSON object a line; lines that are blank are no rows.

    Args:
        path: the file.

    Raises:
        DataError: When it is read: see ``read_lines`` and ``decode``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets = array("q")
        self._lines = array("q")

    def __iter__(self) -> Iterator[Row]:
        self._offsets, self._lines = array("q"), array("q")
        for number, line in enumerate(read_lines(self._path)):
            self._offsets.append(line.offset)
            self._lines.append(line.number)
            yield self._row(number, line.text)

    def __getitem__(self, number: int) -> Row:
        return self._row(number, read_at(self._path, self._offsets[number]))

    def _row(self, number: int, text: bytes) -> Row:
        place = f"{self._path}:{self._lines[number]}"
        return Row(*decode(text, place), place, stem_of(self._path), number)


class JsonArray:
    """The objects of one JSON array. Their place is ``path[17]``: many such files are one line.

    Args:
        path: the file.

    Raises:
        DataError: When it is read: it is no array of objects; the message has the line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets = array("q")  # in bytes: where each row begins and ends

    def __iter__(self) -> Iterator[Row]:
        self._offsets = array("q")
        end = 0
        for number, (blank, text) in enumerate(_objects(_text_of(self._path), self._path)):
            raw = text.encode()
            start = end + len(blank.encode())
            end = start + len(raw)
            self._offsets.extend((start, end))
            yield self._row(number, raw)

    def __getitem__(self, number: int) -> Row:
        start, end = self._offsets[2 * number], self._offsets[2 * number + 1]
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                return self._row(number, file.read(end - start))
        except OSError as error:
            raise DataError(f"{self._path}: the file cannot be read: {error.strerror}.") from error

    def _row(self, number: int, text: bytes) -> Row:
        place = f"{self._path}[{number}]"
        return Row(*decode(text, place), place, stem_of(self._path), number)


def _objects(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Each object of an array as it is written, with the text between it and the last one."""
    scanner = json.JSONDecoder()
    place, end = 0, 0
    while True:
        place = _past(text, place, _BLANKS + (_BOM if place == 0 else ""))
        sign = text[place : place + 1]
        if end and sign == "]":
            if text[place + 1 :].strip(_BLANKS):
                raise _broken(text, place + 1, path, "something follows the array")
            return
        if sign != ("," if end else "["):
            raise _broken(text, place, path, "',' or ']' is missing" if end else "it is no array")
        start = _past(text, place + 1, _BLANKS)
        if not end and text[start : start + 1] == "]":
            place, end = start, start
            continue
        try:
            value, stop = scanner.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            what = error.args[0] if isinstance(error, ValueError) else "it is nested too deeply"
            raise _broken(text, start, path, str(what)) from error
        if not isinstance(value, dict):
            raise _broken(text, start, path, f"an element is {json_type(value)}, not an object")
        yield text[end:start], text[start:stop]
        place = end = stop


def _past(text: str, place: int, skipped: str) -> int:
    while place < len(text) and text[place] in skipped:
        place += 1
    return place


def _broken(text: str, place: int, path: Path, what: str) -> DataError:
    line = text.count("\n", 0, place) + 1
    return DataError(f"{path}:{line}: the file is no JSON array of objects: {what}.")


class CsvRows:
    """Rows of comma-separated values; the first line has the names of the fields.

    Args:
        path: the file.

    Raises:
        DataError: When it is read: the file is missing, is no UTF-8, or a row has another number
            of fields than the head.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: list[str] = []
        self._offsets = array("q")
        self._lines = array("q")

    def __iter__(self) -> Iterator[Row]:
        self._offsets, self._lines = array("q"), array("q")
        lines = _CountedLines(_text_of(self._path))
        reader = csv.reader(lines, strict=True)
        try:
            self._names = [name.removeprefix(_BOM) for name in next(reader, [])]
            while True:
                offset, line = lines.offset, lines.count + 1
                cells = next(reader, None)
                if cells is None:
                    return
                if cells:
                    self._offsets.append(offset)
                    self._lines.append(line)
                    yield self._row(len(self._lines) - 1, cells)
        except csv.Error as error:
            raise DataError(f"{self._path}:{lines.count}: no CSV: {error}.") from error

    def __getitem__(self, number: int) -> Row:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offsets[number])
                text = io.TextIOWrapper(file, encoding="utf-8", newline="")
                return self._row(number, next(csv.reader(text, strict=True), []))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{self._path}: the file has changed: {error}.") from error

    def _row(self, number: int, cells: list[str]) -> Row:
        place = f"{self._path}:{self._lines[number]}"
        if len(cells) != len(self._names):
            raise DataError(
                f"{place}: the row has {len(cells)} fields; the head has {len(self._names)}."
            )
        fields = dict(zip(self._names, cells, strict=True))
        return Row(fields, {}, place, stem_of(self._path), number)


class _CountedLines(Iterable[str]):
    """Lines of a text, and where the next one begins, in bytes."""

    def __init__(self, text: str) -> None:
        self._text = io.StringIO(text, newline="")
        self.offset = 0
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.offset += len(line.encode())
            self.count += 1
            yield line


def _text_of(path: Path) -> str:
    check_file(path)
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the file is no UTF-8: {error}.") from error
