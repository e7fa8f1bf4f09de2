"""Instances for the tasks of a data set: neighbours of a database that tell near misses apart.

A data set gives each question one database, on which wrong queries and written-out answers may be
right by chance. Here each task gets a few small databases more: contents of the same schema, made
from the database's own rows and the gold's constants, chosen because near misses of the gold give
other results there.

Source: Zhong, Yu and Klein 2020, arXiv:2010.02840.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from toolenvs.errors import DataError
from toolenvs.grading.sql import compare
from toolenvs.grading.sql_contents import Column, Content, ForeignKey, Hints, Row, Table, neighbour
from toolenvs.grading.sql_fitness import examine_gold
from toolenvs.grading.sql_neighbours import find_neighbours
from toolenvs.grading.sql_policy import DEFAULT_POLICY, SqlPolicy
from toolenvs.sources._databases import Script, build, insert_statement

MOST_INSTANCES = 8
_TRIES = 24
_MOST_ROWS = 200  # of a table, to make contents from
_MOST_RETURNED = 10_000  # as rewards compare at most
_MOST_STEPS = 4_000  # of 1000 instructions of SQLite, for one query


class Original(msgspec.Struct, frozen=True):
    """A database, as far as neighbours are made from it.

    Attributes:
        name: what it is called.
        definitions: the statements that make its tables and views.
        schema: its tables.
        content: some of their rows.
    """

    name: str
    definitions: tuple[str, ...]
    schema: tuple[Table, ...]
    content: Mapping[str, Sequence[Row]]


def built_instances(
    gold: str, file: Path, *, most: int, policy: SqlPolicy = DEFAULT_POLICY
) -> tuple[str, ...]:
    """The places of the instances of a gold's task; they are built where they are not there.

    Raises:
        DataError: The file cannot be read, or an instance not be written.
    """
    try:
        seen = file.stat()
        scripts = _instances(gold, str(file), seen.st_size, seen.st_mtime_ns, most, policy)
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{file}: no instances can be made of the database: {error}.") from error
    return tuple(build(script) for script in scripts)


@functools.lru_cache(maxsize=4096)
def _instances(
    gold: str, file: str, size: int, changed_ns: int, most: int, policy: SqlPolicy
) -> tuple[Script, ...]:
    # A changed file has another entry.
    return tuple(instances_of(gold, Path(file), most=most, policy=policy))


def instances_of(
    gold: str, file: Path, *, most: int, policy: SqlPolicy, seed: int = 0
) -> list[Script]:
    """Databases that a query must be right on as well, for one gold.

    On one of them at least the gold's result is another than on the first, if any was found.

    Args:
        gold: the gold query; it reads.
        file: its database. One with virtual tables has no neighbours, since their content is none
            of rows.
        most: how many instances at most.
        policy: by which results are compared.
        seed: on which their contents depend; they depend on the file and the gold besides.
    """
    seen = file.stat()
    original = _original(str(file), seen.st_size, seen.st_mtime_ns)
    if not original.schema:
        return []
    with contextlib.closing(_Bench(original)) as bench:
        found = find_neighbours(
            gold,
            original.schema,
            original.content,
            bench,
            seed=seed,
            tries=_TRIES,
            most=most,
            policy=policy,
        )
        chosen: list[Content] = [c for c in found.contents if _is_fair(gold, c, bench, policy)]
        if not any(_differs(gold, content, original, bench, policy) for content in chosen):
            others = (_made(original, seed + _TRIES + number) for number in range(_TRIES))
            apart = (c for c in others if _differs(gold, c, original, bench, policy))
            fair = (c for c in apart if _is_fair(gold, c, bench, policy))
            chosen = [*chosen[: most - 1], *itertools.islice(fair, 1)]
    return [Script(original.name, _script(original, content)) for content in chosen]


def _made(original: Original, seed: int) -> Content:
    return neighbour(original.schema, original.content, hints=Hints(), seed=seed)


def _is_fair(gold: str, content: Content, bench: _Bench, policy: SqlPolicy) -> bool:
    """Tell whether the gold's result on a content is decided, though it may be empty.

    A tie at a LIMIT further in would make right queries wrong, and so would an order of its rows.
    """
    turned = {name: rows[::-1] for name, rows in content.items()}
    finding = examine_gold(
        gold,
        lambda sql: bench(sql, content),
        reordered=lambda sql: bench(sql, turned),
        policy=policy,
    )
    return not finding.unusable or not bench(gold, content).get("rows", True)


def _differs(
    gold: str, content: Content, original: Original, bench: _Bench, policy: SqlPolicy
) -> bool:
    """Tell whether the gold's result on a content is no right answer on the original."""
    own, other = bench(gold, original.content), bench(gold, content)
    verdict = compare(other, own, policy=policy)
    return verdict.gradable and not verdict.correct


