"""How PostgreSQL's values are read where psycopg's own way does not fit a comparison of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.string import TextLoader

_TIMES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")


def _lenient(inner: Any) -> type[Loader]:
    """A loader that gives the server's text where Python has no such value, as of infinity."""

    class Lenient(Loader):
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._load: Callable[[Any], Any] = inner(oid, context).load

        def load(self, data: Any) -> Any:
            try:
                return self._load(data)
            except (psycopg.DataError, ValueError, OverflowError):
                return bytes(data).decode()

    return Lenient


class _Unpadded(TextLoader):
    """A ``char(n)`` without the blanks that fill it up, which mean nothing in it."""

    def load(self, data: Any) -> str | bytes:
        text = super().load(data)
        return text.rstrip(" ") if isinstance(text, str) else text.rstrip(b" ")


LOADERS = {
    name: _lenient(psycopg.adapters.get_loader(psycopg.adapters.types[name].oid, Format.TEXT))
    for name in _TIMES
} | {"bpchar": _Unpadded}
"""Loaders for a connection's adapters, by the name of the type."""
