"""Queries that nearly are another: one slip of the pen each, as agents make them.

A question is asked only where each of these returns something else than its gold, on the database
or on one of its instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Slip = Callable[[Any], object]
"""Changes a node of a syntax tree, in place."""


def near_misses(sql: str) -> Iterator[str]:
    """Yield the query with one slip each.

    An equal sign more or less, a condition of two forgotten, or DISTINCT, an inner join for an
    outer one, the largest value for the average.

    Args:
        sql: a query for SQLite.
    """
    import sqlglot

    tree = sqlglot.parse_one(sql, read="sqlite")
    for number, node in enumerate(tree.walk()):
        for slip in _slips(node):
            copy = tree.copy()
            slip(next(twin for place, twin in enumerate(copy.walk()) if place == number))
            yield copy.sql(dialect="sqlite")


def _slips(node: Any) -> Iterator[Slip]:
    from sqlglot import exp

    signs = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
    # An average is hardly ever met exactly, so there the sign does not matter.
    if type(node) in signs and not isinstance(node.expression, exp.Subquery):
        other = signs[type(node)]
        yield lambda n: n.replace(other(this=n.this, expression=n.expression))
    elif isinstance(node, exp.And):
        # A condition that only leaves NULL out may be needless.
        if not isinstance(node.this, exp.Not):
            yield lambda n: n.replace(n.expression)
        if not isinstance(node.expression, exp.Not):
            yield lambda n: n.replace(n.this)
    elif isinstance(node, exp.Select) and node.args.get("distinct"):
        yield lambda n: n.set("distinct", None)
    elif isinstance(node, exp.Join) and node.side:
        yield lambda n: n.set("side", None)
    elif isinstance(node, exp.Avg):
        yield lambda n: n.replace(exp.Max(this=n.this))
