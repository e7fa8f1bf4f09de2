"""Contents for databases of one schema, made by seed: neighbours of a given content.

Rows are mixed from rows that are there, with values near the constants of the gold query, with
NULLs, doubles, keys that lead nowhere and keys that many share. Primary, unique and foreign keys
hold. Values of one column stay of the kinds that it had.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import parse

Row = tuple[Any, ...]
Content = Mapping[str, Sequence[Sequence[Any]]]
"""The rows of each table, by the table's name; values as the database takes them."""

_LEAST_ROWS, _MOST_ROWS = 4, 24
_TRIES = 8  # to find a key that is not taken
_NULL_SHARE, _CONSTANT_SHARE, _NEW_SHARE, _ODD_SHARE = 0.08, 0.35, 0.15, 0.08
_NUMERIC = ("int", "real", "num", "dec", "double", "float", "serial", "money", "bool")


class Column(msgspec.Struct, frozen=True):
    """A column: its name, its declared type in any case, and whether it may be NULL."""

    name: str
    type: str = ""
    nullable: bool = True


class ForeignKey(msgspec.Struct, frozen=True):
    """Columns that hold values of another table's columns."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    """A table; the order of its columns is that of its rows. Names differ by more than case."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


Schema = tuple[Table, ...]


class Hints(msgspec.Struct, frozen=True):
    """What a query says of the values that matter.

    Attributes:
        constants: for each column, in lower case, the constants that it is compared with.
        links: pairs of columns ``(table, column)``, in lower case, that the query joins by.
    """

    constants: Mapping[str, tuple[Any, ...]] = {}
    links: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = ()


def read_hints(gold: str, engine: Engine = "sqlite") -> Hints:
    """Find the constants and the joins of a query; none if it cannot be parsed."""
    tree = parse(gold, engine)
    if tree is None:
        return Hints()
    from sqlglot import exp

    names = {t.alias_or_name.lower(): t.name.lower() for t in tree.find_all(exp.Table)}
    constants: dict[str, list[Any]] = {}
    links: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for node in tree.find_all(exp.Predicate, exp.Condition):
        if not isinstance(node, exp.Binary | exp.Between | exp.In):
            continue
        columns = [child for child in node.iter_expressions() if isinstance(child, exp.Column)]
        if isinstance(node, exp.EQ) and len(columns) == 2:
            one, two = ((names.get(c.table.lower(), ""), c.name.lower()) for c in columns)
            links.append((one, two))
        for literal in node.iter_expressions():
            if columns and isinstance(literal, exp.Literal | exp.Neg):
                constants.setdefault(columns[0].name.lower(), []).append(_constant(literal))
    return Hints({name: tuple(values) for name, values in constants.items()}, tuple(links))


def _constant(literal: Any) -> Any:
    text = literal.name
    if literal.is_string:
        return text.strip("%")
    try:
        number = float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text
    return -number if type(literal).__name__ == "Neg" else number


def neighbour(schema: Schema, content: Content, *, hints: Hints, seed: int) -> dict[str, list[Row]]:
    """Make another content for the same schema.

    Args:
        schema: the tables.
        content: rows to start from; a table may have none.
        hints: values that matter to the query.
        seed: equal seeds give equal contents.

    Returns:
        Rows for each table, 4 to 24 where its keys leave room, in an order of their own.
    """
    return _Maker(schema, content, hints, random.Random(seed)).content()  # noqa: S311 - no secret


