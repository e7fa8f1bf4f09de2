"""A generated database that questions are made about: its words, its values, and what holds."""

from __future__ import annotations

import functools
import hashlib
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from toolenvs.grading.sql import compare
from toolenvs.grading.sql_fitness import examine_gold
from toolenvs.sources._databases import Script, build
from toolenvs.sources._sql_near import near_misses
from toolenvs.sources._sql_schema import Column, Dice, Schema, Table, literal
from toolenvs.sources._sql_schemas import SCHEMAS
from toolenvs.types import Database

_MOST_ROWS = 60  # of a gold's result: more would only be cut


class Filter(msgspec.Struct, frozen=True):
    """A condition on the rows of a table, in SQL and in words.

    Attributes:
        sql: with ``{t}`` for the table's name in the query.
        words: what follows the rows: "whose price is above 10".
        column: the column that it is about.
    """

    sql: str
    words: str
    column: str

    def on(self, alias: str) -> str:
        """The condition in a query that calls the table ``alias``."""
        return self.sql.replace("{t}", alias)


def written(template: str, **parts: object) -> str:
    """SQL with ``parts``, which this project wrote itself, where ``{name}`` stands."""
    return " ".join(template.format_map(parts).split())


class World:
    """The database of one schema and seed, and its instances.

    Args:
        schema: which database.
        seed: of which content.
    """

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema = schema
        self.seed = seed
        contents = range(1 + schema.instances)
        self.scripts = [Script(schema.name, schema.script(seed, instance=n)) for n in contents]

    def database(self, *, writable: bool = False) -> Database:
        """The database as a task has it; changes are judged on the task's own database alone."""
        first, *others = self.scripts[:1] if writable else self.scripts
        digests = "\n".join([first.digest, *(other.digest for other in others)])
        return Database(
            name=self.schema.name,
            place=first.place,
            digest=hashlib.sha256(digests.encode()).hexdigest() if others else first.digest,
            writable=writable,
            instances=tuple(other.place for other in others),
        )

    def build(self) -> None:
        """Make sure that the files of the database and its instances are there.

        Raises:
            DataError: They cannot be written.
        """
        for script in self.scripts:
            build(script)

    @functools.cached_property
    def _open(self) -> list[sqlite3.Connection]:
        return [_in_memory(script.text) for script in self.scripts]

    def rows(self, sql: str, *, instance: int = 0) -> list[tuple[Any, ...]]:
        """What a query returns."""
        return self._open[instance].execute(sql).fetchall()

    def values(self, table: Table, column: Column) -> list[Any]:
        """The different values of a column, sorted, without NULL."""
        sql = written(
            "SELECT DISTINCT {c} FROM {t} WHERE {c} IS NOT NULL ORDER BY 1",
            c=column.name,
            t=table.name,
        )
        return [row[0] for row in self.rows(sql)]

    def is_fit(self, sql: str, *, n: int = 0) -> bool:
        """Tell whether a query is a good gold: some rows that say something, decided by no tie.

        And every near miss must return something else, here or on an instance; so must the rows
        themselves, written out as a query: they must not be right on every instance.

        Args:
            sql: the query.
            n: how many rows it must return; 0: some, but not too many to read.
        """
        rows = self.rows(sql)
        if n and len(rows) != n:
            return False
        if not 0 < len(rows) <= _MOST_ROWS or (len(rows) == 1 and not any(rows[0])):
            return False
        findings = [
            examine_gold(sql, functools.partial(self._result, instance=number))
            for number in range(len(self.scripts))
        ]
        tied = any("tie" in note for finding in findings for note in finding.notes)
        if findings[0].unusable or tied or not self._varies(sql):
            return False
        return self._tells_apart(sql)

    def is_change(self, statement: str) -> bool:
        """Tell whether a statement runs and changes a few rows; nothing is changed by asking."""
        copy = _in_memory(self.scripts[0].text)
        try:
            before = list(copy.iterdump())
            copy.execute("PRAGMA foreign_keys=ON")
            small = 0 < copy.execute(statement).rowcount <= _MOST_ROWS
            return small and list(copy.iterdump()) != before
        except sqlite3.IntegrityError:
            return False
        finally:
            copy.close()

    def condition(self, dice: Dice, table: Table, *, without: Collection[str] = ()) -> Filter:
        """A condition on a column that is not ``without``; on the id if none is left."""
        columns = [
            column
            for column in table.of_kind("group", "number", "money", "date")
            if column.name not in without
        ]
        column = dice.pick(columns or [table.columns[0]])
        if column.missing and dice.chance(0.25):
            words = f"that have no {column.label} recorded"
            return Filter(f"{{t}}.{column.name} IS NULL", words, column.name)
        values = self.values(table, column)
        make = {"group": _of_group, "date": _of_date}.get(column.kind, _of_number)
        sql, words = make(dice, column, values)
        return Filter(f"{{t}}.{column.name} {sql}", f"whose {column.label} {words}", column.name)

    def _varies(self, sql: str) -> bool:
        """Tell whether an instance gives another result, where there are any."""
        own, *others = (self._result(sql, instance=n) for n in range(len(self.scripts)))
        return not others or any(not compare(other, own).correct for other in others)

    def _tells_apart(self, sql: str) -> bool:
        """Tell whether every near miss returns something else, here or on an instance."""
        every = range(len(self.scripts))
        return all(
            any(self._bag(sql, n) != self._bag(other, n) for n in every)
            for other in near_misses(sql)
        )

    def _bag(self, sql: str, instance: int) -> list[str]:
        try:
            return sorted(map(repr, self.rows(sql, instance=instance)))
        except sqlite3.Error as error:
            return [str(error)]

    def _result(self, sql: str, *, instance: int) -> Mapping[str, Any]:
        try:
            cursor = self._open[instance].execute(sql)
        except sqlite3.Error as error:
            return {"error": {"kind": "raised", "message": str(error)}}
        return {"columns": [d[0] for d in cursor.description], "rows": cursor.fetchall()}


