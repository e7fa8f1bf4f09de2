"""Reading what a SQLite database holds from its own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from .schema import Column, ForeignKey, Table, quoted

_FOUND = (
    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
)
_HIDDEN = 1  # a column of a virtual table that ``SELECT *`` leaves out


def tables(connection: Connection, look: Callable[[], None] = lambda: None) -> list[Table]:
    """Tables and views in the order of their creation, without SQLite's own.

    Args:
        connection: the database's.
        look: called before each; it raises where there is no time left.
    """
    listed = connection.exec_driver_sql("PRAGMA table_list").all()
    inner = {row[1] for row in listed if row[2] == "shadow"}  # of full-text indexes
    found = connection.exec_driver_sql(_FOUND).all()
    described = []
    for name, kind in found:
        if name not in inner:
            look()
            described.append(_table(connection, name, kind))
    return described


def names(connection: Connection) -> list[str]:
    """The names of all tables and views."""
    return [row[0] for row in connection.exec_driver_sql(_FOUND).all()]


def column_names(connection: Connection) -> list[str]:
    """``table.column`` for all columns of all tables."""
    return [
        f"{table.name}.{column.name}" for table in tables(connection) for column in table.columns
    ]


def _table(connection: Connection, name: str, kind: str) -> Table:
    what: Literal["table", "view"] = "view" if kind == "view" else "table"
    try:
        columns = connection.exec_driver_sql(f"PRAGMA table_xinfo({quoted(name)})").all()
        keys = connection.exec_driver_sql(f"PRAGMA foreign_key_list({quoted(name)})").all()
    except DBAPIError as error:  # a view of what is gone, a module that is not there
        return Table(name, what, problem=str(error.orig))
    return Table(
        name,
        what,
        tuple(
            Column(title, declared, bool(not_null), key)
            for _, title, declared, not_null, _, key, hidden in columns
            if hidden != _HIDDEN
        ),
        _foreign_keys(keys),
    )


def _foreign_keys(rows: Iterable[Any]) -> tuple[ForeignKey, ...]:
    """The keys in the order of their declaration; SQLite lists the last first, by column."""
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    for number, _, table, column, to, *_ in rows:
        keys.setdefault(number, []).append((table, column, to))
    return tuple(
        ForeignKey(
            tuple(column for _, column, _ in parts),
            parts[0][0],
            tuple(to for _, _, to in parts if to is not None),
        )
        for _, parts in sorted(keys.items(), reverse=True)
    )
