"""One statement at a time on a connection to PostgreSQL, read row by row until a deadline.

A statement of the agent's goes by the extended protocol, in which the server itself takes no second
one. Rows arrive singly, so that a result may be endless and is never held whole. Whatever happens,
a deadline is kept: first by the server, then by a request to cancel, at last by closing the socket.

Source: PostgreSQL, "libpq: Retrieving Query Results Row-by-Row" and "Message Flow".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from .faults import Fault
from .relay import Relay

MAX_ROW_BYTES = 4 << 20
"""Largest row; a larger one is an error."""

_MOST_UNREAD = 4 * MAX_ROW_BYTES  # that arrive before a row is whole
_PAGE_BYTES = 64 << 10  # of rows that are handed on together
_GRACE_S = 1.0  # after the deadline: for the server, and again for a request to cancel
_LOOK_S = 0.2
_CANCEL_S = 2.0
_ROWS = (ExecStatus.TUPLES_OK, ExecStatus.SINGLE_TUPLE)


class Overdue(Exception):  # noqa: N818 - it happens to a statement, as ``Fault`` does
    """The deadline passed and the server did not stop; the connection was closed."""


class Wire:
    """Sends statements and waits for what they give.

    Args:
        driver: psycopg's connection; nobody else uses it meanwhile.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._link = driver.pgconn
        self._relay = Relay(self._link)
        self._transformer = Transformer(driver)
        self._until = math.inf
        self._cancelled = False
        self._next_look = math.inf
        self._look: Callable[[], bool] | None = None

    @property
    def open(self) -> bool:
        """False once the connection is lost or was closed."""
        return bool(self._link.status == ConnStatus.OK)

    @property
    def idle(self) -> bool:
        """True between two statements."""
        return self.open and self._link.transaction_status != TransactionStatus.ACTIVE

    @property
    def undone(self) -> bool:
        """True where the transaction failed, as by cancelling its statement: nothing is kept."""
        return bool(self._link.transaction_status == TransactionStatus.INERROR)

    def left_ms(self) -> int:
        """Milliseconds until the deadline, as PostgreSQL's settings have them: at least 1."""
        return int(min(max(1.0, (self._until - time.monotonic()) * 1000), 2**31 - 1))

    def start(self, timeout_s: float, look: Callable[[], bool] | None = None) -> None:
        """Set the deadline of all that follows.

        Args:
            timeout_s: seconds from now.
            look: called a few times a second; the statement is cancelled when it returns False.
        """
        now = time.monotonic()
        self._until = now + timeout_s
        self._look = look
        self._next_look = now + _LOOK_S if look is not None else math.inf

    def command(self, words: str) -> None:
        """Have statements of our own done; the simple protocol takes several at once.

        Raises:
            psycopg.Error: One fails, or the connection is lost.
            Overdue: There is no answer.
        """
        self._cancelled = False
        self._link.send_query(words.encode())
        self._flush()
        failed = None
        while (result := self._result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
        if failed is not None:
            raise error_from_result(failed)

    def send(self, statement: str) -> Any:
        """Send the one statement in a text; return its first result.

        Raises:
            Fault: It is not one that returns rows or a count.
            psycopg.Error: It fails, or the connection is lost.
            Overdue: It does not end.
        """
        self._cancelled = False
        self._link.send_query_params(statement.encode(), None)
        self._link.set_single_row_mode()
        self._flush()
        result = self._checked(self._result())
        if result is not None and result.status in _ROWS:
            self._transformer.set_pgresult(result)
        return result

    def next_row(self) -> Any:
        """The next result of a statement, None where there is none; raises as ``send``."""
        result = self._checked(self._result())
        if result is not None and result.status in _ROWS:
            self._transformer.set_pgresult(result, set_loaders=False)
        return result

    def loaded(self) -> Any:
        """The values of the row that came last."""
        return self._transformer.load_row(0, tuple)

    def drain(self) -> None:
        """Read what is left of a statement and drop it; raises as ``send``."""
        failed = None
        while (result := self._result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                failed = result
        if failed is not None:
            raise error_from_result(failed)

    def cancel(self) -> None:
        """Ask the server to stop; what it then answers has still to be read."""
        self._cancelled = True
        try:
            self._driver.cancel_safe(timeout=_CANCEL_S)
        except psycopg.Error:
            self.drop()

    def drop(self) -> None:
        """Close the connection, whatever goes on in it. More than once is harmless."""
        self._link.finish()
        self._relay.close()

    # -- waiting ---------------------------------

    def _checked(self, result: Any) -> Any:
        if result is None or result.status in (*_ROWS, ExecStatus.COMMAND_OK):
            return result
        if result.status == ExecStatus.FATAL_ERROR:
            while self._result() is not None:
                pass
            raise error_from_result(result)
        if result.status != ExecStatus.EMPTY_QUERY:  # COPY, which nothing can end in good order
            self.drop()
        raise Fault("refused", "The statement is refused: it returns neither rows nor a count.")

    def _result(self) -> Any:
        unread = 0
        while self._link.is_busy():
            unread += self._wait()
            if unread > _MOST_UNREAD:
                self.drop()
                raise Fault("memory", "A value or row is larger than it may be.")
            self._link.consume_input()
        return self._link.get_result()

    def _flush(self) -> None:
        while self._link.flush():
            self._wait(sending=True)
            self._link.consume_input()

    def _wait(self, *, sending: bool = False) -> int:
        """Hand on what the server sends, keeping the deadline; return how many bytes it was.

        It may be 0 where there is something to read all the same, and with ``sending``.
        """
        while True:
            passed = self._relay.pass_on(self._pause_ms())
            now = time.monotonic()
            if now > self._until + _GRACE_S:
                self._enforce(now)
            if now >= self._next_look:
                self._next_look = now + _LOOK_S
                if self._look is not None and not self._cancelled and not self._look():
                    self.cancel()
            if not self.open:
                raise Overdue
            if passed is not None or sending:
                return passed or 0

    def _pause_ms(self) -> float | None:
        grace = 2 * _GRACE_S if self._cancelled else _GRACE_S
        wake = min(self._until + grace, self._next_look)
        return None if wake == math.inf else max(1.0, (wake - time.monotonic()) * 1000 + 1)

    def _enforce(self, now: float) -> None:
        if not self._cancelled:
            self.cancel()
        elif now > self._until + 2 * _GRACE_S:
            self.drop()


class StatementCursor:
    """A DBAPI cursor on a ``Wire``: what SQLAlchemy and ``rows.fetched`` need of one.

    Args:
        wire: where its statement goes.
        changes: the statement may change something; it is then run to its end however few of its
            rows are wanted.
    """

    arraysize = 1

    def __init__(self, wire: Wire, *, changes: bool) -> None:
        self._wire = wire
        self._changes = changes
        self._waiting: Any = None  # a row that has come and was not fetched yet
        self._running = False
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1

    def execute(self, statement: str, parameters: object = None) -> StatementCursor:
        """Run a statement up to its first row; raises as ``Wire.send``."""
        self._running = True
        result = self._wire.send(statement)
        if result is not None and result.status in _ROWS:
            self.description = [
                (result.fname(n).decode(errors="replace"), result.ftype(n), *5 * (None,))
                for n in range(result.nfields)
            ]
        self._take(result)
        return self

    def fetchmany(self, size: int = 1) -> list[Any]:
        """Up to ``size`` rows: fewer at the end, and where they are large.

        Raises:
            Fault: A row is too large.
            psycopg.Error: The statement fails at its next row.
            Overdue: It does not end.
        """
        rows: list[Any] = []
        room = _PAGE_BYTES
        while self._waiting is not None and len(rows) < size and room > 0:
            room -= self._weigh(self._waiting)
            rows.append(self._wire.loaded())
            self._take(self._wire.next_row())
        return rows

    def fetchone(self) -> Any:
        """The next row or None; raises as ``fetchmany``."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchall(self) -> list[Any]:
        """All rows that are left; raises as ``fetchmany``."""
        return list(iter(self.fetchone, None))

    def close(self) -> None:
        """End the statement. More than once is harmless.

        Raises:
            psycopg.Error: It changes something, and fails after the rows that were wanted.
            Overdue: It does not end.
        """
        self._waiting = None
        if not self._running:
            return
        self._running = False
        if self._wire.idle or not self._wire.open:
            return
        if self._changes:
            self._wire.drain()
            return
        self._wire.cancel()
        try:
            self._wire.drain()
        except psycopg.Error:  # that it was cancelled, or would have failed at a row not wanted
            return

    def _take(self, result: Any) -> None:
        self._waiting = result if result is not None and result.ntuples else None
        if result is not None and self._waiting is None:
            self.rowcount = result.command_tuples if result.command_tuples is not None else -1
            self._wire.drain()
        if self._waiting is None:
            self._running = False

    def _weigh(self, row: Any) -> int:
        size = sum(len(row.get_value(0, n) or b"") for n in range(row.nfields))
        if size > MAX_ROW_BYTES:
            raise Fault("memory", "A value or row is larger than it may be.")
        return size + 1
