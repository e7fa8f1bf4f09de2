"""A cache as a file of JSON lines, to move between machines and to read by other means.

The first line says what the file is; each other line holds one entry or one runtime. A line
that cannot be read is named, and the others are taken; keys are computed from the requests again.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import sqlalchemy as sa

from toolenvs import exactjson
from toolenvs.cache.entry import checked_result, decode_result, make_entry, unpack
from toolenvs.cache.replay_cache import Imported
from toolenvs.cache.schema import entries, runtimes
from toolenvs.errors import DataError, RuntimeFailure, UsageError
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
    """Write everything; return the number of entries.

    Raises:
        UsageError: The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        try:
            with draft.open("xb") as file:
                number = _write(store, file)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
    return number


def import_from(store: Store, path: Path) -> Imported:
    """Record what can be read, and name what cannot.

    Raises:
        UsageError: There is no such file.
        DataError: It is no export, or a newer one.
        RuntimeFailure: The database did not take everything.
    """
    if not path.is_file():
        raise UsageError(f"{path} does not exist, or is no file.")
    lost, number = store.lost, 0
    damaged: list[str] = []
    with path.open("rb") as file:
        _check_head(file.readline(), path)
        for place, line in enumerate(file, 2):
            try:
                number += _take(store, line)
            except (UsageError, msgspec.ValidationError, ValueError) as error:
                damaged.append(f"{path}:{place}: this is no line of an export: {error}")
    store.flush()
    if store.lost > lost:
        raise RuntimeFailure(
            "cache",
            f"{store.database.place} did not take {store.lost - lost} of {number} results: "
            f"{store.trouble}. Import the file again once that is mended.",
        )
    return Imported(entries=number, damaged=tuple(damaged))


def _write(store: Store, file: BinaryIO) -> int:
    number = 0
    file.write(exactjson.encode({"toolenvs_cache": VERSION}) + b"\n")
    known = sa.select(runtimes).order_by(runtimes.c.asked, runtimes.c.digest)
    for row in store.select(lambda c: c.execute(known).all()):
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


def _check_head(line: bytes, path: Path) -> None:
    if not line:
        raise DataError(f"{path}:1: this is no export of a cache: it is empty.")
    try:
        data = exactjson.decode(line)
    except exactjson.NotJSONError as error:
        raise DataError(f"{path}:1: this is no export of a cache: {error}") from error
    version = data.get("toolenvs_cache") if isinstance(data, dict) else None
    if not isinstance(version, int) or version > VERSION:
        raise DataError(
            f"{path}:1: this is no export of a cache: its version is {version!r}; this toolenvs "
            f"reads up to {VERSION}."
        )


def _take(store: Store, line: bytes) -> bool:
    """Record one line, and tell whether it was a result."""
    data = exactjson.decode(line)
    if isinstance(data, dict) and "facts" in data:
        seen = msgspec.convert(data, _Runtime)
        exactjson.decode(seen.facts)
        if not math.isfinite(seen.seen):
            raise DataError("its time is one that no cache holds.")
        facts = seen.facts.encode()
        digest = hashlib.sha256(facts).digest()
        store.see_runtime(bytes.fromhex(seen.asked), facts, digest, seen=seen.seen)
        return False
    read = msgspec.convert(data, _Line)
    decode_result(read.result.encode("ascii"))
    exactjson.decode(read.request)
    store.insert(_entry(read))
    return True


def _entry(line: _Line) -> Entry:
    line.tool.encode("utf-8")
    if "\0" in line.tool or not math.isfinite(line.created):
        raise DataError("its tool or its time is one that no cache holds.")
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
