"""Queries that nearly are another: one slip of the pen each, as agents make them.

A question is asked only where each of these returns something else than its gold, on the database
or on one of its instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def near_misses(sql: str) -> Iterator[str]:
    """Yield the query with one slip: an equal sign more or less, or without a condition, a
    DISTINCT, an outer join; or with another function.

    Args:
        sql: a query for SQLite.
    """
    import sqlglot

    tree = sqlglot.parse_one(sql, read="sqlite")
    for number in range(sum(1 for _ in tree.walk())):
        for slip in _SLIPS:
            copy = tree.copy()
            if slip(next(node for place, node in enumerate(copy.walk()) if place == number)):
                yield copy.sql(dialect="sqlite")


def _sign(node: Any) -> bool:
    from sqlglot import exp

    other = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}.get(type(node))
    if other is None or isinstance(node.expression, exp.Subquery):
        return False  # an average is hardly ever met exactly
    node.replace(other(this=node.this, expression=node.expression))
    return True


def _condition(node: Any, part: str) -> bool:
    """Drop one side of an AND, unless it only leaves NULL out."""
    from sqlglot import exp

    if not isinstance(node, exp.And) or isinstance(node.args[part], exp.Not):
        return False
    node.replace(node.args["expression" if part == "this" else "this"])
    return True


def _distinct(node: Any) -> bool:
    from sqlglot import exp

    if not isinstance(node, exp.Select) or not node.args.get("distinct"):
        return False
    node.set("distinct", None)
    return True


def _outer_join(node: Any) -> bool:
    from sqlglot import exp

    if not isinstance(node, exp.Join) or not node.side:
        return False
    node.set("side", None)
    return True


def _average(node: Any) -> bool:
    from sqlglot import exp

    if not isinstance(node, exp.Avg):
        return False
    node.replace(exp.Max(this=node.this))
    return True


_SLIPS: tuple[Callable[[Any], bool], ...] = (
    _sign,
    lambda node: _condition(node, "this"),
    lambda node: _condition(node, "expression"),
    _distinct,
    _outer_join,
    _average,
)
