"""What a generated database is described by: tables and columns with the words to speak of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from toolenvs.sources._databases import insert_statement

Kind = Literal["id", "key", "name", "group", "number", "money", "date"]
"""What a column holds.

* ``id``: 1, 2, 3 ...; ``key``: the id of a row of another table;
* ``name``: what a row is called, not always unique;
* ``group``: one of a few words;
* ``number``, ``money``: from a coarse grid, so that equal values occur; ``date``: ``2023-05-31``.
"""

_SQL_TYPES: Mapping[Kind, str] = {
    "id": "INTEGER PRIMARY KEY",
    "key": "INTEGER",
    "name": "TEXT",
    "group": "TEXT",
    "number": "INTEGER",
    "money": "REAL",
    "date": "TEXT",
}
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Dice:
    """Draws that depend on the seed alone, in any release of Python: ``random()`` is kept as it is.

    Args:
        seed: what the stream depends on.
    """

    def __init__(self, *seed: object) -> None:
        self._stream = random.Random("/".join(map(str, seed)))  # noqa: S311 - nothing secret

    def below(self, n: int) -> int:
        """A whole number from 0 to ``n - 1``."""
        return int(self._stream.random() * n)

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """True in ``share`` of all draws."""
        return self._stream.random() < share

    def pick(self, items: Sequence[Any]) -> Any:
        """One of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[Any], n: int) -> list[Any]:
        """Up to ``n`` different ones of the items, in a random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(n, len(left)))]


class Column(msgspec.Struct, frozen=True):
    """A column.

    Attributes:
        name: its name in SQL.
        kind: what it holds.
        label: what a question calls it: "number of pages".
        values: the words of a name or group; of a name, lists of parts to be joined.
        low: the smallest number, or the first year of a date; ``high`` the largest, or last.
        step: the grid of numbers.
        missing: share of rows in which it is NULL.
        of: the table that a key refers to.
    """

    name: str
    kind: Kind
    label: str = ""
    values: tuple[Any, ...] = ()
    low: int = 0
    high: int = 0
    step: int = 1
    missing: float = 0.0
    of: str = ""

    @property
    def definition(self) -> str:
        """How CREATE TABLE has it."""
        needed = "" if self.missing or self.kind == "id" else " NOT NULL"
        refers = f" REFERENCES {self.of} (id)" if self.of else ""
        return f"{self.name} {_SQL_TYPES[self.kind]}{needed}{refers}"

    def draw(self, dice: Dice, *, parents: int) -> Any:
        """A value; ``parents`` is the number of rows of the table that a key refers to."""
        if self.missing and dice.chance(self.missing):
            return None
        if self.kind == "key":
            # Some rows are referred to often and some never.
            return 1 + min(dice.below(parents), dice.below(parents)) if parents else None
        if self.kind == "name":
            return " ".join(dice.pick(part) for part in self.values)
        if self.kind == "group":
            return dice.pick(self.values)
        if self.kind == "date":
            month = dice.between(1, 12)
            day = dice.between(1, _DAYS[month - 1])
            return f"{dice.between(self.low, self.high)}-{month:02}-{day:02}"
        number = dice.between(self.low // self.step, self.high // self.step) * self.step
        return number + (0.5 if dice.chance(0.4) else 0.0) if self.kind == "money" else number


class Table(msgspec.Struct, frozen=True):
    """A table.

    Attributes:
        name: its name in SQL.
        one: what a question calls a row; ``many``: several.
        rows: how many it has, about.
        columns: the first is ``id``.
    """

    name: str
    one: str
    many: str
    rows: int
    columns: tuple[Column, ...]

    def of_kind(self, *kinds: Kind, missing: bool | None = None) -> list[Column]:
        """Its columns of these kinds; ``missing`` tells whether they may be NULL, None: any."""
        return [
            column
            for column in self.columns
            if column.kind in kinds and (missing is None or bool(column.missing) == missing)
        ]

    @property
    def title(self) -> Column:
        """The column that tells a row to people: its name, else its id."""
        return next((c for c in self.columns if c.kind == "name"), self.columns[0])


class Link(msgspec.Struct, frozen=True):
    """A foreign key, as a question speaks of it: the loans of a member.

    Attributes:
        child: the table that holds the key.
        key: its column.
        parent: the table that it refers to.
    """

    child: Table
    key: Column
    parent: Table


class Schema(msgspec.Struct, frozen=True):
    """A database.

    Attributes:
        name: what it is called.
        tables: in an order in which each refers only to earlier ones.
        instances: how many further databases of the schema a task is judged on.
    """

    name: str
    tables: tuple[Table, ...]
    instances: int = 0

    def table(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    @property
    def links(self) -> list[Link]:
        """All foreign keys."""
        return [
            Link(table, column, self.table(column.of))
            for table in self.tables
            for column in table.columns
            if column.of
        ]

    def script(self, seed: int, *, instance: int = 0) -> str:
        """The SQL that makes the database of a seed; an ``instance`` above 0 is another content."""
        lines: list[str] = []
        sizes: dict[str, int] = {}
        for table in self.tables:
            dice = Dice("rows", self.name, seed, instance, table.name)
            sizes[table.name] = max(3, table.rows * dice.between(80, 120) // 100)
            columns = ",\n  ".join(column.definition for column in table.columns)
            lines.append(f"CREATE TABLE {table.name} (\n  {columns}\n);")
            for number in range(1, sizes[table.name] + 1):
                cells = [
                    number if c.kind == "id" else c.draw(dice, parents=sizes.get(c.of, 0))
                    for c in table.columns
                ]
                lines.append(insert_statement(table.name, map(literal, cells)))
        return "\n".join(lines) + "\n"


def literal(value: Any) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
