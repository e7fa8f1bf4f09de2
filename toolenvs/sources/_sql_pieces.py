"""What questions about generated databases are put together from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from toolenvs.sources._sql_schema import Column, Dice, Kind, Link, Table
from toolenvs.sources._sql_world import World

AGGREGATES = (
    ("AVG", "average"),
    ("MAX", "largest"),
    ("MIN", "smallest"),
    ("SUM", "total"),
)
"""Functions of SQL, and what questions call them."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its gold.

    Attributes:
        text: the question.
        gold: the query, or the statement that makes the change.
        grading: settings of ``SqlPolicy``.
        changes: the gold changes the database.
        rows: how many rows the question says that there are; 0: it does not.
    """

    text: str
    gold: str
    grading: Mapping[str, Any] = {}
    changes: bool = False
    rows: int = 0


Maker = Callable[[World, Dice], Asked]


def conditions(
    world: World,
    dice: Dice,
    table: Table,
    n: int,
    *,
    without: Collection[str] = (),
    alias: str = "t",
) -> tuple[str, str]:
    """``n`` conditions (1 or 2) joined by AND, in SQL and in words."""
    first = world.condition(dice, table, without=without)
    if n == 1:
        return first.on(alias), first.words
    second = world.condition(dice, table, without=(*without, first.column))
    return f"{first.on(alias)} AND {second.on(alias)}", f"{first.words} and {second.words}"


def pick_column(
    world: World, dice: Dice, *kinds: Kind, missing: bool | None = None
) -> tuple[Table, Column]:
    """A table and one of its columns of these kinds."""
    columns = [(t, c) for t in world.schema.tables for c in t.of_kind(*kinds, missing=missing)]
    found: tuple[Table, Column] = dice.pick(columns)
    return found


def numbered_link(world: World, dice: Dice) -> Link:
    """A link whose children have numbers."""
    links = [link for link in world.schema.links if link.child.of_kind("number", "money")]
    found: Link = dice.pick(links)
    return found


def bridge(world: World, dice: Dice) -> tuple[Link, Link]:
    """Two links of one child table."""
    links = world.schema.links
    pairs = [(a, b) for a in links for b in links if a.child == b.child and a.key != b.key]
    found: tuple[Link, Link] = dice.pick(pairs)
    return found


def link_names(link: Link) -> dict[str, str]:
    return {"child": link.child.name, "key": link.key.name, "parent": link.parent.name}


def distinct(columns: list[Column]) -> list[Column]:
    return list(dict.fromkeys(columns))


def column_list(columns: list[Column], alias: str) -> str:
    return ", ".join(f"{alias}.{column.name}" for column in columns)


def label_list(columns: list[Column]) -> str:
    *most, last = [column.label for column in columns]
    return f"{', '.join(most)} and {last}" if most else last
