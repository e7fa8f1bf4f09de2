"""The database behind a cache: one engine, connections that readers keep, patience with locks."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from toolenvs.cache import schema
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.postgres.connecting import with_limit

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long a read or a write waits for a lock before it is given up."""

_OPEN_PATIENCE_S = 300.0  # another process may be bringing a large cache up

_LOCK_WAIT_S = 5.0  # SQLite's own waiting, before ours
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_BUSY_STATES = ("40001", "40P01", "55P03")  # PostgreSQL: serialisation, deadlock, lock
_RECONNECTS = 5
_DRIVERS = ("", "psycopg", "psycopg2")  # those that do not need a loop
_NO_FILE = (None, "", ":memory:")


class Database:
    """One database by its URL. SQLite in WAL mode, so that readers and a writer never wait.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.
        create: make a cache where there is none.

    Raises:
        UsageError: It is no URL of these, the file cannot be opened, is no database or one of
            something else; or there is no cache, and none is to be made.
        NewerVersionError: A newer toolenvs made it.
        RuntimeFailure: The server does not answer.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        parsed = parse_url(url)
        self.place = parsed.render_as_string(hide_password=True)
        self.file = parsed.database if parsed.get_backend_name() == "sqlite" else None
        self._idle: list[sa.Connection] = []
        self._closed = False
        self._engine = self._make_engine(parsed)
        self._open(create=create)

    @property
    def dialect(self) -> str:
        """``"sqlite"`` or ``"postgresql"``."""
        return self._engine.dialect.name

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` on a connection without a transaction; it must fetch all it asks for.

        Raises:
            RuntimeFailure: The database is broken, or stayed locked for ``PATIENCE_S``.
        """
        until = time.monotonic() + PATIENCE_S
        for attempt in itertools.count():
            connection = None
            try:
                connection = self._borrow()
                found = work(connection)
            except sa.exc.DBAPIError as error:
                if time.monotonic() > until or not _passes(error, attempt):
                    raise self._failure(error) from error
                _pause(attempt)
            else:
                self._give_back(connection)
                connection = None
                return found
            finally:
                if connection is not None:
                    _discard(connection)
        raise AssertionError("unreachable")

    def write(self, work: Callable[[sa.Connection], T], *, patience_s: float | None = None) -> T:
        """Run ``work`` in one transaction, again and again while the database is locked.

        Args:
            work: what to do.
            patience_s: how long to try, ``PATIENCE_S`` if None; in any case no longer than until
                ``close``.

        Raises:
            RuntimeFailure: The database is broken or full, or stayed locked for so long.
        """
        until = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
        for attempt in itertools.count():
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except sa.exc.DBAPIError as error:
                given_up = self._closed or time.monotonic() > until
                if given_up or not _passes(error, attempt):
                    raise self._failure(error) from error
                _pause(attempt)
        raise AssertionError("unreachable")

    def shrink(self) -> None:
        """Give a file's free pages back, unless somebody else is using it just now."""
        if self.dialect != "sqlite":
            return
        with contextlib.suppress(sa.exc.OperationalError), self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("VACUUM")

    def close(self) -> None:
        """Close every connection; one that is in use just now, once its read is done."""
        self._closed = True
        self._drop_idle()
        self._engine.dispose()

    def _drop_idle(self) -> None:
        with contextlib.suppress(IndexError):  # another thread may take one, too
            while True:
                _discard(self._idle.pop())

    def _give_back(self, connection: sa.Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()

    def _borrow(self) -> sa.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
            return connection.execution_options(isolation_level="AUTOCOMMIT")

    def _make_engine(self, parsed: sa.URL) -> sa.Engine:
        arguments: dict[str, Any] = {}
        if self.file is not None:
            # Connections go from thread to thread, though never to two at once.
            arguments = {"timeout": _LOCK_WAIT_S, "check_same_thread": False}
        else:
            parsed = with_limit(parsed)
        try:
            engine = sa.create_engine(parsed, poolclass=sa.NullPool, connect_args=arguments)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{self.place} needs the module {error.name!r}: "
                "pip install 'PATH-OF-THE-CLONE[postgres]'."
            ) from error
        if self.file is not None:
            sa.event.listen(engine, "connect", _settle_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        else:
            sa.event.listen(engine, "connect", _settle_server)
        return engine

    def _open(self, *, create: bool) -> None:
        if self.file is not None:
            _check_place(Path(self.file), create=create)
        until = time.monotonic() + _OPEN_PATIENCE_S
        for attempt in itertools.count():
            try:
                self._prepare(create=create)
            except sa.exc.DBAPIError as error:
                if time.monotonic() > until or not _passes(error, attempt):
                    self._engine.dispose()
                    raise self._unusable(error) from error
                _pause(attempt)
            else:
                return

    def _prepare(self, *, create: bool) -> None:
        with self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            if schema.is_current(connection):
                return
            schema.check(connection, place=self.file or self.place, create=create)
            if self.file is not None:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with self._engine.begin() as connection:
            schema.prepare(connection, place=self.place)

    def _failure(self, error: sa.exc.DBAPIError) -> RuntimeFailure:
        hint = ""
        if _is_busy(error):
            hint = ". Another process holds its lock; try again once that is done"
        return RuntimeFailure("cache", f"{self.place}: {error.orig}{hint}")

    def _unusable(self, error: sa.exc.DBAPIError) -> Exception:
        if self.file is not None:
            hint = "" if _is_writable(Path(self.file)) else " It and its folder must be writable."
            return UsageError(f"{self.file} cannot be used as a replay cache: {error.orig}.{hint}")
        return RuntimeFailure("cache", f"{self.place} does not answer: {error.orig}")


def _check_place(file: Path, *, create: bool) -> None:
    try:
        if create:
            file.parent.mkdir(parents=True, exist_ok=True)
        elif not file.exists():
            raise UsageError(
                f"{file} does not exist: record into a cache first (replay='auto' or 'record')."
            )
        problem = "it is a folder" if file.is_dir() else ""
    except OSError as error:
        problem = f"its folder cannot be made: {error.strerror}"
    if problem:
        raise UsageError(f"{file} cannot be used as a replay cache: {problem}.")


def _is_writable(file: Path) -> bool:
    return all(os.access(path, os.W_OK) for path in (file.parent, file) if path.exists())


def parse_url(url: str) -> sa.URL:
    """Read a cache's URL; a file's path becomes absolute, so that one file has one URL.

    Raises:
        UsageError: It is none.
    """
    try:
        parsed = sa.make_url(url)
        backend, driver = parsed.get_backend_name(), parsed.drivername.partition("+")[2]
        if backend == "sqlite" and driver in ("", "pysqlite") and parsed.database not in _NO_FILE:
            return parsed.set(database=str(Path(parsed.database).resolve()))
    except (sa.exc.ArgumentError, ValueError, OSError):  # such as a port that is no number
        raise UsageError(_bad_url(url)) from None
    if backend != "postgresql" or driver not in _DRIVERS:
        raise UsageError(_bad_url(url))
    return parsed if driver else parsed.set(drivername="postgresql+psycopg")


def _bad_url(url: str) -> str:
    shown = re.sub(r"(//[^/@:]*):[^/@]*@", r"\1:***@", url)
    return (
        f"cache={shown!r} is no place for a replay cache: give sqlite:///FILE, or "
        "postgresql://USER@HOST/NAME for many machines."
    )


def _settle_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where Python guesses
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=NORMAL")  # a killed process loses nothing committed
    cursor.close()
    # A text that is none must not take the other rows of its page with it.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")


def _settle_server(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = {int(_LOCK_WAIT_S * 1000)}")  # else it waits for ever
    cursor.close()
    connection.commit()


def _begin_sqlite(connection: sa.Connection) -> None:
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # a later upgrade could fail at once


def _passes(error: sa.exc.DBAPIError, attempt: int) -> bool:
    """Whether trying again makes sense: a lock, or a connection that the server dropped."""
    return _is_busy(error) or (error.connection_invalidated and attempt < _RECONNECTS)


def _is_busy(error: sa.exc.DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _BUSY
    return getattr(error.orig, "sqlstate", None) in _BUSY_STATES


def _pause(attempt: int) -> None:
    # Writers that were turned away together must not come back together.
    time.sleep(random.uniform(0.001, min(0.005 * 2**attempt, 0.25)))  # noqa: S311 - no secret


def _discard(connection: sa.Connection) -> None:
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        connection.invalidate()
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        connection.close()