class _Bench:
    """Runs queries on contents, each for a limited number of steps."""

    def __init__(self, original: Original) -> None:
        self._original = original
        self._content: Content | None = None
        self._connection = sqlite3.connect(":memory:")
        self._steps = 0

    def __call__(self, sql: str, content: Content) -> Mapping[str, Any]:
        if content is not self._content:
            self._connection.close()
            self._connection = sqlite3.connect(":memory:", isolation_level=None)
            self._connection.executescript(_script(self._original, content))
            self._connection.execute("PRAGMA query_only=ON").close()
            self._connection.set_progress_handler(self._is_over, 1000)
            self._content = content
        self._steps = 0
        try:
            cursor = self._connection.execute(sql)
            rows = cursor.fetchmany(_MOST_RETURNED + 1)
        except sqlite3.Error as error:
            return {"error": {"kind": "raised", "message": str(error)}}
        columns = [each[0] for each in cursor.description or ()]
        kept = [[*map(_as_json, row)] for row in rows[:_MOST_RETURNED]]
        return {"columns": columns, "rows": kept, "cut": len(rows) > _MOST_RETURNED}

    def close(self) -> None:
        self._connection.close()

    def _is_over(self) -> bool:
        self._steps += 1
        return self._steps > _MOST_STEPS


def _as_json(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _script(original: Original, content: Content) -> str:
    tables = [statement for statement in original.definitions if not _is_view(statement)]
    views = [statement for statement in original.definitions if _is_view(statement)]
    rows = [
        insert_statement(_quoted(name), map(_written, row))
        for name, table in content.items()
        for row in table
    ]
    return "".join(f"{line.rstrip(';')};\n" for line in (*tables, *rows, *views))


def _is_view(statement: str) -> bool:
    return statement.split(None, 2)[1].upper() == "VIEW"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _written(value: Any) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("\0", "") + "'"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "9e999" if value > 0 else "-9e999"
    return repr(value)


# -- reading a database ---------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _original(file: str, size: int, changed_ns: int) -> Original:  # a changed file has another
    with contextlib.closing(
        sqlite3.connect(f"file:{quote(str(Path(file).absolute()))}?mode=ro&immutable=1", uri=True)
    ) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        listed = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        name = Path(file).stem
        if any(sql.upper().startswith("CREATE VIRTUAL") for _, _, sql in listed):
            return Original(name, (), (), {})
        names = [name for name, kind, _ in listed if kind == "table"]
        schema = tuple(_table(connection, table, names) for table in names)
        content = {table: _rows(connection, table) for table in names}
        made = tuple(sql for _, kind, sql in listed if kind in ("table", "view"))
    return Original(name, made, schema, content)


def _rows(connection: sqlite3.Connection, table: str) -> list[Row]:
    sql = f"SELECT * FROM {_quoted(table)} LIMIT {_MOST_ROWS}"  # noqa: S608 - the name is quoted
    return connection.execute(sql).fetchall()


def _table(connection: sqlite3.Connection, name: str, names: Sequence[str]) -> Table:
    """A table's columns and keys, as far as they name what is there."""
    known = {other.lower(): other for other in names}
    info = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', [name])
    rows = info.fetchall()
    uniques = connection.execute(
        "SELECT name FROM pragma_index_list(?) WHERE \"unique\" AND origin = 'u'", [name]
    ).fetchall()
    primary = tuple(row[0] for row in sorted(filter(lambda r: r[3], rows), key=lambda r: r[3]))
    return Table(
        name,
        tuple(
            Column(column, kind or "", nullable=not (must or pk)) for column, kind, must, pk in rows
        ),
        primary_key=primary,
        unique=tuple(_columns_of_index(connection, index) for (index,) in uniques),
        foreign_keys=tuple(_foreign_keys(connection, name, known, {r[0].lower() for r in rows})),
    )


def _columns_of_index(connection: sqlite3.Connection, index: str) -> tuple[str, ...]:
    listed = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", [index])
    return tuple(name for (name,) in listed.fetchall() if name is not None)


def _foreign_keys(
    connection: sqlite3.Connection, name: str, known: Mapping[str, str], own: set[str]
) -> list[ForeignKey]:
    listed = connection.execute(
        'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', [name]
    ).fetchall()
    keys: list[ForeignKey] = []
    for number in dict.fromkeys(row[0] for row in listed):
        parts = [row for row in listed if row[0] == number]
        parent = known.get(parts[0][1].lower())
        if parent is None or any(part[2].lower() not in own for part in parts):
            continue
        there = connection.execute("SELECT name, pk FROM pragma_table_info(?)", [parent]).fetchall()
        names = {column.lower() for column, _ in there}
        main = [column for column, place in sorted(there, key=lambda row: row[1]) if place]
        to = [part[3] or (main[n] if n < len(main) else "") for n, part in enumerate(parts)]
        if all(column.lower() in names for column in to):
            keys.append(ForeignKey(tuple(part[2] for part in parts), parent, tuple(to)))
    return keys
