"""Questions about one table of a generated database, by kind.

Each maker draws a question and its gold; whether the gold is fit on the database (it returns rows,
no tie decides) is checked by the caller, who draws again where it is not.
"""

from __future__ import annotations

from toolenvs.sources._sql_pieces import (
    AGGREGATES,
    Asked,
    column_list,
    conditions,
    distinct,
    label_list,
    pick_column,
)
from toolenvs.sources._sql_schema import Dice, literal
from toolenvs.sources._sql_world import World, written


def listing(world: World, dice: Dice) -> Asked:
    """Columns of the rows that meet one or two conditions."""
    table = dice.pick(world.schema.tables)
    shown = dice.some(table.of_kind("group", "number", "money", "date"), dice.between(1, 2))
    where, words = conditions(world, dice, table, dice.between(1, 2))
    columns = distinct([table.title, *shown])
    return Asked(
        text=f"List the {label_list(columns)} of all {table.many} {words}, one row for each "
        f"{table.one}.",
        gold=written(
            "SELECT {columns} FROM {table} AS t WHERE {where}",
            columns=column_list(columns, "t"),
            table=table.name,
            where=where,
        ),
    )


def count(world: World, dice: Dice) -> Asked:
    """How many rows meet the conditions."""
    table = dice.pick(world.schema.tables)
    where, words = conditions(world, dice, table, dice.between(1, 2))
    return Asked(
        text=f"How many {table.many} are there {words}?",
        gold=written(
            "SELECT COUNT(*) FROM {table} AS t WHERE {where}", table=table.name, where=where
        ),
    )


def different_values(world: World, dice: Dice) -> Asked:
    """The different values of a column among some rows."""
    table, column = pick_column(world, dice, "group", "number")
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    known = f" AND t.{column.name} IS NOT NULL" if column.missing else ""
    return Asked(
        text=f"Which values does the {column.label} take among the {table.many} {words}? List each "
        "once" + (", and leave out what is not recorded." if known else "."),
        gold=written(
            "SELECT DISTINCT t.{column} FROM {table} AS t WHERE {where}{known}",
            column=column.name,
            table=table.name,
            where=where,
            known=known,
        ),
    )


def aggregate(world: World, dice: Dice) -> Asked:
    """One number computed from some rows."""
    table, column = pick_column(world, dice, "number", "money")
    function, word = dice.pick(AGGREGATES)
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    return Asked(
        text=f"What is the {word} {column.label} of the {table.many} {words}?",
        gold=written(
            "SELECT {function}(t.{column}) FROM {table} AS t WHERE {where}",
            function=function,
            column=column.name,
            table=table.name,
            where=where,
        ),
    )


def missing(world: World, dice: Dice) -> Asked:
    """How often a value is missing, or for which share."""
    table, column = pick_column(world, dice, "group", "number", "money", "date", missing=True)
    by = dice.pick(
        table.of_kind("group", missing=False)
        or table.of_kind("number", missing=False)
        or [table.title]
    )
    where, words = conditions(world, dice, table, 1, without=(by.name, column.name))
    return Asked(
        text=f"For each {by.label} that occurs among the {table.many} {words}, how many of them "
        f"have a {column.label} recorded and how many have none? Give the {by.label} and the two "
        "numbers, in this order.",
        gold=written(
            "SELECT t.{by}, COUNT(t.{column}), COUNT(*) - COUNT(t.{column}) FROM {table} AS t "
            "WHERE {where} GROUP BY t.{by}",
            where=where,
            by=by.name,
            column=column.name,
            table=table.name,
        ),
        grading={"columns": "exact"},
    )


def not_this_value(world: World, dice: Dice) -> Asked:
    """Rows of which a value is another, or is missing."""
    table, column = pick_column(world, dice, "group", "number", missing=True)
    value = dice.pick(world.values(table, column))
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    return Asked(
        text=f"How many {table.many} {words} have another {column.label} than {value!r}, or none "
        "recorded?",
        gold=written(
            "SELECT COUNT(*) FROM {table} AS t WHERE {where} AND (t.{c} <> {value} "
            "OR t.{c} IS NULL)",
            table=table.name,
            where=where,
            c=column.name,
            value=literal(value),
        ),
    )


def share(world: World, dice: Dice) -> Asked:
    """The percentage of some rows that meet one more condition."""
    table = dice.pick(world.schema.tables)
    among = world.condition(dice, table)
    meets = world.condition(dice, table, without=(among.column,))
    return Asked(
        text=f"Of the {table.many} {among.words}, what percentage are {table.many} {meets.words}? "
        "Give a number from 0 to 100, not rounded.",
        gold=written(
            "SELECT 100.0 * SUM(CASE WHEN {meets} THEN 1 ELSE 0 END) / COUNT(*) "
            "FROM {table} AS t WHERE {among}",
            meets=meets.on("t"),
            table=table.name,
            among=among.on("t"),
        ),
    )


