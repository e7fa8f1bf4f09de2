"""PostgreSQL: each statement in a transaction of its own, which ends with it.

The role that connects holds what is forbidden for good; here are the limits of one statement.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol

import psycopg
from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from .faults import Fault, FaultKind
from .loaders import LOADERS
from .relay import keep_from_forks
from .schema import Column, ForeignKey, Table, quoted
from .session import Session, Target
from .statements import Dialect, words
from .wire import Overdue, StatementCursor, Wire

GROWTH_BYTES = 64 << 20
"""How much a copy may grow."""

_MOST_RUNNING = 2
"""Statements that may go on running in the server when a next one begins."""

_LOOK_S, _PATIENCE_S = 0.05, 1.0
_FULL = "too many connections for role"
_ROWS_ONLY = frozenset(("SELECT", "VALUES", "TABLE", "SHOW"))
_READS = _ROWS_ONLY | {"WITH", "EXPLAIN"}
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"))
_OF_THINGS = frozenset(("CREATE", "ALTER", "DROP"))
_THINGS = frozenset(
    ("TABLE", "VIEW", "MATERIALIZED", "INDEX", "SEQUENCE", "TYPE", "DOMAIN", "SCHEMA")
)
_BEFORE_A_THING = frozenset(("OR", "REPLACE", "UNIQUE", "UNLOGGED", "RECURSIVE"))
_SETTINGS = {
    "max_parallel_workers_per_gather": "0",  # rows come in the same order each time
    "synchronize_seqscans": "off",
    "jit": "off",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "client_min_messages": "error",
    "default_transaction_isolation": "read\\ committed",
    "idle_in_transaction_session_timeout": "0",
    "work_mem": "16MB",
}
_TOO_LARGE: tuple[FaultKind, str] = ("memory", "The database would grow larger than it may.")
_KINDS: dict[str, tuple[FaultKind, str]] = {
    "57014": ("timeout", "The statement ran longer than its {limit:g} s."),
    "25006": ("refused", "The database is read-only."),
    "53200": ("memory", "The statement needs more memory than it may use."),
    "53400": ("memory", "The statement needs more room for temporary files than it may use."),
    "42501": ("refused", "{message}."),
    "08P01": ("raised", "The statement has a parameter; write the value itself."),
}
_STILL_RUNNING: tuple[FaultKind, str] = (
    "timeout",
    "Earlier statements, which the server could not stop at their limit, still run there: "
    "this one was not begun. Try again later.",
)
_LIMIT_OF_SIZE = ("5400", re.compile(r"\b(?:exceed|maximum|max\b|too (?:big|large|long|many)\b)"))
_OF_A_VALUE = (ValueError, ArithmeticError, RecursionError)
_OF_THE_MACHINE = ("53100", "53300", "57P", "58", "XX001", "XX002")
"""SQLSTATEs, or how they begin: a full disk, too many sessions, an end of the server, its files."""

_TABLES = """
SELECT n.nspname, c.relname, c.relkind::text,
  (SELECT coalesce(json_agg(json_build_array(
       a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       coalesce(array_position(k.conkey, a.attnum), 0)) ORDER BY a.attnum), '[]')
   FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT coalesce(json_agg(json_build_array(
       (SELECT json_agg(a.attname ORDER BY p.n) FROM unnest(f.conkey) WITH ORDINALITY p(num, n)
        JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = p.num),
       (SELECT json_build_array(tn.nspname, t.relname) FROM pg_class t
        JOIN pg_namespace tn ON tn.oid = t.relnamespace WHERE t.oid = f.confrelid),
       (SELECT json_agg(a.attname ORDER BY p.n) FROM unnest(f.confkey) WITH ORDINALITY p(num, n)
        JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = p.num)) ORDER BY f.conname),
       '[]')
   FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname <> 'information_schema'
  AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY c.oid
"""


class Keeper(Protocol):
    """Who keeps the databases on the server."""

    def url_for(self, target: Target) -> URL:
        """The SQLAlchemy URL of a target, with a role that may do no more than it allows."""
        ...

    def leave(self, url: URL) -> None:
        """Remove what ``url_for`` made. More than once is harmless."""
        ...

    def running(self, url: URL) -> int:
        """How many sessions its role has."""
        ...

    def size_of(self, url: URL) -> int:
        """Bytes that a database takes."""
        ...

    def shrink(self, url: URL) -> None:
        """Give back what a database takes for nothing."""
        ...


class PostgresEngine:
    """Opens databases of a PostgreSQL server.

    Args:
        keeper: says where they are.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def open(self, target: Target) -> Session:
        url = self._keeper.url_for(target)
        settings = {
            **_SETTINGS,
            **({"default_transaction_read_only": "off"} if target.writable else {}),
        }
        engine = create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
            pool_reset_on_return=None,  # it is closed, whatever goes on in it
            connect_args={
                "client_encoding": "utf8",
                "options": " ".join(f"-c {k}={v}" for k, v in settings.items()),
            },
        )
        event.listen(engine, "connect", _prepare)
        try:
            room = _Room(self._keeper, url, writable=target.writable)
            with _unavailable():
                connection = engine.connect().execution_options(no_parameters=True)
            return Session(connection, PostgresGuard(connection, room=room))
        except BaseException:
            self._keeper.leave(url)
            raise


