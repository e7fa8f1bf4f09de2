"""Opening SQLite so that a misspelt name in double quotes is an error and not a text.

SQLite takes ``SELECT "salery" FROM emp`` for a text where no column has that name, unless two
settings of the connection are off. Python sets them from 3.12 on. For 3.11 a callback of SQLite's
own sets them while a connection is opened, in the very library that the module ``_sqlite3`` is
linked to: looking a name up in an extension module finds it in the libraries it depends on.

Source: SQLite, "Double-quoted String Literals Are Accepted" (quirks.html) and sqlite3_db_config.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

from .faults import Fault

_DEFENSIVE, _DQS_DML, _DQS_DDL = 1010, 1013, 1014  # SQLITE_DBCONFIG_*
_PROBE = "a_name_that_nothing_has"
_open = threading.Lock()


def _anew() -> None:
    """In a fork: the thread that held the lock is not there to give it back."""
    global _open
    _open = threading.Lock()


os.register_at_fork(after_in_child=_anew)


def opened(
    connect: Callable[[], sqlite3.Connection], *, texts_in_double_quotes: bool = False
) -> sqlite3.Connection:
    """Call ``connect`` and return its connection, set to be strict about double quotes.

    SQLite's own tables cannot be written on it either (``SQLITE_DBCONFIG_DEFENSIVE``).

    Args:
        connect: opens a new connection on the calling thread.
        texts_in_double_quotes: be lenient instead.

    Raises:
        Fault: ``unavailable``: this Python offers no way; shown by a probe, not by its version.
        sqlite3.Error: It cannot be opened, or is no database.
    """
    lenient = int(texts_in_double_quotes)
    settings = {_DEFENSIVE: 1, _DQS_DML: lenient, _DQS_DDL: lenient}
    connection = _configured(connect, settings)
    if not texts_in_double_quotes and not _is_strict(connection):
        connection.close()
        raise Fault(
            "unavailable",
            "this Python's SQLite takes misspelt names in double quotes for texts and offers no "
            "way to change that: use Python 3.12, or one that is linked to a shared libsqlite3.",
        )
    return connection


def _is_strict(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute(f'SELECT "{_PROBE}"').close()
    except sqlite3.OperationalError as error:
        if "no such column" in str(error):
            return True
        raise
    return False


def _configured(
    connect: Callable[[], sqlite3.Connection], settings: dict[int, int]
) -> sqlite3.Connection:
    if sys.version_info >= (3, 12):
        connection = connect()
        for number, value in settings.items():
            connection.setconfig(number, bool(value))
        return connection
    return connect() if _library is None else _configured_at_birth(connect, settings)


def _configured_at_birth(
    connect: Callable[[], sqlite3.Connection], settings: dict[int, int]
) -> sqlite3.Connection:
    """Have SQLite call back as it opens the connection; those of other threads are let be."""
    thread = threading.get_ident()

    def configure(database: int, message: object, routines: object) -> int:
        if threading.get_ident() == thread:
            for number, value in settings.items():
                _library.sqlite3_db_config(database, number, value, None)
        return 0

    callback = _CALLBACK(configure)
    with _open:
        _library.sqlite3_auto_extension(callback)
        try:
            return connect()
        finally:
            _library.sqlite3_cancel_auto_extension(callback)


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _found_library() -> Any:
    """The SQLite that Python uses, or None where its functions cannot be reached."""
    try:
        library = ctypes.CDLL(getattr(sys.modules["_sqlite3"], "__file__", None))
        library.sqlite3_db_config.argtypes = (
            *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
            ctypes.c_void_p,
        )
        library.sqlite3_auto_extension.argtypes = (_CALLBACK,)
        library.sqlite3_cancel_auto_extension.argtypes = (_CALLBACK,)
    except (OSError, AttributeError, KeyError):
        return None
    return library


# At import: a sandboxed process may not look for libraries any more.
_library: Any = _found_library() if sys.version_info < (3, 12) else None
