"""Changes of a generated database that a task asks for, by kind."""

from __future__ import annotations

from toolenvs.sources._sql_pieces import Asked
from toolenvs.sources._sql_schema import Dice, Table, literal
from toolenvs.sources._sql_world import World, written


def insert_row(world: World, dice: Dice) -> Asked:
    """One new row with all its values."""
    table = dice.pick(world.schema.tables)
    sizes = {t.name: _size(world, t) for t in world.schema.tables}
    new = sizes[table.name] + dice.between(1, 20)
    cells = {
        c.name: new if c.kind == "id" else c.draw(dice, parents=sizes.get(c.of, 0))
        for c in table.columns
    }
    told = [
        f"{c.of or c.label}{' with id' if c.of else ''} {cells[c.name]!r}"
        for c in table.columns
        if cells[c.name] is not None
    ]
    return Asked(
        text=f"Add a new {table.one}: {', '.join(told)}. What is not given is not known (NULL).",
        gold=written(
            "INSERT INTO {table} ({names}) VALUES ({values})",
            table=table.name,
            names=", ".join(cells),
            values=", ".join(map(literal, cells.values())),
        ),
        changes=True,
    )


def set_value(world: World, dice: Dice) -> Asked:
    """One column of the rows that meet two conditions gets a new value."""
    columns = [(t, c) for t in world.schema.tables for c in t.of_kind("group", "number")]
    table, column = dice.pick(columns)
    value = dice.pick(world.values(table, column))
    first = world.condition(dice, table, without=(column.name,))
    second = world.condition(dice, table, without=(column.name, first.column))
    return Asked(
        text=f"Set the {column.label} to {value!r} for all {table.many} {first.words} and "
        f"{second.words}.",
        gold=written(
            "UPDATE {table} SET {column} = {value} WHERE {first} AND {second}",
            table=table.name,
            column=column.name,
            value=literal(value),
            first=first.on(table.name),
            second=second.on(table.name),
        ),
        changes=True,
    )


def raise_number(world: World, dice: Dice) -> Asked:
    """A number of the children of some parents grows."""
    links = [link for link in world.schema.links if link.child.of_kind("number", missing=False)]
    link = dice.pick(links)
    column = dice.pick(link.child.of_kind("number", missing=False))
    by = dice.between(1, 5) * column.step
    where = world.condition(dice, link.parent)
    return Asked(
        text=f"Raise the {column.label} by {by} for all {link.child.many} of {link.parent.many} "
        f"{where.words}.",
        gold=written(
            "UPDATE {child} SET {column} = {column} + {by} WHERE {key} IN "
            "(SELECT p.id FROM {parent} AS p WHERE {where})",
            child=link.child.name,
            column=column.name,
            by=by,
            key=link.key.name,
            parent=link.parent.name,
            where=where.on("p"),
        ),
        changes=True,
    )


def fill_missing(world: World, dice: Dice) -> Asked:
    """Where a value is missing it gets one."""
    columns = [
        (t, c) for t in world.schema.tables for c in t.of_kind("group", "number", missing=True)
    ]
    table, column = dice.pick(columns)
    value = dice.pick(world.values(table, column))
    return Asked(
        text=f"Record {value!r} as the {column.label} of all {table.many} that have none.",
        gold=written(
            "UPDATE {table} SET {column} = {value} WHERE {column} IS NULL",
            table=table.name,
            column=column.name,
            value=literal(value),
        ),
        changes=True,
    )


def delete_rows(world: World, dice: Dice) -> Asked:
    """The rows that meet two conditions, of a table that nothing refers to."""
    table = dice.pick(_leaves(world))
    first = world.condition(dice, table)
    second = world.condition(dice, table, without=(first.column,))
    return Asked(
        text=f"Delete all {table.many} {first.words} and {second.words}.",
        gold=written(
            "DELETE FROM {table} WHERE {first} AND {second}",
            table=table.name,
            first=first.on(table.name),
            second=second.on(table.name),
        ),
        changes=True,
    )


def delete_of_some(world: World, dice: Dice) -> Asked:
    """The children of some parents, of a table that nothing refers to."""
    leaves = _leaves(world)
    link = dice.pick([link for link in world.schema.links if link.child in leaves])
    where = world.condition(dice, link.parent)
    own = world.condition(dice, link.child)
    return Asked(
        text=f"Of the {link.child.many} of {link.parent.many} {where.words}, delete all "
        f"{link.child.many} {own.words}.",
        gold=written(
            "DELETE FROM {child} WHERE {own} AND {key} IN "
            "(SELECT p.id FROM {parent} AS p WHERE {where})",
            child=link.child.name,
            own=own.on(link.child.name),
            key=link.key.name,
            parent=link.parent.name,
            where=where.on("p"),
        ),
        changes=True,
    )


def _leaves(world: World) -> list[Table]:
    referred = {link.parent.name for link in world.schema.links}
    return [table for table in world.schema.tables if table.name not in referred]


def _size(world: World, table: Table) -> int:
    return int(world.rows(written("SELECT COUNT(*) FROM {table}", table=table.name))[0][0])