def highest(world: World, dice: Dice) -> Asked:
    """The first few rows in an order."""
    table, column = pick_column(world, dice, "number", "money", "date")
    known = f" AND t.{column.name} IS NOT NULL" if column.missing else ""
    number = dice.between(2, 5)
    falls = dice.chance(0.6)
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    side = "highest" if falls else "lowest"
    if column.kind == "date":
        side = "latest" if falls else "earliest"
    shown = distinct([table.columns[0], table.title, column])
    return Asked(
        text=f"Which {number} of the {table.many} {words} have the {side} {column.label}? Give "
        f"their {label_list(shown)}, beginning with the {side}.",
        gold=written(
            "SELECT {shown} FROM {table} AS t WHERE {where}{known} ORDER BY t.{column} {way} "
            "LIMIT {number}",
            shown=column_list(shown, "t"),
            table=table.name,
            where=where,
            known=known,
            column=column.name,
            way="DESC" if falls else "ASC",
            number=number,
        ),
        rows=number,
    )


def above_average(world: World, dice: Dice) -> Asked:
    """Rows that exceed the average of all, or of their own group."""
    table, column = pick_column(world, dice, "number", "money", missing=False)
    groups = table.of_kind("group", missing=False)
    group = dice.pick(groups) if groups and dice.chance(0.6) else None
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    whose = f"of all {table.many} of the same {group.label}" if group else f"of all {table.many}"
    shown = distinct([table.columns[0], table.title, column])
    return Asked(
        text=f"Which {table.many} {words} have a {column.label} above the average {whose}? Give "
        f"their {label_list(shown)}.",
        gold=written(
            "SELECT {shown} FROM {table} AS t WHERE {where} AND t.{column} > "
            "(SELECT AVG(o.{column}) FROM {table} AS o {same})",
            shown=column_list(shown, "t"),
            table=table.name,
            where=where,
            column=column.name,
            same=f"WHERE o.{group.name} = t.{group.name}" if group else "",
        ),
    )


# -- groups ---------------------------------------------------------------------------------------


def count_by_group(world: World, dice: Dice) -> Asked:
    """How many rows of each group meet a condition."""
    table, column = pick_column(world, dice, "group", missing=False)
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    return Asked(
        text=f"For each {column.label} that occurs among the {table.many} {words}, how many of "
        f"them are there? Give the {column.label} and the number.",
        gold=written(
            "SELECT t.{column}, COUNT(*) FROM {table} AS t WHERE {where} GROUP BY t.{column}",
            column=column.name,
            table=table.name,
            where=where,
        ),
    )


def groups_with_many(world: World, dice: Dice) -> Asked:
    """Groups of at least a certain size, with a number computed from each."""
    table, column = pick_column(world, dice, "group", missing=False)
    numbers = table.of_kind("number", "money")
    number = dice.pick(numbers) if len(numbers) > 1 or (numbers and dice.chance(0.5)) else None
    taken = (column.name, number.name) if number else (column.name,)
    where, words = conditions(world, dice, table, 1, without=taken)
    sizes = world.rows(
        written(
            "SELECT COUNT(*) FROM {table} AS t WHERE {where} GROUP BY t.{column}",
            table=table.name,
            where=where,
            column=column.name,
        )
    )
    least = max(2, dice.pick(sizes)[0]) if sizes else 2
    function, word = dice.pick(AGGREGATES)
    given = f"the number of these {table.many}"
    given = f"{given} and the {word} {number.label}" if number else f"and {given}"
    computed = f", {function}(t.{number.name})" if number else ""
    return Asked(
        text=f"Which values of {column.label} are shared by at least {least} of the {table.many} "
        f"{words}? Give the {column.label}, {given}, in this order.",
        gold=written(
            "SELECT t.{column}, COUNT(*){computed} FROM {table} AS t WHERE {where} "
            "GROUP BY t.{column} HAVING COUNT(*) >= {least}",
            column=column.name,
            computed=computed,
            table=table.name,
            where=where,
            least=least,
        ),
        grading={"columns": "exact"},
    )


def best_of_each_group(world: World, dice: Dice) -> Asked:
    """The rows with the largest value in each group."""
    tables = [t for t in world.schema.tables if t.of_kind("group", missing=False)]
    pairs = [(t, c) for t in tables for c in t.of_kind("number", "money", missing=False)]
    table, column = dice.pick(pairs)
    group = dice.pick(table.of_kind("group", missing=False))
    shown = distinct([group, table.columns[0], table.title, column])
    return Asked(
        text=f"For each {group.label}, which {table.many} have the highest {column.label}? Give "
        f"the {label_list(shown)}; if several share the highest, give them all.",
        gold=written(
            "SELECT {outer} FROM (SELECT t.*, RANK() OVER (PARTITION BY t.{group} "
            "ORDER BY t.{column} DESC) AS place FROM {table} AS t) AS r WHERE r.place = 1",
            outer=column_list(shown, "r"),
            group=group.name,
            column=column.name,
            table=table.name,
        ),
    )


def count_by_year(world: World, dice: Dice) -> Asked:
    """How many rows there are of each year."""
    table, column = pick_column(world, dice, "date")
    where, words = conditions(world, dice, table, 1, without=(column.name,))
    known = f" AND t.{column.name} IS NOT NULL" if column.missing else ""
    return Asked(
        text=f"How many {table.many} {words} are there for each year of the {column.label}"
        + (" (leave out those without)" if known else "")
        + "? Give the year, four digits, and the number.",
        gold=written(
            "SELECT strftime('%Y', t.{column}), COUNT(*) FROM {table} AS t WHERE {where}{known} "
            "GROUP BY 1",
            column=column.name,
            table=table.name,
            where=where,
            known=known,
        ),
        grading={"text_numbers": True},
    )
