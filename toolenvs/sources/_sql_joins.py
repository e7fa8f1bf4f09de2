"""Questions about several tables of a generated database; makers as in ``_sql_questions``."""

from __future__ import annotations

from toolenvs.sources._sql_pieces import (
    AGGREGATES,
    Asked,
    bridge,
    column_list,
    conditions,
    distinct,
    label_list,
    link_names,
    numbered_link,
)
from toolenvs.sources._sql_schema import Dice
from toolenvs.sources._sql_world import World, written


def children_of_some(world: World, dice: Dice) -> Asked:
    """Rows whose parent meets a condition."""
    link = dice.pick(world.schema.links)
    where, words = conditions(world, dice, link.parent, 1, alias="p")
    shown = distinct([link.child.columns[0], link.child.title])
    own = world.condition(dice, link.child)
    return Asked(
        text=f"Consider the {link.child.many} of {link.parent.many} {words}. Which of them are "
        f"{link.child.many} {own.words}? Give their {label_list(shown)} and the "
        f"{link.parent.title.label} of the {link.parent.one}.",
        gold=written(
            "SELECT {shown}, p.{title} FROM {child} AS c JOIN {parent} AS p ON p.id = c.{key} "
            "WHERE {where} AND {own}",
            shown=column_list(shown, "c"),
            title=link.parent.title.name,
            own=own.on("c"),
            where=where,
            **link_names(link),
        ),
    )


def linked(world: World, dice: Dice) -> Asked:
    """Rows that something links with rows that meet a condition, each once."""
    one, other = bridge(world, dice)
    where, words = conditions(world, dice, other.parent, 1, alias="b")
    shown = distinct([one.parent.columns[0], one.parent.title])
    return Asked(
        text=f"Which {one.parent.many} are linked, by at least one {one.child.one}, with "
        f"{other.parent.many} {words}? Give the {label_list(shown)} of each once.",
        gold=written(
            "SELECT DISTINCT {shown} FROM {parent} AS a JOIN {child} AS c ON c.{key} = a.id "
            "JOIN {other} AS b ON b.id = c.{other_key} WHERE {where}",
            shown=column_list(shown, "a"),
            other=other.parent.name,
            other_key=other.key.name,
            where=where,
            **link_names(one),
        ),
    )


def number_by_parent(world: World, dice: Dice) -> Asked:
    """A number computed from the children of each parent that has some."""
    link = numbered_link(world, dice)
    number = dice.pick(link.child.of_kind("number", "money"))
    function, word = dice.pick(AGGREGATES)
    where, words = conditions(world, dice, link.parent, 1, alias="p")
    shown = distinct([link.parent.columns[0], link.parent.title])
    return Asked(
        text=f"For each of the {link.parent.many} {words} that has {link.child.many}, what is the "
        f"{word} {number.label} of those {link.child.many}? Give the {label_list(shown)} of the "
        f"{link.parent.one} and the number.",
        gold=written(
            "SELECT {shown}, {function}(c.{number}) FROM {parent} AS p "
            "JOIN {child} AS c ON c.{key} = p.id WHERE {where} GROUP BY p.id",
            shown=column_list(shown, "p"),
            function=function,
            number=number.name,
            where=where,
            **link_names(link),
        ),
    )


def count_with_zeros(world: World, dice: Dice) -> Asked:
    """How many children each parent has, none included."""
    link = dice.pick(world.schema.links)
    where, words = conditions(world, dice, link.parent, 1, alias="p")
    own = world.condition(dice, link.child) if dice.chance(0.6) else None
    shown = distinct([link.parent.columns[0], link.parent.title])
    meant = f"{link.child.many} {own.words}" if own else link.child.many
    return Asked(
        text=f"How many {meant} are there for every one of the {link.parent.many} {words}? Give "
        f"the {label_list(shown)} of each {link.parent.one} and the number, which may be 0.",
        gold=written(
            "SELECT {shown}, COUNT(c.id) FROM {parent} AS p "
            "LEFT JOIN {child} AS c ON c.{key} = p.id {own} WHERE {where} GROUP BY p.id",
            shown=column_list(shown, "p"),
            own=f"AND {own.on('c')}" if own else "",
            where=where,
            **link_names(link),
        ),
    )


def most_children(world: World, dice: Dice) -> Asked:
    """The parents with the most children that meet a condition."""
    link = dice.pick(world.schema.links)
    own = world.condition(dice, link.child)
    shown = distinct([link.parent.columns[0], link.parent.title])
    return Asked(
        text=f"Which {link.parent.many} have the most {link.child.many} {own.words}? Give the "
        f"{label_list(shown)} and how many; if several have the most, give them all.",
        gold=written(
            "SELECT {shown}, COUNT(*) FROM {parent} AS p JOIN {child} AS c ON c.{key} = p.id "
            "WHERE {own} GROUP BY p.id HAVING COUNT(*) = (SELECT MAX(n) FROM (SELECT COUNT(*) AS n "
            "FROM {child} AS d WHERE {inner} AND d.{key} IS NOT NULL GROUP BY d.{key}) AS counted)",
            shown=column_list(shown, "p"),
            own=own.on("c"),
            inner=own.on("d"),
            **link_names(link),
        ),
    )


def childless(world: World, dice: Dice) -> Asked:
    """Parents without any child that meets a condition."""
    link = dice.pick(world.schema.links)
    own = world.condition(dice, link.child)
    where, words = conditions(world, dice, link.parent, 1, alias="p")
    shown = distinct([link.parent.columns[0], link.parent.title])
    return Asked(
        text=f"Which {link.parent.many} {words} have no {link.child.many} {own.words}? Give their "
        f"{label_list(shown)}.",
        gold=written(
            "SELECT {shown} FROM {parent} AS p WHERE {where} AND NOT EXISTS "
            "(SELECT 1 FROM {child} AS c WHERE c.{key} = p.id AND {own})",
            shown=column_list(shown, "p"),
            where=where,
            own=own.on("c"),
            **link_names(link),
        ),
    )


def both_kinds(world: World, dice: Dice) -> Asked:
    """Parents that have children of two kinds: an intersection, a difference or a union."""
    link = dice.pick(world.schema.links)
    one = world.condition(dice, link.child)
    other = world.condition(dice, link.child)
    operator, middle = dice.pick(
        [
            ("INTERSECT", "and also"),
            ("EXCEPT", "but have no"),
            ("UNION", "or have"),
        ]
    )
    part = "SELECT {shown} FROM {parent} AS p JOIN {child} AS c ON c.{key} = p.id WHERE {condition}"
    shown = distinct([link.parent.columns[0], link.parent.title])
    parts = [
        written(part, shown=column_list(shown, "p"), condition=c.on("c"), **link_names(link))
        for c in (one, other)
    ]
    return Asked(
        text=f"Which {link.parent.many} have {link.child.many} {one.words} {middle} "
        f"{link.child.many} {other.words}? Give the {label_list(shown)} of each once.",
        gold=f"{parts[0]} {operator} {parts[1]}",
    )
