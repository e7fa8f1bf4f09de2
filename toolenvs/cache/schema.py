"""The tables, their revision, and how an older database becomes a newer one.

The revision stands in a table of its own. A newer one is refused; an older one is brought up by the
revisions in ``migrations`` when it is opened, in one transaction. Alembic, which runs them, is
imported for that alone: a cache of today is opened and made without it.
"""

from __future__ import annotations

import logging

import sqlalchemy as sa

from toolenvs.records import NewerVersionError

HEAD = "0002"
"""The newest revision that this code knows, and the one it writes."""

_FIRST = "0001"
_BEFORE_REVISIONS = sa.table("toolenvs_schema", sa.column("version", sa.Integer))
"""Where the first caches had their version, which was 1: what is now the first revision."""

_ADVISORY_LOCK = 0x7003CACE  # any number that no other program locks

_log = logging.getLogger(__name__)

metadata = sa.MetaData()

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
    sa.Column("key", sa.LargeBinary(32), primary_key=True),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("result", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("call", sa.LargeBinary(16), nullable=False, index=True),
    sa.Column("state", sa.LargeBinary(16), nullable=False, index=True),
    sa.Column("servable", sa.Boolean, nullable=False),
    sa.Column("differing", sa.Boolean, nullable=False),
    sa.Column("created", sa.Double, nullable=False, index=True),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("request_digest", sa.LargeBinary(16), nullable=False, server_default=""),
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
        return connection.execute(sa.select(sa.func.max(revisions.c.version_num))).scalar() or ""
    if tables.has_table(_BEFORE_REVISIONS.name):
        version = connection.execute(sa.select(_BEFORE_REVISIONS.c.version)).scalar()
        return _FIRST if version == 1 else f"version {version}"
    return None


def _bring_up(connection: sa.Connection, found: str, *, place: str) -> None:
    from toolenvs.cache.migrations import known_revisions, upgrade

    known = known_revisions()
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
    upgrade(connection)
