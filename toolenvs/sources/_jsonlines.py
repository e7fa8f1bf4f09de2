"""JSON Lines files: read line by line, decoded when asked for, every error with its place.

A number is a gold answer as it is written: ``3.14159265358979323846`` has digits that no float
keeps. So each row knows the text of its numbers, besides their values.
"""

from __future__ import annotations

import difflib
import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolenvs.errors import DataError

_BOM = b"\xef\xbb\xbf"
_SHOWN_FIELDS = 12
_MAX_INT_DIGITS = 4300  # Python reads no longer integer from text
_MAX_PLAIN_DIGITS = 400  # a larger exponent is not written out in digits
_HALF_PAIR = re.compile(r"[\ud800-\udfff]")


class Line(NamedTuple):
    """One line that is not blank: its number from 1, its offset in bytes, and its text."""

    number: int
    offset: int
    text: bytes


class Row(NamedTuple):
    """One decoded JSON object, with the place it came from.

    ``numbers`` holds, by field, the numbers among ``fields`` as they are written. ``place`` is
    ``path:line`` and starts every message about the row; ``default_id`` is
    ``stem-17`` for the 17th row counted from 0, blank lines not counted.
    """

    fields: dict[str, Any]
    numbers: Mapping[str, str]
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
        """The field as text; a number as it is written, but without an exponent.

        Raises:
            DataError: It is neither a text nor a number.
        """
        if name in self.numbers:
            return plain_digits(self.numbers[name])
        value = self.fields[name]
        if isinstance(value, str):
            return value
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


class _Written(str):
    """The text of a number."""

    __slots__ = ()


def decode(text: bytes, place: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Decode one line.

    Returns:
        The object, and the text of each field that is a number. An integer of more digits than
        Python reads stays a text.

    Raises:
        DataError: It is not a JSON object, or one in it has a key twice; the message says what is
            wrong.
    """
    try:
        value = _DECODER.decode(text.decode().strip(" \t\r\n"))
        if _HALF_PAIR.search(json.dumps(value, ensure_ascii=False)):
            raise ValueError("a text holds half of a surrogate pair")
        plain = _plain(value)
    except (ValueError, RecursionError) as error:
        what = error if isinstance(error, ValueError) else "it is nested too deeply"
        raise DataError(
            f"{place}: the line is not valid JSON ({what}); it must be a JSON object."
        ) from error
    if not isinstance(value, dict):
        raise DataError(f"{place}: the line holds {json_type(plain)}; it must be a JSON object.")
    numbers = {key: str(item) for key, item in value.items() if isinstance(item, _Written)}
    return plain, numbers


def _plain(value: Any) -> Any:
    """``value`` with its numbers as numbers."""
    if isinstance(value, _Written):
        if not value.lstrip("-").isdigit():
            return float(value)
        return int(value) if len(value) <= _MAX_INT_DIGITS else str(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return made


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_Written,
    parse_float=_Written,
    parse_constant=_no_constant,
)


def check_file(path: Path) -> None:
    """Check that ``path`` is a file.

    Raises:
        DataError: It is not; the message says what it is, or names the nearest that exists.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            gone = path.readlink()
            raise DataError(f"{path}: this is a link to {gone}, which is not there.") from None
        raise DataError(f"{path}: there is no such file.{_nearest(path)}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL or half of a surrogate pair
        why = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{str(path)[:200]!r}: no file can be reached there: {why}.") from None
    if kind == stat.S_IFDIR:
        raise DataError(f"{path}: this is a folder; {_inside(path)}.")
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "something else")
        raise DataError(f"{path}: this is {what}, not a file; name a file of rows.")


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def _inside(folder: Path) -> str:
    try:
        rows = sorted(child.name for child in folder.iterdir() if child.suffix == ".jsonl")
    except OSError as error:
        return f"it cannot be listed: {error.strerror}"
    return f"name a file in it: {_some(rows)}" if rows else "it holds no .jsonl file"


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


def plain_digits(number: str) -> str:
    """A JSON number without an exponent: ``1e-7`` is 0.0000001. A huge exponent stays."""
    from decimal import Decimal, InvalidOperation

    if "e" not in number.lower():
        return number
    try:
        exact = Decimal(number)
    except InvalidOperation:  # the exponent is beyond all bounds
        return number
    return format(exact, "f") if abs(exact.adjusted()) <= _MAX_PLAIN_DIGITS else number


def json_type(value: object) -> str:
    """What JSON calls the type of ``value``, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
