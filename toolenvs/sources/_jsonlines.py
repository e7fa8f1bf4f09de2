"""JSON Lines files: read line by line, decoded when asked for, every error with its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolenvs.errors import DataError

_BOM = b"\xef\xbb\xbf"
_SHOWN_FIELDS = 12


class Line(NamedTuple):
    """One line that is not blank: its number from 1, its offset in bytes, and its text."""

    number: int
    offset: int
    text: bytes


class Row(NamedTuple):
    """One decoded JSON object, with the place it came from.

    ``place`` is ``path:line`` and starts every message about the row; ``default_id`` is
    ``stem-17`` for the 17th row counted from 0, blank lines not counted.
    """

    fields: dict[str, Any]
    place: str
    stem: str
    number: int

    @property
    def default_id(self) -> str:
        return f"{self.stem}-{self.number}"

    def require(self, *names: str) -> None:
        """Check that the fields are there.

        Raises:
            DataError: One is missing; the message says which, what is there, and what is needed.
        """
        for name in names:
            if name not in self.fields:
                keys = list(self.fields)
                shown = ", ".join(keys[:_SHOWN_FIELDS]) + (", ..." if keys[_SHOWN_FIELDS:] else "")
                raise DataError(
                    f"{self.place}: field {name!r} is missing; each row needs "
                    f"{', '.join(names)}. This row has {shown or 'no fields'}."
                )

    def text(self, name: str) -> str:
        """The field as text; a number is written out in plain digits.

        Raises:
            DataError: It is neither a text nor a number.
        """
        value = self.fields[name]
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float):
            return plain_digits(value)
        raise self.wrong_type(name, "a text or a number")

    def wrong_type(self, name: str, wanted: str) -> DataError:
        """The error for a field of another type than ``wanted``, to be raised."""
        found = json_type(self.fields[name])
        return DataError(f"{self.place}: field {name!r} is {found}; it must be {wanted}.")


def read_lines(path: Path) -> Iterator[Line]:
    r"""Yield the lines that are not blank, one at a time.

    Lines end at ``\n`` only: a JSON string may hold U+2028 and other characters at which
    ``str.splitlines`` would cut. A byte order mark at the start is skipped.

    Raises:
        DataError: The file is missing (the message names the nearest) or cannot be read.
    """
    check_file(path)
    offset = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                start, offset = offset, offset + len(raw)
                text = raw.removeprefix(_BOM) if number == 1 else raw
                if text.strip():
                    yield Line(number, start + len(raw) - len(text), text)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error


def read_at(path: Path, offset: int) -> bytes:
    """The line that starts at ``offset``, empty behind the end of the file.

    Raises:
        DataError: The file is gone or cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.readline()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error


def decode(text: bytes, place: str) -> dict[str, Any]:
    """Decode one line.

    Raises:
        DataError: It is not a JSON object; the message says what is wrong.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(
            f"{place}: the line is not valid JSON ({error}); it must be a JSON object."
        ) from error
    if not isinstance(value, dict):
        raise DataError(f"{place}: the line holds {json_type(value)}; it must be a JSON object.")
    return value


def check_file(path: Path) -> None:
    """Check that ``path`` is a file.

    Raises:
        DataError: It is not; the message names the nearest that exists.
    """
    if path.is_file():
        return
    if path.is_dir():
        inside = sorted(child.name for child in path.glob("*.jsonl"))
        hint = f"name a file in it: {_some(inside)}" if inside else "it holds no .jsonl file"
        raise DataError(f"{path}: this is a folder; {hint}.")
    raise DataError(f"{path}: there is no such file.{_nearest(path)}")


def _nearest(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        return f" The nearest folder that exists is {folder.resolve()}."
    try:
        names = sorted(child.name for child in folder.iterdir())
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    if close:
        return f" Did you mean {folder / close[0]}?"
    rows = [name for name in names if name.endswith(".jsonl")]
    return f" {folder.resolve()} holds {_some(rows)}." if rows else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def plain_digits(value: float) -> str:
    """The shortest digits that give ``value`` back, without an exponent: ``1e-7`` is 0.0000001."""
    from decimal import Decimal

    return format(Decimal(repr(value)), "f")


def json_type(value: object) -> str:
    """What JSON calls the type of ``value``, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
