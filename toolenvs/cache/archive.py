"""A cache as a file of JSON lines, to move between machines and to read by other means.

The first line says what the file is; each other line holds one entry or one runtime. A file
is taken in whole or not at all; keys are computed from the requests again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from toolenvs import exactjson
from toolenvs.cache.entry import checked_result, decode_result, make_entry, unpack
from toolenvs.cache.schema import entries, runtimes
from toolenvs.errors import DataError, UsageError
from toolenvs.statekey import CallKey

if TYPE_CHECKING:
    from toolenvs.cache.entry import Entry
    from toolenvs.cache.store import Store

VERSION = 1

_PAGE = 500  # entries read at once


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as it is exported; bytes as hexadecimal digits or as the JSON text they are."""

    request: str
    result: str
    tool: str
    call: str
    state: str
    servable: bool
    differing: bool
    created: float


class _Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox setting stood for."""

    asked: str
    facts: str
    seen: float


def export_to(store: Store, path: Path) -> int:
    """Write everything; return the number of entries."""
    draft = path.with_name(f"{path.name}.new")
    number = 0
    with draft.open("wb") as file:
        file.write(exactjson.encode({"toolenvs_cache": VERSION}) + b"\n")
        for row in store.select(lambda c: c.execute(sa.select(runtimes)).all()):
            seen = _Runtime(asked=row.asked.hex(), facts=row.facts.decode(), seen=row.seen)
            file.write(exactjson.encode(seen) + b"\n")
        for row in _rows(store):
            try:
                line = _export(row)
            except DataError:
                continue  # it was never served, and is not spread
            file.write(exactjson.encode(line) + b"\n")
            number += 1
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return number


def import_from(store: Store, path: Path) -> int:
    """Check every line, then record all; return the number of entries."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist.")
    number = sum(isinstance(line, _Line) for line in _lines(path))
    for line in _lines(path):
        if isinstance(line, _Line):
            store.insert(_entry(line))
        else:
            facts = line.facts.encode()
            store.see_runtime(bytes.fromhex(line.asked), facts, hashlib.sha256(facts).digest())
    store.flush()
    return number


def _rows(store: Store) -> Iterator[Any]:
    last = b""
    while True:
        rows = _page(store, last)
        yield from rows
        if len(rows) < _PAGE:
            return
        last = rows[-1].key


def _page(store: Store, last: bytes) -> Sequence[Any]:
    page = sa.select(entries).where(entries.c.key > last).order_by(entries.c.key).limit(_PAGE)
    rows: Sequence[Any] = store.select(lambda c: c.execute(page).all())
    return rows


def _export(row: Any) -> _Line:
    return _Line(
        request=unpack(row.request).decode("ascii"),
        result=checked_result(row.result, row.digest).decode("ascii"),
        tool=row.tool,
        call=row.call.hex(),
        state=row.state.hex(),
        servable=bool(row.servable),
        differing=bool(row.differing),
        created=row.created,
    )


def _lines(path: Path) -> Iterator[_Line | _Runtime]:
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                read = _read(line, first=number == 1)
            except (DataError, exactjson.NotJSONError, msgspec.ValidationError, ValueError) as e:
                raise DataError(f"{path}:{number}: this is no export of a cache: {e}") from e
            if read is not None:
                yield read
    if not number:
        raise DataError(f"{path}:1: this is no export of a cache: it is empty.")


def _read(line: bytes, *, first: bool) -> _Line | _Runtime | None:
    data = exactjson.decode(line)
    if first:
        version = data.get("toolenvs_cache") if isinstance(data, dict) else None
        if not isinstance(version, int) or version > VERSION:
            raise DataError(f"its version is {version!r}; this toolenvs reads up to {VERSION}.")
        return None
    if isinstance(data, dict) and "facts" in data:
        seen = msgspec.convert(data, _Runtime)
        bytes.fromhex(seen.asked)
        return seen
    read = msgspec.convert(data, _Line)
    decode_result(read.result.encode("ascii"))
    exactjson.decode(read.request)
    _entry(read)
    return read


def _entry(line: _Line) -> Entry:
    request = line.request.encode("ascii")
    key = CallKey(
        key=hashlib.sha256(request).digest(),
        request=request,
        tool=line.tool,
        call=bytes.fromhex(line.call),
        state=bytes.fromhex(line.state),
    )
    return make_entry(
        key,
        line.result.encode("ascii"),
        servable=line.servable,
        created=line.created,
        differing=line.differing,
    )