@functools.lru_cache(maxsize=16)
def world(schema: str, seed: int) -> World:
    """The world of a schema's name and a seed; the last few are kept."""
    return World(SCHEMAS[schema], seed)


def _in_memory(script: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(f"BEGIN; {script} COMMIT;")
    return connection


def _of_group(dice: Dice, column: Column, values: list[Any]) -> tuple[str, str]:
    if len(values) > 3 and dice.chance(0.25):
        one, other = sorted(dice.some(values, 2))
        return f"IN ({literal(one)}, {literal(other)})", f"is {one!r} or {other!r}"
    value = dice.pick(values)
    if not column.missing and dice.chance(0.15):
        return f"<> {literal(value)}", f"is not {value!r}"
    return f"= {literal(value)}", f"is {value!r}"


def _of_number(dice: Dice, column: Column, values: list[Any]) -> tuple[str, str]:
    inner = values[len(values) // 6 : -(len(values) // 6) or None] or values
    value = dice.pick(inner)
    if len(inner) > 4 and dice.chance(0.2):
        low, high = sorted(dice.some(inner, 2))
        return f"BETWEEN {low!r} AND {high!r}", f"is from {low} to {high} (both included)"
    sign, words = dice.pick(
        [(">", "is above"), (">=", "is at least"), ("<", "is below"), ("<=", "is at most")]
    )
    return f"{sign} {value!r}", f"{words} {value}"


def _of_date(dice: Dice, column: Column, values: list[Any]) -> tuple[str, str]:
    value = dice.pick(values[len(values) // 5 : -(len(values) // 5) or None] or values)
    sign, words = dice.pick(
        [("<", "is before"), (">=", "is on or after"), (">", "is after"), ("<=", "is on or before")]
    )
    return f"{sign} {literal(value)}", f"{words} {value}"
