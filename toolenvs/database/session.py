"""An open database: a SQLAlchemy connection, and what its engine puts in the way of harm."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, CursorResult

from .faults import Fault
from .rows import Rows, fetched
from .schema import Table
from .statements import Dialect, sole_statement

_LOOKING = "SELECT"  # what a guard is told of when tables are listed


class Target(NamedTuple):
    """Which database is meant.

    Attributes:
        engine: ``"sqlite"`` or ``"postgres"``.
        place: where its engine finds it: a file in the data folders, or the name of a template.
        writable: statements may change it; then it is a copy that ends with its session.
        texts_in_double_quotes: SQLite only: what stands in double quotes and names nothing is a
            text, as old queries expect; otherwise it is an error.
    """

    engine: str = "sqlite"
    place: str = ""
    writable: bool = False
    texts_in_double_quotes: bool = False


class Guard(Protocol):
    """What is special about an engine's session."""

    dialect: Dialect

    def watched(self, statement: str, timeout_s: float) -> AbstractContextManager[None]:
        """Within it the statement is run and its rows are fetched; it stops at the limit.

        It may raise itself, at its end too: what it raises goes to ``fault``.
        """
        ...

    def fault(self, error: Exception, statement: str) -> Fault:
        """Say what an error means that came up inside ``watched``."""
        ...

    def tables(self, connection: Connection) -> list[Table]:
        """Tables and views in the order of their creation, without the engine's own."""
        ...

    def settle(self, connection: Connection) -> None:
        """Undo what an open transaction has not committed."""
        ...

    def close(self) -> None:
        """End what the guard holds of its own. More than once is harmless."""
        ...


class Engine(Protocol):
    """Opens the databases of one kind."""

    def open(self, target: Target) -> Session:
        """Open a session; a writable one starts on a copy of its own.

        Raises:
            Fault: ``unavailable``: it cannot be opened, or not safely.
        """
        ...


class Session:
    """Runs statements on one database, one after another; not for several threads at once.

    Args:
        connection: the SQLAlchemy connection; the session ends it, with its engine.
        guard: the engine's part.
    """

    def __init__(self, connection: Connection, guard: Guard) -> None:
        self.connection = connection
        self.guard = guard
        self.until = math.inf
        """When the last statement has to be done, whatever its own limit; ``time.monotonic()``."""

    def run(self, sql: str, *, max_rows: int, max_bytes: int, timeout_s: float) -> Rows:
        """Run one statement and fetch no more of its rows than wanted.

        Args:
            sql: the statement, as whoever asks wrote it.
            max_rows: most rows to fetch.
            max_bytes: most bytes of JSON to fetch; a row that does not fit is left out.
            timeout_s: seconds until it is stopped.

        Raises:
            Fault: It is not one statement, fails, is refused or meets a limit.
        """
        statement = sole_statement(sql, self.guard.dialect)
        with self._result(statement, timeout_s) as result:
            if not result.returns_rows:
                return Rows(row_count=max(0, result.rowcount))
            if not result.cursor.description:
                raise Fault("raised", "The statement returns no columns: name those it is to show.")
            # The driver's own cursor: names and values as they are, and equal names kept.
            return fetched(result.cursor, max_rows=max_rows, max_bytes=max_bytes)

    def values(self, statement: str, *, max_rows: int, timeout_s: float) -> list[Any]:
        """Run a statement of our own; return its first rows as the driver gives them.

        Raises:
            Fault: As for ``run``.
        """
        rows: list[Any] = []
        with self._result(statement, timeout_s) as result:
            while len(rows) < max_rows and (
                more := result.cursor.fetchmany(max_rows - len(rows))  # fewer where they are large
            ):
                rows += more
        return rows

    def tables(self, *, timeout_s: float) -> list[Table]:
        """Tables and views in the order of their creation, without the engine's own.

        Raises:
            Fault: It takes longer than ``timeout_s`` seconds.
        """
        with self._watched(_LOOKING, timeout_s):
            return self.guard.tables(self.connection)

    def settle(self) -> None:
        """Undo what an open transaction has not committed."""
        self.guard.settle(self.connection)

    def close(self) -> None:
        """End the session. More than once is harmless, and so is a connection that was lost."""
        self.guard.close()
        with contextlib.suppress(Exception):
            self.connection.close()
        with contextlib.suppress(Exception):
            self.connection.engine.dispose()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _result(self, statement: str, timeout_s: float) -> Iterator[CursorResult[Any]]:
        with self._watched(statement, timeout_s):
            result = self.connection.exec_driver_sql(statement)
            cursor = result.cursor
            try:
                yield result
            finally:
                if cursor is not None:
                    cursor.close()  # the result's own way would log an error and go on
                result.close()

    @contextmanager
    def _watched(self, statement: str, timeout_s: float) -> Iterator[None]:
        left = self.until - time.monotonic()
        if left <= 0:
            raise Fault("timeout", "The request ran out of time.")
        try:
            with self.guard.watched(statement, min(timeout_s, left)):
                yield
        except Fault:
            raise
        except Exception as error:
            raise self.guard.fault(error, statement) from None
