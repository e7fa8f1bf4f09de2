"""The tables, their version, and how an older file becomes a newer one.

The version stands in a table of its own. A newer file is refused; an older one is brought up by
``MIGRATIONS`` when it is opened, in one transaction: a cache is a file that the library opens by
itself, in workers too, so the path must need no configuration and no second tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from toolenvs.records import NewerVersionError

VERSION = 1
"""The newest schema that this code knows, and the one it writes."""

MIGRATIONS: Mapping[int, Callable[[sa.Connection], None]] = {}
"""From each older version: what brings a database to the next."""

_ADVISORY_LOCK = 0x7003CACE  # any number that no other program locks

metadata = sa.MetaData()

schema = sa.Table("toolenvs_schema", metadata, sa.Column("version", sa.Integer, nullable=False))

entries = sa.Table(
    "toolenvs_entries",
    metadata,
    sa.Column("key", sa.LargeBinary(32), primary_key=True),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("result", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("call", sa.LargeBinary(16), nullable=False, index=True),
    sa.Column("state", sa.LargeBinary(16), nullable=False, index=True),
    sa.Column("servable", sa.Boolean, nullable=False),
    sa.Column("differing", sa.Boolean, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
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
    sa.Column("asked", sa.LargeBinary(32), primary_key=True),
    sa.Column("facts", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column("seen", sa.Double, nullable=False),
)
"""What a sandbox setting stood for when something was recorded: replay needs no sandbox to know."""


def prepare(connection: sa.Connection, *, place: str) -> None:
    """Make the tables, or bring older ones up to date, within the connection's transaction.

    Raises:
        NewerVersionError: A newer toolenvs made them.
    """
    if connection.dialect.name == "postgresql":  # two may come at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    if not sa.inspect(connection).has_table(schema.name):
        metadata.create_all(connection)
        connection.execute(schema.insert(), {"version": VERSION})
        return
    version = connection.execute(sa.select(sa.func.max(schema.c.version))).scalar() or 0
    if version > VERSION:
        raise NewerVersionError(
            f"{place}: this cache has version {version}, made by a newer toolenvs; this one knows "
            f"versions up to {VERSION}: upgrade toolenvs, or give another cache."
        )
    for older in range(version, VERSION):
        MIGRATIONS[older](connection)
    if version < VERSION:
        connection.execute(schema.update().values(version=VERSION))