class _Room:
    """What a session connects to.

    Args:
        keeper: who keeps it.
        url: where it is.
        writable: it is a copy, which may be changed.
    """

    def __init__(self, keeper: Keeper, url: URL, *, writable: bool) -> None:
        self._keeper = keeper
        self._url = url
        self.writable = writable
        self._most = keeper.size_of(url) + GROWTH_BYTES if writable else 0

    def fits(self) -> bool:
        """Tell whether a copy is no larger than it may be."""
        return not self.writable or self._keeper.size_of(self._url) <= self._most

    def shrink(self) -> None:
        """Give back what a statement took that was undone."""
        self._keeper.shrink(self._url)

    def is_busy(self) -> bool:
        """Tell whether too many statements still run that were given up, after a moment."""
        until = time.monotonic() + _PATIENCE_S
        while self._keeper.running(self._url) >= _MOST_RUNNING:
            if time.monotonic() > until:
                return True
            time.sleep(_LOOK_S)
        return False

    def leave(self) -> None:
        """Give it back; it is gone soon."""
        self._keeper.leave(self._url)


class PostgresGuard:
    """Limits and errors of a session on PostgreSQL.

    Args:
        connection: the session's.
        room: what it is connected to. In a copy, what a statement did stays when it succeeded.
    """

    dialect: Dialect = "postgres"

    def __init__(self, connection: Connection, *, room: _Room) -> None:
        self._connection = connection
        self._room = room
        self._limit_s = 0.0
        self._outgrown = False
        self._use(connection)

    @contextmanager
    def watched(self, statement: str, timeout_s: float) -> Iterator[None]:
        """Give the statement ``timeout_s`` seconds in all, by the clock."""
        verb = self._permitted(statement)
        self._limit_s, self._outgrown = timeout_s, False
        self._reconnect()
        # Any statement may make a copy grow, as ``SELECT ... INTO`` does, or a call in it.
        writable = self._room.writable
        changes = writable and verb not in _ROWS_ONLY
        self._wire.start(timeout_s, self._look if writable else None)
        try:
            self._begin(statement)
        except Overdue:  # the statement has not even begun
            raise Fault("unavailable", "PostgreSQL does not answer.") from None
        except psycopg.Error:
            self._wire.drop()
            raise
        self._driver.cursor_factory = lambda *_, **__: StatementCursor(self._wire, changes=changes)
        try:
            yield
            if writable and not self._look():
                raise Fault(*_TOO_LARGE)
            if writable and not self._wire.undone:
                self._wire.command(f"SET LOCAL statement_timeout={self._wire.left_ms()}; COMMIT")
        except BaseException:
            self._undo()
            raise
        finally:
            self._driver.cursor_factory = psycopg.Cursor
        if not writable or self._wire.undone:
            self._undo()

    def fault(self, error: Exception, statement: str) -> Fault:
        error = getattr(error, "orig", None) or error
        if self._outgrown:
            return Fault(*_TOO_LARGE)
        if isinstance(error, Overdue):
            return Fault("timeout", _KINDS["57014"][1].format(limit=self._limit_s))
        if isinstance(error, MemoryError):
            return Fault(*_KINDS["53200"])
        if isinstance(error, _OF_A_VALUE):
            return Fault("raised", f"A value of the result cannot be read: {_first_line(error)}")
        if not isinstance(error, psycopg.Error):
            return Fault("unavailable", f"{type(error).__name__}: {_first_line(error)}")
        message = error.diag.message_primary or _first_line(error)
        state = error.sqlstate or ""
        if state.startswith(_OF_THE_MACHINE):
            return Fault("unavailable", message)
        if not state and not self._wire.open:
            return Fault("unavailable", "the connection to PostgreSQL was lost")
        kind, text = _KINDS.get(state, ("raised", "{message}{hint}"))
        if state.startswith(_LIMIT_OF_SIZE[0]) and _LIMIT_OF_SIZE[1].search(message):
            kind = "memory"
        hint = f" {error.diag.message_hint}" if error.diag.message_hint else ""
        return Fault(kind, text.format(limit=self._limit_s, message=message, hint=hint))

    def tables(self, connection: Connection) -> list[Table]:
        return [
            Table(
                name=_plain_name(schema, name),
                kind="table" if relkind in ("r", "p", "f") else "view",
                columns=tuple(Column(*column) for column in columns),
                foreign_keys=tuple(
                    ForeignKey(tuple(own), _plain_name(*there), tuple(to))
                    for own, there, to in keys
                ),
                quoted_name=f"{quoted(schema)}.{quoted(name)}",
            )
            for schema, name, relkind, columns, keys in connection.exec_driver_sql(_TABLES)
        ]

    def settle(self, connection: Connection) -> None:
        """Nothing is open between two statements."""

    def close(self) -> None:
        self._wire.drop()
        self._room.leave()

    def _permitted(self, statement: str) -> str:
        """The statement's first word, if what it says is allowed."""
        verb, *rest = words(statement, self.dialect, most=6) or [""]
        if verb in _READS or (self._room.writable and verb in _CHANGES):
            return verb
        if self._room.writable and verb in _OF_THINGS:
            thing = next((word for word in rest if word not in _BEFORE_A_THING), "")
            if thing in _THINGS:
                return verb
            verb = f"{verb} {thing}".strip()
        raise Fault("refused", f"{verb[:30] or 'This'} is not allowed here.")

    def _use(self, connection: Connection) -> None:
        self._driver: Any = connection.connection.driver_connection
        self._wire = Wire(self._driver)

    def _reconnect(self) -> None:
        """Have a connection again, where a statement had to be stopped by closing it."""
        if self._wire.open:
            return
        if self._room.is_busy():
            raise Fault(*_STILL_RUNNING)
        try:
            with _unavailable():
                self._connection.invalidate()
                self._connection.rollback()
                self._use(self._connection)
        except Fault as fault:
            if _FULL in fault.message:  # its own sessions are too many
                raise Fault(*_STILL_RUNNING) from None
            raise

    def _begin(self, statement: str) -> None:
        """Begin a transaction that no earlier statement has any influence on."""
        # Chance depends on the statement alone: the same statement gives the same rows.
        seed = int.from_bytes(sha256(statement.encode()).digest()[:4]) / 2**32
        mode = "READ WRITE" if self._room.writable else "READ ONLY"
        self._wire.command(
            f"RESET ALL; BEGIN {mode}; SET LOCAL seed={seed:.9f}; "
            f"SET LOCAL statement_timeout={self._wire.left_ms()}"
        )

    def _undo(self) -> None:
        """End the transaction and what it did; a connection that does not take it is closed."""
        try:
            if self._wire.idle:
                self._wire.command("ROLLBACK")
                if self._outgrown:
                    self._room.shrink()
                return
        except (psycopg.Error, Overdue):
            pass
        self._wire.drop()

    def _look(self) -> bool:
        self._outgrown = not self._room.fits()
        return not self._outgrown


def _prepare(driver: Any, _: object) -> None:
    """Make a new connection safe to hold and to read from."""
    keep_from_forks(driver)
    for name, loader in LOADERS.items():
        driver.adapters.register_loader(name, loader)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise Fault("unavailable", f"PostgreSQL: {_first_line(error)}") from None


def _plain_name(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]
