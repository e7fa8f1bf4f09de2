"""A SQLite database with the same rows in another order, on which undetermined golds show.

Nothing in it lies as it did: rows are written in reverse, whole-number keys are no longer the order
of storage, and there are no indices but those that keys need.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from toolenvs.errors import DataError
from toolenvs.grading.sql_functions import is_catalogue
from toolenvs.grading.sql_reading import parse, tokens

MOST_BYTES = 32 << 20
"""Largest file that is copied."""

_PLACES = frozenset(("ROWID", "_ROWID_", "OID"))
_STORED = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\]
    | (?P<key>\bINTEGER\b) | (?P<dropped>\bAUTOINCREMENT\b | \bWITHOUT\s+ROWID\b)""",
    re.VERBOSE | re.IGNORECASE,
)


@contextlib.contextmanager
def reordered(database: Path) -> Iterator[Path]:
    """A copy of a database whose rows lie in another order; it is gone afterwards.

    Raises:
        DataError: There is none: the file is too large, has virtual tables or cannot be copied. The
            message is a clause that says why.
    """
    seen = database.stat()
    if seen.st_size > MOST_BYTES:
        raise DataError(f"the database is larger than {MOST_BYTES >> 20} MB")
    content = _reversed(str(database.absolute()), seen.st_size, seen.st_mtime_ns)
    with tempfile.TemporaryDirectory(prefix="toolenvs-") as folder:
        copy = Path(folder, "reordered.sqlite")
        copy.write_bytes(content)
        yield copy


def asks_for_places(gold: str) -> bool:
    """Tell whether a query reads where rows lie, or how they are stored."""
    if any(word.text.upper() in _PLACES for word in tokens(gold) or () if word.kind != "string"):
        return True
    tree = parse(gold)
    if tree is None:
        return False
    from sqlglot import exp

    return any(map(is_catalogue, tree.find_all(exp.Table)))


@functools.lru_cache(maxsize=1)  # the next gold is mostly of the same database
def _reversed(file: str, size: int, changed_ns: int) -> bytes:  # a changed file has another
    connection = sqlite3.connect(":memory:", isolation_level=None, uri=True)
    with contextlib.closing(connection) as copy:
        try:
            copy.execute("ATTACH ? AS original", [f"file:{quote(file)}?mode=ro&immutable=1"])
            copy.execute("PRAGMA reverse_unordered_selects=ON")
            copy.execute("BEGIN")
            _fill(copy)
            copy.execute("COMMIT")
            return copy.serialize()
        except sqlite3.Error as error:
            raise DataError(f"no copy can be made of the database ({error})") from None


def _fill(copy: sqlite3.Connection) -> None:
    """Make the tables of ``original``, with their rows in reverse, and then its views."""
    listed = copy.execute(
        "SELECT type, name, sql FROM original.sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
    ).fetchall()
    for kind, name, sql in listed:
        copy.execute(sql if kind == "view" else _STORED.sub(_as_stored, sql))
        if kind == "table":
            columns = copy.execute(
                "SELECT name FROM pragma_table_xinfo(?, 'original') WHERE hidden = 0", [name]
            ).fetchall()
            names = ", ".join(_quoted(column) for (column,) in columns)
            # ``*`` would be copied as it is stored, and what an index covers in its order.
            copy.execute(
                f"INSERT INTO main.{_quoted(name)} ({names}) "  # noqa: S608 - names are quoted
                f"SELECT {names} FROM original.{_quoted(name)} NOT INDEXED"
            )


def _as_stored(found: re.Match[str]) -> str:
    if found["key"]:
        return "INT"  # of the same affinity, but a key of this type is not the place of its row
    return "" if found["dropped"] else found[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