class _Maker:
    """Makes the tables one after the other, those that others refer to first."""

    def __init__(
        self, schema: Schema, content: Content, hints: Hints, chance: random.Random
    ) -> None:
        self._schema = schema
        self._old = {name.lower(): [tuple(row) for row in rows] for name, rows in content.items()}
        self._hints = hints
        self._chance = chance
        self._new: dict[str, list[Row]] = {}
        self._tables = {table.name.lower(): table for table in schema}

    def content(self) -> dict[str, list[Row]]:
        """The rows of every table, by the name that the schema gives it."""
        for table in _parents_first(self._schema):
            self._new[table.name.lower()] = []
            self._fill(table)
        for rows in self._new.values():
            self._chance.shuffle(rows)
        return {table.name: self._new[table.name.lower()] for table in self._schema}

    def _fill(self, table: Table) -> None:
        rows = self._new[table.name.lower()]
        wanted = self._chance.randint(_LEAST_ROWS, _MOST_ROWS)
        taken: dict[tuple[str, ...], set[Row]] = {key: set() for key in _keys(table)}
        for _ in range(wanted * _TRIES):
            row = self._row(table, rows)
            if len(rows) >= wanted or row is None:
                break
            held = {key: _part(table, row, key) for key in taken}
            if any(part in taken[key] for key, part in held.items() if None not in part):
                continue
            for key, part in held.items():
                taken[key].add(part)
            rows.append(row)

    def _row(self, table: Table, rows: Sequence[Row]) -> Row | None:
        """A row: a variation of one that is there, or a mix; None if a parent has no rows."""
        model = self._model(table, rows)
        values: dict[str, Any] = {}
        for column, old in zip(table.columns, model, strict=True):
            values[column.name.lower()] = self._value(table, column, old)
        for key in table.foreign_keys:
            found = self._reference(table, key)
            if found is None:
                return None
            values.update(zip((name.lower() for name in key.columns), found, strict=True))
        row = tuple(values[column.name.lower()] for column in table.columns)
        return row if _allowed(table, row) else None

    def _model(self, table: Table, rows: Sequence[Row]) -> Row:
        """A row to vary: a new one, so that rows differ in little, or an old one, or none."""
        old = self._old.get(table.name.lower(), ())
        if rows and self._chance.random() < 0.3:
            return self._chance.choice(rows)
        if old and self._chance.random() < 0.6:
            return self._chance.choice(old)
        return tuple(self._seen(table, place) for place in range(len(table.columns)))

    def _seen(self, table: Table, place: int) -> Any:
        """A value that some old row has in this column, made up if there are no rows."""
        old = self._old.get(table.name.lower(), ())
        return self._chance.choice(old)[place] if old else self._made_up(table.columns[place])

    def _value(self, table: Table, column: Column, old: Any) -> Any:
        """A value for a column; mostly the old one, so that rows stay near to real ones."""
        name = column.name.lower()
        if (name,) in _keys(table):
            return self._fresh(table, column, old)
        linked = self._linked(table, name)
        if linked and self._chance.random() < 0.8:
            return self._chance.choice(linked)
        constants = self._hints.constants.get(name, ())
        lot = self._chance.random()
        if column.nullable and lot < _NULL_SHARE:
            return None
        if constants and lot < _NULL_SHARE + _CONSTANT_SHARE:
            return self._near(self._chance.choice(constants), column)
        if lot > 1 - _ODD_SHARE:
            return self._odd(column, old)
        if lot > 1 - _ODD_SHARE - _NEW_SHARE and old is not None:
            return self._near(old, column)
        return old if old is not None or column.nullable else self._made_up(column)

    def _linked(self, table: Table, name: str) -> list[Any]:
        """The values of a column of an earlier table that the query joins this one by."""
        own = (table.name.lower(), name)
        for one, two in self._hints.links:
            for here, there in ((one, two), (two, one)):
                if here == own and there[0] != own[0] and self._new.get(there[0]):
                    other = self._tables[there[0]]
                    return [_part(other, row, (there[1],))[0] for row in self._new[there[0]]]
        return []

    def _reference(self, table: Table, key: ForeignKey) -> Row | None:
        """Values of a parent row, of few parents often; NULLs sometimes; None if there is none."""
        width = len(key.columns)
        required = {name.lower() for names in (table.primary_key, *table.unique) for name in names}
        columns = {column.name.lower(): column for column in table.columns}
        free = all(columns[n.lower()].nullable and n.lower() not in required for n in key.columns)
        parents = self._new.get(key.table.lower(), [])
        if free and (not parents or self._chance.random() < _NULL_SHARE):
            return (None,) * width
        if not parents:
            return None
        some = parents[: max(1, len(parents) * 2 // 3)]  # the others are referred to by none
        few = some[: max(1, len(some) // 3)]
        parent = self._chance.choice(few if self._chance.random() < 0.5 else some)
        return _part(self._tables[key.table.lower()], parent, key.references)

    def _fresh(self, table: Table, column: Column, old: Any) -> Any:
        """A value of a key that no row has yet, as far as a few tries find one."""
        place = [c.name for c in table.columns].index(column.name)
        taken = {row[place] for row in self._new[table.name.lower()]}
        value = old if old is not None else self._made_up(column)
        if isinstance(value, str) and self._chance.random() < _CONSTANT_SHARE:
            value = self._chance.choice((self._made_up(column), self._odd(column, value)))
        for _ in range(_TRIES):
            if value not in taken:
                return value
            value = self._seen(table, place)
            if isinstance(value, int | float) and self._chance.random() < 0.5:
                value += self._chance.randint(1, 4 * _MOST_ROWS)
        if isinstance(value, int | float):
            return max((v for v in taken if isinstance(v, int | float)), default=0) + 1
        return f"{value}{len(taken)}" if isinstance(value, str) else value

    def _near(self, value: Any, column: Column) -> Any:
        """The value itself or one beside it, of the same kind."""
        if isinstance(value, bool) or value is None or isinstance(value, bytes):
            return value
        if isinstance(value, int):
            return value + self._chance.choice((-1, 0, 0, 1))
        if isinstance(value, float):
            return value + self._chance.choice((-1.0, -0.01, 0.0, 0.01, 1.0))
        if _is_numeric(column):
            return value
        text = str(value)
        return self._chance.choice((text, text, text[:-1], f"{text}x", f"x{text}", text.swapcase()))

    def _odd(self, column: Column, old: Any) -> Any:
        """A value of the column's kind that no constant and no old value suggests."""
        if isinstance(old, int | float) and not isinstance(old, bool):
            return old + self._chance.choice((-1000, -10, 10, 1000))
        if isinstance(old, bool | bytes) or _is_numeric(column) or _is_temporal(column):
            return old if old is not None else self._made_up(column)
        return self._chance.choice("qvwxyz") + self._chance.choice("klmnop")

    def _made_up(self, column: Column) -> Any:
        constants = self._hints.constants.get(column.name.lower(), ())
        if constants and self._chance.random() < 0.6:
            return self._near(self._chance.choice(constants), column)
        if _is_numeric(column):
            return self._chance.randint(0, 9)
        if _is_temporal(column):
            return f"20{self._chance.randint(10, 24)}-0{self._chance.randint(1, 9)}-11"
        return self._chance.choice("abcdefghij") + self._chance.choice("klmnop")


def _parents_first(schema: Schema) -> Iterator[Table]:
    """The tables, each after those that it refers to where that is possible."""
    waiting = list(schema)
    done: set[str] = set()
    while waiting:
        ready = [t for t in waiting if all(_is_there(key, t, done) for key in t.foreign_keys)]
        table = (ready or waiting)[0]
        waiting.remove(table)
        done.add(table.name.lower())
        yield table


def _is_there(key: ForeignKey, table: Table, done: set[str]) -> bool:
    return key.table.lower() in done or key.table.lower() == table.name.lower()


def _keys(table: Table) -> list[tuple[str, ...]]:
    """The sets of columns, in lower case, whose values no two rows share."""
    keys = (table.primary_key, *table.unique)
    return [tuple(name.lower() for name in key) for key in keys if key]


def _part(table: Table, row: Sequence[Any], names: Sequence[str]) -> Row:
    places = {column.name.lower(): place for place, column in enumerate(table.columns)}
    return tuple(row[places[name.lower()]] for name in names)


def _allowed(table: Table, row: Row) -> bool:
    """Tell whether a row has its required values; those of a primary key are."""
    required = {name.lower() for name in table.primary_key}
    return all(
        value is not None or (column.nullable and column.name.lower() not in required)
        for column, value in zip(table.columns, row, strict=True)
    )


def _is_numeric(column: Column) -> bool:
    return any(word in column.type.lower() for word in _NUMERIC)


def _is_temporal(column: Column) -> bool:
    return any(word in column.type.lower() for word in ("date", "time"))
