"""PostgreSQL: each statement in a transaction of its own, which ends with it.

The role that connects holds what is forbidden for good; here are the limits of one statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format
from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from .faults import Fault, FaultKind
from .relay import keep_from_forks
from .schema import Column, ForeignKey, Table, quoted
from .session import Session, Target
from .statements import Dialect, words
from .wire import Overdue, StatementCursor, Wire

GROWTH_BYTES = 64 << 20
"""How much a copy may grow."""

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
    "54000": ("memory", "The statement is too large for PostgreSQL."),
    "42501": ("refused", "{message}."),
    "08P01": ("raised", "The statement has a parameter; write the value itself."),
}
_OF_THE_MACHINE = ("53100", "53300", "57P", "58", "XX001", "XX002")
"""SQLSTATEs, or how they begin: a full disk, too many sessions, an end of the server, its files."""

_TIMES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")

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
            connect_args={
                "client_encoding": "utf8",
                "options": " ".join(f"-c {k}={v}" for k, v in settings.items()),
            },
        )
        event.listen(engine, "connect", _prepare)
        size = _Size(self._keeper, url) if target.writable else None
        with _unavailable():
            connection = engine.connect().execution_options(no_parameters=True)
        return Session(connection, PostgresGuard(connection, size=size))


class _Size:
    """How large a copy is.

    Args:
        keeper: who tells.
        url: of the copy.
    """

    def __init__(self, keeper: Keeper, url: URL) -> None:
        self._keeper = keeper
        self._url = url
        self._most = keeper.size_of(url) + GROWTH_BYTES

    def fits(self) -> bool:
        """Tell whether it is no larger than it may be."""
        return self._keeper.size_of(self._url) <= self._most

    def shrink(self) -> None:
        """Give back what a statement took that was undone."""
        self._keeper.shrink(self._url)


class PostgresGuard:
    """Limits and errors of a session on PostgreSQL.

    Args:
        connection: the session's.
        size: the size of the copy that it may change; None where it may change nothing. What a
            statement did stays when it succeeded.
    """

    dialect: Dialect = "postgres"

    def __init__(self, connection: Connection, *, size: _Size | None) -> None:
        self._connection = connection
        self._size = size
        self._limit_s = 0.0
        self._outgrown = False
        self._use(connection)

    @contextmanager
    def watched(self, statement: str, timeout_s: float) -> Iterator[None]:
        """Give the statement ``timeout_s`` seconds in all, by the clock."""
        verb = self._permitted(statement)
        self._limit_s, self._outgrown = timeout_s, False
        self._reconnect()
        changes = self._size is not None and verb not in _ROWS_ONLY
        self._wire.start(timeout_s, self._look if changes else None)
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
            if changes and not self._look():
                raise Fault(*_TOO_LARGE)
            if self._size is not None and not self._wire.undone:
                self._wire.command(f"SET LOCAL statement_timeout={self._wire.left_ms()}; COMMIT")
        except BaseException:
            self._undo()
            raise
        finally:
            self._driver.cursor_factory = psycopg.Cursor
        if self._size is None or self._wire.undone:
            self._undo()

    def fault(self, error: Exception, statement: str) -> Fault:
        error = getattr(error, "orig", None) or error
        if self._outgrown:
            return Fault(*_TOO_LARGE)
        if isinstance(error, Overdue):
            return Fault("timeout", _KINDS["57014"][1].format(limit=self._limit_s))
        if not isinstance(error, psycopg.Error):
            return Fault("raised", _first_line(error))
        message = error.diag.message_primary or _first_line(error)
        state = error.sqlstate or ""
        if state.startswith(_OF_THE_MACHINE):
            return Fault("unavailable", message)
        if not state and not self._wire.open:
            return Fault("unavailable", "the connection to PostgreSQL was lost")
        kind, text = _KINDS.get(state, ("raised", "{message}{hint}"))
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

    def _permitted(self, statement: str) -> str:
        """The statement's first word, if what it says is allowed."""
        verb, *rest = words(statement, self.dialect, most=6) or [""]
        if verb in _READS or (self._size is not None and verb in _CHANGES):
            return verb
        if self._size is not None and verb in _OF_THINGS:
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
        with _unavailable():
            self._connection.invalidate()
            self._connection.rollback()
            self._use(self._connection)

    def _begin(self, statement: str) -> None:
        """Begin a transaction that no earlier statement has any influence on."""
        # Chance depends on the statement alone: the same statement gives the same rows.
        seed = int.from_bytes(sha256(statement.encode()).digest()[:4]) / 2**32
        mode = "READ ONLY" if self._size is None else "READ WRITE"
        self._wire.command(
            f"RESET ALL; BEGIN {mode}; SET LOCAL seed={seed:.9f}; "
            f"SET LOCAL statement_timeout={self._wire.left_ms()}"
        )

    def _undo(self) -> None:
        """End the transaction and what it did; a connection that does not take it is closed."""
        try:
            if self._wire.idle:
                self._wire.command("ROLLBACK")
                if self._outgrown and self._size is not None:
                    self._size.shrink()
                return
        except (psycopg.Error, Overdue):
            pass
        self._wire.drop()

    def _look(self) -> bool:
        self._outgrown = self._size is not None and not self._size.fits()
        return not self._outgrown


def _prepare(driver: Any, _: object) -> None:
    """Make a new connection safe to hold and to read from."""
    keep_from_forks(driver)
    for name, loader in _LENIENT.items():
        driver.adapters.register_loader(name, loader)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise Fault("unavailable", f"PostgreSQL: {_first_line(error)}") from None


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


_LENIENT = {
    name: _lenient(psycopg.adapters.get_loader(psycopg.adapters.types[name].oid, Format.TEXT))
    for name in _TIMES
}


def _plain_name(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]
