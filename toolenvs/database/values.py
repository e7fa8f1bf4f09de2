"""Values of a database in JSON and back.

Null, truth values, numbers and texts stand for themselves; everything else is an object of one key,
which names its type:

    {"float": "nan"}  {"bytes": "00ff"}  {"decimal": "1.20"}  {"date": "2024-02-29"}
    {"time": "12:30:00"}  {"datetime": "2024-02-29T12:30:00+00:00"}  {"interval": 90}
    {"uuid": "..."}  {"json": any}  {"array": [...]}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

REPLACEMENT = "\ufffd"
"""What stands for each byte of a text that is no UTF-8."""

_AS_THEY_ARE = frozenset((int, str, bool, type(None)))
_MICROSECOND = timedelta(microseconds=1)


def encoded(value: Any) -> Any:
    """Return ``value`` as JSON data; what has no form of its own becomes a text.

    A list or tuple is an array, a dict is JSON. A lone surrogate in a text (so a byte that is no
    UTF-8 is read, see ``undecodable``) becomes U+FFFD.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return printable(value) if kind is str else value
    form = _FORMS.get(kind)
    if form is not None:
        return form(value)
    for known, form in _FORMS.items():
        if isinstance(value, known):
            return form(value)
    return printable(str(value))


def decoded(data: Any) -> Any:
    """Return the value that ``encoded`` gave ``data`` for.

    Raises:
        ValueError: It is an object that ``encoded`` does not write.
    """
    if not isinstance(data, dict):
        return data
    try:
        ((name, inner),) = data.items()
        return _READERS[name](inner)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{str(data)[:80]} is no value of a database.") from error


def undecodable(text: str) -> bool:
    """Tell whether a text, read with ``errors="surrogateescape"``, had bytes that are no UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def printable(text: str) -> str:
    """``text`` with U+FFFD for each lone surrogate."""
    if not undecodable(text):
        return text
    return "".join(REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)


def _float(value: float) -> Any:
    return float(value) if math.isfinite(value) else {"float": repr(float(value))}


def _interval(value: timedelta) -> dict[str, Any]:
    whole = value // timedelta(seconds=1)
    exact = value == timedelta(seconds=whole)
    return {"interval": whole if exact else value / _MICROSECOND / 1_000_000}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {printable(str(key)): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return printable(str(value))


_FORMS: dict[type[Any], Callable[[Any], Any]] = {  # a subclass before its class
    bool: bool,
    int: int,
    float: _float,
    str: lambda value: printable(str(value)),
    bytes: lambda value: {"bytes": value.hex()},
    bytearray: lambda value: {"bytes": value.hex()},
    memoryview: lambda value: {"bytes": value.hex()},
    Decimal: lambda value: {"decimal": str(value)},
    datetime: lambda value: {"datetime": value.isoformat()},
    date: lambda value: {"date": value.isoformat()},
    time: lambda value: {"time": value.isoformat()},
    timedelta: _interval,
    UUID: lambda value: {"uuid": str(value)},
    dict: lambda value: {"json": _json(value)},
    list: lambda value: {"array": [encoded(item) for item in value]},
    tuple: lambda value: {"array": [encoded(item) for item in value]},
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "interval": lambda seconds: timedelta(seconds=seconds),
    "uuid": UUID,
    "json": lambda value: value,
    "array": lambda items: [decoded(item) for item in items],
}
