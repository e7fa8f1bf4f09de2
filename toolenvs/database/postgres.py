"""PostgreSQL: each statement in a transaction of its own, which ends before the next is read.

The role that connects holds what is forbidden for good; here are the limits of one statement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import takewhile
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from .faults import Fault, FaultKind
from .schema import Column, ForeignKey, Table, quoted
from .session import Session, Target
from .statements import Dialect

_CHUNK = 256  # rows fetched at once, so that a result is never held whole
_READS = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW"))
_WRITES = _READS | {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE"}
_STREAMED = frozenset(("SELECT", "WITH", "VALUES", "TABLE"))
_FIRST_WORD = re.compile(
    r"(?:\s|\(|--[^\n]*(?:\n|\Z)|/\*(?:(?!/\*).)*?\*/)*+([A-Za-z]*)", re.DOTALL
)
_SETTINGS = {
    "max_parallel_workers_per_gather": "0",  # rows come in the same order each time
    "synchronize_seqscans": "off",
    "jit": "off",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "work_mem": "16MB",
}
_KINDS: dict[str, tuple[FaultKind, str]] = {
    "57014": ("timeout", "The statement ran longer than its {limit:g} s."),
    "25006": ("refused", "The database is read-only."),
    "53200": ("memory", "The statement needs more memory than it may use."),
    "53400": ("memory", "The statement needs more room for temporary files than it may use."),
    "53100": ("memory", "The database would grow larger than it may."),
    "54000": ("memory", "The statement is too large for PostgreSQL."),
    "57P01": ("unavailable", "the server ended the session"),
    "57P02": ("unavailable", "the server ended the session"),
    "57P03": ("unavailable", "the server is not ready"),
    "42501": ("refused", "{message}."),
}


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


class PostgresEngine:
    """Opens databases of a PostgreSQL server.

    Args:
        url_for: gives the SQLAlchemy URL by which a target is reached, with the role that may do no
            more than the target allows.
    """

    def __init__(self, url_for: Callable[[Target], URL]) -> None:
        self._url_for = url_for

    def open(self, target: Target) -> Session:
        settings = {
            **_SETTINGS,
            **({"default_transaction_read_only": "off"} if target.writable else {}),
        }
        engine = create_engine(
            self._url_for(target),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
            connect_args={"options": " ".join(f"-c {k}={v}" for k, v in settings.items())},
        )
        try:
            connection = engine.connect().execution_options(no_parameters=True)
        except SQLAlchemyError as error:
            raise Fault("unavailable", f"PostgreSQL: {_first_line(error)}") from None
        driver: Any = connection.connection.driver_connection
        return Session(connection, PostgresGuard(driver, writable=target.writable))


class PostgresGuard:
    """Limits and errors of a session on PostgreSQL.

    Args:
        driver: psycopg's connection under the session's.
        writable: statements may change the database; what one did stays when it succeeded.
    """

    dialect: Dialect = "postgres"

    def __init__(self, driver: Any, *, writable: bool) -> None:
        self._driver = driver
        self._writable = writable
        self._limit_s = math.inf

    @contextmanager
    def watched(self, statement: str, timeout_s: float) -> Iterator[None]:
        """Give the statement ``timeout_s`` seconds by the server's clock."""
        word = first_word(statement)
        if word not in (_WRITES if self._writable else _READS):
            raise Fault("refused", f"{word or 'This'} is not allowed here.")
        self._limit_s = timeout_s
        self._begin(statement, timeout_s)
        # A cursor on the server, where the statement can have one: a result may be endless.
        streamed = word in _STREAMED and not (self._writable and word == "WITH")
        self._driver.cursor_factory = _ChunkedCursor if streamed else psycopg.Cursor
        try:
            yield
            if self._writable:
                self._do("COMMIT")
        finally:
            self._driver.cursor_factory = psycopg.Cursor

    def fault(self, error: Exception, statement: str) -> Fault:
        error = getattr(error, "orig", None) or error
        if not isinstance(error, psycopg.Error):
            return Fault("raised", _first_line(error))
        message = error.diag.message_primary or _first_line(error)
        if error.sqlstate is None and self._driver.broken:
            return Fault("unavailable", "the connection to PostgreSQL was lost")
        if "data-modifying" in message:  # WITH ... DELETE
            return Fault(*_KINDS["25006"])
        kind, text = _KINDS.get(error.sqlstate or "", ("raised", "{message}{hint}"))
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
        if self._driver.info.transaction_status != TransactionStatus.IDLE:
            self._do("ROLLBACK")

    def _begin(self, statement: str, timeout_s: float) -> None:
        """Begin a transaction, ending the last one that only read: one journey for both."""
        before = self._driver.info.transaction_status
        words = ["ROLLBACK"] if before != TransactionStatus.IDLE else []
        words.append("BEGIN READ WRITE" if self._writable else "BEGIN READ ONLY")
        words.append(f"SET LOCAL statement_timeout={max(1, math.ceil(timeout_s * 1000))}")
        if "random" in statement.casefold():
            # Chance depends on the statement alone: the same statement gives the same rows.
            seed = int.from_bytes(sha256(statement.encode()).digest()[:4]) / 2**32
            words.append(f"SELECT setseed({seed:.9f})")
        self._do("; ".join(words))

    def _do(self, words: str) -> None:
        """Have statements of our own done by the simple protocol, which takes several at once."""
        self._driver.cursor_factory = psycopg.Cursor
        self._driver.execute(words)


class _ChunkedCursor(psycopg.Cursor[Any]):
    """Has the rows stay on the server and fetches some at a time: a result may be endless."""

    def execute(self, query: Any, *_: Any, **__: Any) -> _ChunkedCursor:
        super().execute(f"DECLARE toolenvs_rows NO SCROLL CURSOR FOR {query}".encode())
        self._fetch()
        return self

    def fetchone(self) -> Any:
        row = super().fetchone()
        if row is None and self.rowcount == _CHUNK:
            self._fetch()
            row = super().fetchone()
        return row

    def fetchmany(self, size: int = 0) -> list[Any]:
        rows = (self.fetchone() for _ in range(size or self.arraysize))
        return list(takewhile(lambda row: row is not None, rows))

    def _fetch(self) -> None:
        super().execute(f"FETCH FORWARD {_CHUNK} FROM toolenvs_rows".encode())


def first_word(statement: str) -> str:
    """The first word of a statement in upper case; ``""`` where none stands first."""
    found = _FIRST_WORD.match(statement)
    return found[1].upper() if found else ""


def _plain_name(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]
