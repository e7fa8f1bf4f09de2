"""The tables, their revision, and how an older database becomes a newer one.

The revision stands in a table of its own. A newer one is refused; an older one is brought up by the
revisions in ``migrations`` when it is opened, in one transaction. Alembic, which runs them, is
imported for that alone: a cache of today is opened and made without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from toolenvs.errors import UsageError
from toolenvs.records import NewerVersionError

HEAD = "0002"
"""The newest revision that this code knows, and the one it writes."""

_FIRST = "0001"
_BEFORE_REVISIONS = sa.table("toolenvs_schema", sa.column("version", sa.Integer))
"""Where the first caches had their version, which was 1: what is now the first revision."""

_AND = " and "
_SHOWN_TABLES = 5
_THERE_ALREADY = ("already exists", "duplicate column")  # PostgreSQL, SQLite
_ADVISORY_LOCK = 0x7003CACE  # any number that no other program locks

_log = logging.getLogger(__name__)

metadata = sa.MetaData()


class _Bytes(sa.LargeBinary):
    """Bytes; or what SQLite holds in their place, which it does not check."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any] | None:
        return lambda value: bytes(value) if isinstance(value, memoryview) else value

    def bind_processor(self, dialect: sa.Dialect) -> Callable[[Any], Any] | None:
        return None  # every driver takes bytes as they are, and a key that is none can be deleted


class _Flag(sa.Boolean):
    """True or false; or what SQLite holds in its place."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], Any] | None:
        return lambda value: bool(value) if value in (0, 1) else value


revisions = sa.Table(
    "toolenvs_revision",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="toolenvs_revision_pkc"),
)
"""One row, as Alembic keeps it."""

entries = sa.Table(
    "toolenvs_entries",
    metadata,
    sa.Column("key", _Bytes(32), primary_key=True),
    sa.Column("request", _Bytes, nullable=False),
    sa.Column("result", _Bytes, nullable=False),
    sa.Column("digest", _Bytes(32), nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("call", _Bytes(16), nullable=False, index=True),
    sa.Column("state", _Bytes(16), nullable=False, index=True),
    sa.Column("servable", _Flag, nullable=False),
    sa.Column("differing", _Flag, nullable=False),
    sa.Column("created", sa.Double, nullable=False, index=True),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("request_digest", _Bytes(16), nullable=False, server_default=""),
)
"""Results by state key; see ``entry.Entry``."""

damaged = sa.Table(
    "toolenvs_damaged",
    metadata,
    *(sa.Column(column.name, column.type) for column in entries.columns),
    sa.Column("reason", sa.Text, nullable=False),
)
"""Entries that could not be read, set aside."""

runtimes = sa.Table(
    "toolenvs_runtimes",
    metadata,
    sa.Column("asked", _Bytes(32), primary_key=True),
    sa.Column("facts", _Bytes, nullable=False),
    sa.Column("digest", _Bytes(32), primary_key=True),
    sa.Column("seen", sa.Double, nullable=False),
)
"""What a sandbox setting stood for when something was recorded: replay needs no sandbox to know."""


def check(connection: sa.Connection, *, place: str, create: bool) -> None:
    """Refuse, before anything is written, what is no cache and is not to become one.

    Raises:
        UsageError: A file is the database of something else, or there is no cache and none is to be
            made.
    """
    names = set(sa.inspect(connection).get_table_names())
    if {revisions.name, _BEFORE_REVISIONS.name} & names:
        return
    if names and connection.dialect.name == "sqlite":  # a server's database may be shared
        raise UsageError(
            f"{place} is a database of something else: its tables are {_some(names)}, and none "
            "tells the revision of a replay cache. Give another file."
        )
    if not create:
        raise UsageError(f"{place} holds no replay cache: record into one first.")


def _some(names: set[str]) -> str:
    shown = sorted(names)[:_SHOWN_TABLES]
    return ", ".join(map(repr, shown)) + (" ..." if len(names) > len(shown) else "")


def is_current(connection: sa.Connection) -> bool:
    """Whether the tables are those of today: one look, without a lock."""
    try:
        return _revision(connection) == HEAD
    except sa.exc.DBAPIError:  # another process brings it up right now, or ``prepare`` tells why
        return False


def prepare(connection: sa.Connection, *, place: str) -> None:
    """Make the tables, or bring older ones up to date, within the connection's transaction.

    Raises:
        NewerVersionError: A newer toolenvs made them; nothing is changed.
    """
    if connection.dialect.name == "postgresql":  # two may come at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    found = _revision(connection)
    if found is None:
        metadata.create_all(connection)
        connection.execute(revisions.insert(), {"version_num": HEAD})
    elif found != HEAD:
        _bring_up(connection, found, place=place)


def _revision(connection: sa.Connection) -> str | None:
    """The revision that a database says it has, None where there is no cache yet."""
    tables = sa.inspect(connection)
    if tables.has_table(revisions.name):
        found = connection.execute(sa.select(revisions.c.version_num)).scalars().all()
        return _AND.join(sorted(map(str, found)))
    if tables.has_table(_BEFORE_REVISIONS.name):
        versions = connection.execute(sa.select(_BEFORE_REVISIONS.c.version)).scalars().all()
        return _FIRST if versions == [1] else _AND.join(f"version {one}" for one in versions)
    return None


def _bring_up(connection: sa.Connection, found: str, *, place: str) -> None:
    from toolenvs.cache.migrations import known_revisions, upgrade

    known = known_revisions()
    if not found or _AND in found:
        raise UsageError(
            f"{place}: this cache is damaged: it must tell one revision and tells "
            f"{found or 'none'}. Give another cache."
        )
    if found not in known:
        raise NewerVersionError(
            f"{place}: this cache has revision {found!r}, made by a newer toolenvs; this one knows "
            f"{', '.join(known)}: upgrade toolenvs, or give another cache."
        )
    _log.info("%s: this cache is brought from revision %s to %s", place, found, HEAD)
    if not sa.inspect(connection).has_table(revisions.name):
        revisions.create(connection)
        connection.execute(revisions.insert(), {"version_num": found})
        connection.exec_driver_sql(f"DROP TABLE {_BEFORE_REVISIONS.name}")
    try:
        upgrade(connection)
    except sa.exc.DBAPIError as error:
        if not any(words in str(error.orig) for words in _THERE_ALREADY):
            raise
        raise UsageError(
            f"{place}: this cache is damaged: it tells revision {found}, and its tables are not "
            f"those of it ({error.orig}). Give another cache."
        ) from error
