"""A cache as a file of JSON lines, to move between machines and to read by other means.

The first line says what the file is; each other line holds one entry or one runtime. A line
that cannot be read is named, and the others are taken; keys are computed from the requests again.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import sqlalchemy as sa

from toolenvs import exactjson
from toolenvs.cache.entry import (
    checked_facts,
    checked_result,
    decode_result,
    make_entry,
    unpack,
)
from toolenvs.cache.replay_cache import Exported, Imported
from toolenvs.cache.schema import entries, runtimes
from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.statekey import CallKey

if TYPE_CHECKING:
    from toolenvs.cache.entry import Entry
    from toolenvs.cache.store import Store

VERSION = 1

_PAGE = 500  # entries read at once
_DAMAGE = (ValueError, TypeError)  # SQLite holds anything anywhere


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


def export_to(store: Store, path: Path) -> Exported:
    """Write everything that an import would take, and name the rest.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        if not path.name or path.is_dir():
            raise UsageError(f"{path} cannot be written: it is a folder.")
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
        try:
            with draft.open("xb") as file:
                written = _write(store, file)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
    return written


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
            except _DAMAGE as error:
                damaged.append(f"{path}:{place}: this is no line of an export: {error}")
    whole = store.flush()
    missing = store.lost - lost
    if missing or not whole:
        some = f"{missing or 'some'} of {number} results: {store.trouble or 'it stayed locked'}"
        raise RuntimeFailure(
            "cache",
            f"{store.database.place} did not take {some}. Import the file again once that is "
            "mended.",
        )
    return Imported(entries=number, damaged=tuple(damaged))


def _write(store: Store, file: BinaryIO) -> Exported:
    damaged: list[str] = []
    place = store.database.place

    def write(what: str, line: Callable[[], bytes]) -> bool:
        try:
            text = line()
        except _DAMAGE as error:
            damaged.append(f"{place}: {what} is damaged and left out: {error}")
            return False
        file.write(text + b"\n")
        return True

    write("the head", lambda: exactjson.encode({"toolenvs_cache": VERSION}))
    known = sa.select(runtimes).order_by(runtimes.c.asked, runtimes.c.digest)
    for row in store.select(lambda c: c.execute(known).all()):
        write(f"runtime {_shown(row.asked)}", lambda row=row: _export_runtime(row))  # type: ignore[misc]
    number = sum(
        write(f"entry {_shown(row.key)}", lambda row=row: _export(row))  # type: ignore[misc]
        for row in _rows(store)
    )
    file.flush()
    os.fsync(file.fileno())
    return Exported(entries=number, damaged=tuple(damaged))


def _shown(key: object) -> str:
    return key.hex() if isinstance(key, bytes) else repr(key)


def _hex(name: str, value: object) -> str:
    if not isinstance(value, bytes):
        raise DataError(f"its {name} is {value!r} where bytes should be.")
    return value.hex()


def _rows(store: Store) -> Iterator[Any]:
    page = sa.select(entries).order_by(entries.c.key).limit(_PAGE)
    rows = _page(store, page)
    while rows:
        yield from rows
        rows = _page(store, page.where(entries.c.key > rows[-1].key))


def _page(store: Store, page: sa.Select[Any]) -> Sequence[Any]:
    rows: Sequence[Any] = store.select(lambda c: c.execute(page).all())
    return rows


def _export(row: Any) -> bytes:
    line = _Line(
        request=unpack(row.request).decode("ascii"),
        result=checked_result(row.result, row.digest).decode("ascii"),
        tool=row.tool,
        call=_hex("call", row.call),
        state=_hex("state", row.state),
        servable=row.servable,
        differing=row.differing,
        created=row.created,
    )
    text = exactjson.encode(line)
    if _read_entry(exactjson.decode(text)).key != row.key:  # an import would take it so
        raise DataError("its key is not that of its request.")
    return text


def _export_runtime(row: Any) -> bytes:
    facts = checked_facts(row.facts, row.digest).decode()
    text = exactjson.encode(_Runtime(asked=_hex("setting", row.asked), facts=facts, seen=row.seen))
    _read_runtime(exactjson.decode(text))
    return text


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
        read = _read_runtime(data)
        facts = read.facts.encode()
        digest = hashlib.sha256(facts).digest()
        store.see_runtime(bytes.fromhex(read.asked), facts, digest, seen=read.seen)
        return False
    store.insert(_read_entry(data))
    return True


def _read_runtime(data: Any) -> _Runtime:
    read = msgspec.convert(data, _Runtime)
    exactjson.decode(read.facts)
    bytes.fromhex(read.asked)
    if not math.isfinite(read.seen):
        raise DataError("its time is one that no cache holds.")
    return read


def _read_entry(data: Any) -> Entry:
    line = msgspec.convert(data, _Line)
    decode_result(line.result.encode("ascii"))
    exactjson.decode(line.request)
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
