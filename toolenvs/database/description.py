"""Describing a database within a limit: tables, columns, keys, sizes, and some rows of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .faults import Fault, listed, nearest
from .rows import utf8_size
from .schema import Table
from .session import Session
from .values import encoded, printable

COUNTED = 100_000
"""Rows are counted up to here: what is cheap must not depend on the machine."""

_CELL_CHARS = 80
_LISTED = 50  # names of tables that there is no room for


def described(
    session: Session,
    *,
    only: Sequence[str] = (),
    sample_rows: int = 0,
    max_bytes: int,
    timeout_s: float,
) -> dict[str, Any]:
    """Describe tables and views, in the order of their creation, as JSON data.

    First all tables are described as far as there is room, then their rows are counted and sampled.

    Args:
        session: the database.
        only: names of the tables wanted, in any case; all if empty.
        sample_rows: first rows to show of each table (of views none); long texts are cut in them.
        max_bytes: most bytes of JSON.
        timeout_s: seconds for listing the tables, and for each statement that counts or samples.

    Returns:
        ``{"tables": [...], "cut": bool, "left_out": [name ...], "left_out_count": n}``. A table is
        ``{"name", "kind", "columns": [...], "foreign_keys": [...]}`` with ``row_count`` (and
        ``"more_rows": true`` where it stopped at ``COUNTED``), ``sample``, ``problem`` and
        ``columns_left_out`` where they apply.

    Raises:
        Fault: ``bad_arguments``: there is no table of that name; the message has the nearest.
    """
    known = session.tables(timeout_s=timeout_s)
    wanted = [_named(name, known) for name in only] if only else known
    room = _Room(max_bytes - 200)
    entries = [entry for entry in (room.entry(table) for table in wanted) if entry is not None]
    shown = {entry["name"]: entry for entry in entries}
    for table in wanted:
        if table.name in shown and table.kind == "table" and not table.problem:
            _add_rows(shown[table.name], table, session, room, sample_rows, timeout_s)
    return {
        "tables": entries,
        "cut": room.cut,
        "left_out": room.left_out[:_LISTED],
        "left_out_count": len(room.left_out),
    }


class _Room:
    """The bytes that are left, and what there was no room for."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.left_out: list[str] = []
        self.cut = False

    def takes(self, data: Any) -> bool:
        """Give room to ``data``, or say that there is none."""
        size = utf8_size(json.dumps(data, ensure_ascii=False)) + 20
        if size > self.left:
            self.cut = True
            return False
        self.left -= size
        return True

    def entry(self, table: Table) -> dict[str, Any] | None:
        """What is told of a table; None where there is no room for it."""
        columns = [_plain(column.to_json()) for column in table.columns]
        entry: dict[str, Any] = {"name": printable(table.name), "kind": table.kind}
        if table.problem:
            entry["problem"] = printable(table.problem)
        entry["columns"] = columns
        entry["foreign_keys"] = [_plain(key.to_json()) for key in table.foreign_keys]
        if self.takes(entry):
            return entry
        if not self.left_out:  # of the first that does not fit, what fits
            short = {**entry, "columns": [], "foreign_keys": []}
            if self.takes(short):
                short["columns"] = _while_it_fits(columns, self)
                short["columns_left_out"] = len(columns) - len(short["columns"])
                if short["columns"]:
                    return short
        self.left_out.append(printable(table.name))
        self.left -= utf8_size(table.name) if len(self.left_out) <= _LISTED else 0
        return None


def _while_it_fits(items: list[Any], room: _Room) -> list[Any]:
    kept = []
    for item in items:
        if not room.takes(item):
            break
        kept.append(item)
    return kept


def _add_rows(
    entry: dict[str, Any],
    table: Table,
    session: Session,
    room: _Room,
    sample_rows: int,
    timeout_s: float,
) -> None:
    """Add the number of rows and the first ones; a table that cannot be read says why."""
    inner = f"SELECT 1 FROM {table.source} LIMIT {COUNTED + 1}"  # noqa: S608 - it is quoted
    count = f"SELECT count(*) FROM ({inner}) AS counted"  # noqa: S608
    try:
        ((counted,),) = session.values(count, max_rows=1, timeout_s=timeout_s)
        entry["row_count"] = min(counted, COUNTED)
        if counted > COUNTED:
            entry["more_rows"] = True
        if not sample_rows:
            return
        first = f"SELECT * FROM {table.source} LIMIT {sample_rows}"  # noqa: S608
        rows = session.values(first, max_rows=sample_rows, timeout_s=timeout_s)
    except Fault as fault:
        if fault.kind == "unavailable":
            raise
        entry["problem"] = fault.message
        return
    sample = _while_it_fits([[_short(value) for value in row] for row in rows], room)
    if sample or not rows:
        entry["sample"] = sample


def _named(name: str, tables: Sequence[Table]) -> Table:
    """The table of that name: exactly so, else in another case or without its schema."""
    plain = name.strip().strip('"`[]')
    wanted = plain.casefold()
    fitting = (
        *(table for table in tables if table.name == name),
        *(table for table in tables if table.name.casefold() == wanted),
        *(table for table in tables if table.name.rpartition(".")[2].casefold() == wanted),
    )
    if fitting:
        return fitting[0]
    names = [printable(table.name) for table in tables]
    near = nearest(plain, names)
    meant = f" Did you mean {' or '.join(near)}?" if near else f" The tables: {listed(names)}."
    raise Fault("bad_arguments", f"There is no table {printable(plain)!r}.{meant}")


def _short(value: Any) -> Any:
    """A value of a sample: enough to see what the column holds."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, str) and len(value) > _CELL_CHARS:
        return printable(value[:_CELL_CHARS]) + "…"
    return encoded(value)


def _plain(data: Any) -> Any:
    """JSON data whose texts are Unicode throughout."""
    if isinstance(data, dict):
        return {key: _plain(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_plain(item) for item in data]
    return printable(data) if isinstance(data, str) else data
