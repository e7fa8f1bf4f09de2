"""SQLite: files opened so that nothing can change them, and private copies that may be changed."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import StaticPool

from .faults import Fault, FaultKind, listed, nearest
from .permissions import Permissions
from .quoting import opened
from .schema import Table
from .session import Session, Target
from .sqlite_tables import column_names, names, tables
from .statements import MAX_CHARS, Dialect

DATA_FOLDER = "/data"
"""Where a sandbox finds the files of its databases."""

MAX_VALUE_BYTES = 4 << 20
"""Largest text, blob or row; a larger one is an error."""

MAX_MATCHED_BYTES = 1 << 20
"""The same in statements that match patterns: nothing stops a function before it is done."""

MAX_SEARCHED_BYTES = 100_000
"""The same in statements whose functions take the product of two lengths."""

HEAP_BYTES = 256 << 20
"""Most memory of SQLite in a sandbox, of which sorting and temporary tables are a part."""

_GROWTH_BYTES = 64 << 20  # how much a private copy may grow
_STEPS, _SLOW_STEPS = 500, 50  # of SQLite's machine between two looks at the clock
_WALL_SHARE = 10  # wall seconds for each second of the limit, as a backstop
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_CHARS + 1,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 250,  # matching takes the product of the lengths
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_MATCHING = frozenset(("like", "glob"))
_SEARCHING = frozenset(("instr", "replace", "trim", "ltrim", "rtrim", "json_patch", "jsonb_patch"))
_INTERRUPTED = 9  # SQLITE_INTERRUPT
_KINDS: dict[int, tuple[FaultKind, str]] = {
    3: ("refused", "The statement is refused."),  # SQLITE_PERM
    7: ("memory", "The statement needs more memory than it may use."),  # SQLITE_NOMEM
    8: ("refused", "The database is read-only."),  # SQLITE_READONLY
    10: ("unavailable", "reading the database failed"),  # SQLITE_IOERR
    11: ("unavailable", "the database is damaged"),  # SQLITE_CORRUPT
    13: ("memory", "The database would grow larger than it may."),  # SQLITE_FULL
    14: ("unavailable", "the database cannot be opened"),  # SQLITE_CANTOPEN
    18: ("memory", "A value or row is larger than it may be."),  # SQLITE_TOOBIG
    23: ("refused", "The statement is refused."),  # SQLITE_AUTH
    26: ("unavailable", "the file is no SQLite database"),  # SQLITE_NOTADB
}
_UNKNOWN_TABLE = re.compile(r"no such table: (?:main\.)?(.+)")
_UNKNOWN_COLUMN = re.compile(r'no such column: (?:"(?P<quoted>.+?)"(?: - .*)?|(?P<bare>.+))')
_read_text = partial(str, encoding="utf-8", errors="surrogateescape")  # see ``undecodable``


class SqliteEngine:
    """Opens SQLite files, read-only or as a private copy in memory.

    Args:
        data: the folder that places are in, or the data folders by name: the name is then the first
            part of a place.
        heap_bytes: most memory of SQLite in the whole process, 0 for no limit: set it only in a
            process that does nothing else.
    """

    def __init__(self, data: str | Mapping[str, str] = DATA_FOLDER, *, heap_bytes: int = 0) -> None:
        self._data = data
        self._heap_bytes = heap_bytes

    def open(self, target: Target) -> Session:
        """Open a file that nobody writes to; a writable session starts on a copy of it.

        Raises:
            Fault: ``unavailable``: there is no such database, or it cannot be opened safely.
        """
        try:
            guard = SqliteGuard(writable=target.writable)
            return Session(self._connect(target, guard), guard)
        except (sqlite3.Error, MemoryError) as error:
            why = str(error) or "it takes more memory than there is"
            raise Fault("unavailable", f"the database {target.place!r}: {why}.") from None

    def _connect(self, target: Target, guard: SqliteGuard) -> Connection:
        driver = opened(
            lambda: self._driver(target), texts_in_double_quotes=target.texts_in_double_quotes
        )
        guard.protect(driver)
        creator: Any = lambda: driver  # noqa: E731
        engine = Engine(StaticPool(creator), _PlainDialect(dbapi=sqlite3), make_url("sqlite://"))
        guard.connection = engine.connect().execution_options(no_parameters=True)
        return guard.connection

    def _driver(self, target: Target) -> sqlite3.Connection:
        # ``immutable``: no lock is taken and no journal looked for, so any number may read at once.
        uri = f"file:{quote(str(self._path(target.place)))}?mode=ro&immutable=1"
        original = _plainly(uri)
        if self._heap_bytes:
            original.execute(f"PRAGMA hard_heap_limit={self._heap_bytes}").close()
        if not target.writable:
            return original
        copy = _plainly(":memory:")
        try:
            original.backup(copy)
        except BaseException:
            copy.close()
            raise
        finally:
            original.close()
        return copy

    def _path(self, place: str) -> Path:
        parts = place.split("/")
        if not place or place.startswith("/") or "\0" in place or {"", ".", ".."} & set(parts):
            raise Fault("unavailable", f"{place!r} is no place of a database.")
        if isinstance(self._data, str):
            return Path(self._data, *parts)
        if parts[0] not in self._data:
            raise Fault("unavailable", f"there is no data folder {parts[0]!r} here.")
        return Path(self._data[parts[0]], *parts[1:])


def _plainly(place: str) -> sqlite3.Connection:
    """Open a connection that begins no transaction of its own.

    It compiles each statement anew, since only then SQLite tells which functions are called.
    """
    return sqlite3.connect(place, uri=True, isolation_level=None, cached_statements=0)


class _PlainDialect(SQLiteDialect_pysqlite):
    """SQLAlchemy's own, without the functions that it adds.

    Its ``floor`` gives other values than SQLite's, and its ``regexp`` could run for ever.
    """

    supports_statement_cache = True

    def on_connect(self) -> None:  # type: ignore[override]
        return None


class SqliteGuard:
    """Limits, permissions and errors of a SQLite session.

    Args:
        writable: statements may change the database.
    """

    dialect: Dialect = "sqlite"

    def __init__(self, *, writable: bool) -> None:
        self._permissions = Permissions(writable=writable)
        self._writable = writable
        self._wall_start = self._cpu_end = self._limit_s = math.inf
        self._late = False
        self._longest = 0
        self._statement = ""
        self._random: Random | None = None
        self._driver: sqlite3.Connection
        self.connection: Connection
        """The session's, set once it is open."""

    def protect(self, driver: sqlite3.Connection) -> None:
        """Put the limits on a new connection."""
        self._driver = driver
        driver.text_factory = _read_text
        for number, value in _LIMITS.items():
            driver.setlimit(number, value)
        # Fails where the file is no database.
        if driver.execute(
            "SELECT 1 FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'"
        ).fetchone():
            listed = driver.execute("PRAGMA table_list")
            inner = frozenset(row[1] for row in listed if row[2] == "shadow")
            self._permissions.inner_tables = inner
        driver.execute("PRAGMA temp_store=MEMORY").close()  # sorting must not write files
        if self._writable:
            ((pages, size),) = driver.execute("SELECT * FROM pragma_page_count, pragma_page_size")
            driver.execute(f"PRAGMA max_page_count={pages + _GROWTH_BYTES // size}").close()
        else:
            driver.execute("PRAGMA query_only=ON").close()
        driver.create_function("random", 0, self._some_integer)
        driver.create_function("randomblob", 1, self._some_bytes)
        self._limit_values(MAX_VALUE_BYTES, steps=_STEPS)
        driver.set_authorizer(self._authorize)

    @contextmanager
    def watched(self, statement: str, timeout_s: float) -> Iterator[None]:
        """Let the statement use ``timeout_s`` seconds of processor, at most ten times that in all.

        Waiting for a processor does not count, so that load never stops a statement.
        """
        self._permissions.refusal = ""
        self._late = False
        self._statement, self._random = statement, None
        self._limit_s = timeout_s
        self._limit_values(MAX_VALUE_BYTES, steps=_STEPS)
        self._cpu_end = time.thread_time() + timeout_s
        self._wall_start = time.monotonic()
        try:
            yield
        finally:
            self._wall_start = math.inf

    def _limit_values(self, longest: int, *, steps: int) -> None:
        """Let values be no longer than functions can work on within the limit, or little more."""
        if longest != self._longest:
            self._longest = longest
            self._driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
            self._driver.set_progress_handler(self._is_over, steps)

    def _limit_function(self, name: str) -> None:
        """Limit values for a function that a statement calls, or a view in it."""
        longest = MAX_VALUE_BYTES
        if name in _MATCHING:
            longest = MAX_MATCHED_BYTES
        elif name in _SEARCHING:
            longest = MAX_SEARCHED_BYTES
        if longest < self._longest:
            self._limit_values(longest, steps=_SLOW_STEPS)

    def fault(self, error: Exception, statement: str) -> Fault:
        error = getattr(error, "orig", None) or error
        if self._permissions.refusal:
            return Fault("refused", self._permissions.refusal)
        if isinstance(error, MemoryError):
            return Fault(*_KINDS[7])
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == _INTERRUPTED or self._late:
            return Fault("timeout", f"The statement ran longer than its {self._limit_s:g} s.")
        if code in _KINDS:
            return Fault(*_KINDS[code])
        if "may not be modified" in str(error):
            return Fault("refused", f"{error}.")
        if "number of bindings" in str(error):
            return Fault("raised", "The statement has a parameter; write the value itself.")
        return Fault("raised", self._explained(str(error), statement))

    def tables(self, connection: Connection) -> list[Table]:
        return tables(connection, self._stop_if_over)

    def settle(self, connection: Connection) -> None:
        self._driver.rollback()

    def close(self) -> None:
        """The connection is all there is."""

    def _authorize(self, *asked: Any) -> int:
        """Answer SQLite while it compiles; it asks at each step, so that even that has an end."""
        if self._is_over():
            self._late = True
            return sqlite3.SQLITE_DENY
        if asked[0] == sqlite3.SQLITE_FUNCTION:
            self._limit_function((asked[2] or "").lower())
        return self._permissions(*asked)

    def _stop_if_over(self) -> None:
        if self._is_over():
            raise Fault("timeout", f"The statement ran longer than its {self._limit_s:g} s.")

    def _is_over(self) -> bool:
        passed = time.monotonic() - self._wall_start
        if passed < self._limit_s:  # then no more processor time has passed: it is dear to ask for
            return False
        return passed > self._limit_s * _WALL_SHARE or time.thread_time() > self._cpu_end

    def _explained(self, message: str, statement: str) -> str:
        """SQLite's message, with the names that may have been meant."""
        if table := _UNKNOWN_TABLE.fullmatch(message):
            known = names(self.connection)
            near = nearest(table[1], known)
            return message + (_meant(near) if near else f". The tables: {listed(known)}.")
        column = _UNKNOWN_COLUMN.fullmatch(message)
        if column is None:
            return message
        name = column["quoted"] or column["bare"]
        known = [c for c in column_names(self.connection) if _is_named(c, statement)]
        hint = _meant(nearest(name, known))
        if f'"{name}"' in statement:
            hint += " A text stands in single quotes."
        return f"no such column: {name}{hint}"

    # -- what stands in for functions ---------------------------------

    def _some_integer(self) -> int:
        return self._stream().getrandbits(64) - (1 << 63)

    def _some_bytes(self, size: object) -> bytes:
        wanted = size if isinstance(size, int) else 1
        return self._stream().randbytes(min(max(1, wanted), MAX_VALUE_BYTES + 1))

    def _stream(self) -> Random:
        """Chance that depends on the statement alone: the same statement gives the same rows."""
        if self._random is None:
            self._random = Random(self._statement)  # noqa: S311 - nothing secret
        return self._random


def _is_named(column: str, statement: str) -> bool:
    """Tell whether the table of ``table.column`` stands in the text of a statement."""
    table = re.escape(column.rpartition(".")[0])
    return re.search(rf"(?<!\w){table}(?!\w)", statement, re.IGNORECASE) is not None


def _meant(near: list[str]) -> str:
    return f". Did you mean {' or '.join(near)}?" if near else "."
