"""Near misses of a gold query: queries that are wrong in one small way.

What a model gets wrong is mostly small: ``>`` for ``>=``, a forgotten DISTINCT or condition, MIN
for MAX, an outer join for an inner one. Databases on which all of these differ from the gold are
good judges; ``sql_neighbours`` makes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import parse

Change = Callable[[Any], None]
"""Changes a node of a tree in place."""


def near_misses(
    gold: str,
    *,
    engine: Engine = "sqlite",
    columns: Sequence[tuple[str, ...]] = (),
    seed: int = 0,
    limit: int = 120,
) -> list[str]:
    """Queries that differ from ``gold`` in one place, each once.

    Changed are comparison operators, numbers by one, conditions (left out, AND for OR), patterns,
    DISTINCT, aggregates, kinds of joins and set operations, keys and directions of an order, groups
    and LIMITs; and, with ``columns``, names of columns. Some may mean the same as the gold; no
    database can tell those apart.

    Args:
        gold: one query.
        engine: whose dialect it is written in.
        columns: the names of each table's columns; a column is replaced by its neighbours there.
        seed: which are kept where there are more than ``limit``.
        limit: how many at most.

    Returns:
        The queries, in the order of the places changed; none if ``gold`` cannot be parsed.
    """
    tree = parse(gold, engine)
    if tree is None:
        return []
    from sqlglot import exp

    found: dict[str, None] = {}
    for place, node in enumerate(tree.walk()):
        for change in _changes(node, columns):
            holder = exp.Paren(this=tree.copy())  # so that the outermost node can be replaced too
            change(list(holder.this.walk())[place])
            found[holder.this.sql(dialect=engine)] = None
    found.pop(tree.sql(dialect=engine), None)
    mutants = list(found)
    if len(mutants) > limit:
        kept = set(random.Random(seed).sample(range(len(mutants)), limit))  # noqa: S311 - no secret
        mutants = [mutant for place, mutant in enumerate(mutants) if place in kept]
    return mutants


def _changes(node: Any, columns: Sequence[tuple[str, ...]]) -> Iterator[Change]:
    """Every small change of one node."""
    from sqlglot import exp

    yield from _operator_changes(node)
    yield from _aggregate_changes(node)
    if isinstance(node, exp.Literal):
        yield from _literal_changes(node)
    elif isinstance(node, exp.Select):
        yield from _select_changes(node)
    elif isinstance(node, exp.SetOperation):
        yield from _set_changes(node)
    elif isinstance(node, exp.Join):
        yield from _join_changes(node)
    elif isinstance(node, exp.Column):
        yield from _column_changes(node, columns)
    else:
        yield from _condition_changes(node)


def _condition_changes(node: Any) -> Iterator[Change]:
    """Conditions, and clauses that can be left out."""
    from sqlglot import exp

    if isinstance(node, exp.And | exp.Or):
        yield _renewed(exp.Or if isinstance(node, exp.And) else exp.And)
        yield lambda n: n.replace(n.this)
        yield lambda n: n.replace(n.expression)
    elif isinstance(node, exp.Not):
        yield lambda n: n.replace(n.this)
    elif isinstance(node, exp.In | exp.Exists | exp.Between | exp.Like):
        if not isinstance(node.parent, exp.Not):
            yield lambda n: n.replace(exp.not_(n.copy()))
    elif isinstance(node, exp.Where | exp.Having | exp.Order | exp.Limit):
        yield lambda n: n.pop()
    elif isinstance(node, exp.Ordered):
        yield _turned


def _turned(node: Any) -> None:
    node.set("desc", not node.args.get("desc"))
    node.set("nulls_first", not node.args.get("nulls_first"))


def _operator_changes(node: Any) -> Iterator[Change]:
    from sqlglot import exp

    others = {
        exp.GT: (exp.GTE, exp.LT),
        exp.GTE: (exp.GT, exp.LTE),
        exp.LT: (exp.LTE, exp.GT),
        exp.LTE: (exp.LT, exp.GTE),
        exp.EQ: (exp.NEQ, exp.GTE, exp.LTE),
        exp.NEQ: (exp.EQ,),
        exp.Add: (exp.Sub,),
        exp.Sub: (exp.Add,),
    }
    joins = isinstance(node.parent, exp.Join)
    for other in others.get(type(node), ()) if not joins else ():
        yield _renewed(other)


def _renewed(kind: Any) -> Change:
    """Make the node one of another kind with the same operands."""
    return lambda n: n.replace(kind(this=n.this, expression=n.expression))


def _aggregate_changes(node: Any) -> Iterator[Change]:
    from sqlglot import exp

    others = {
        exp.Min: (exp.Max, exp.Avg),
        exp.Max: (exp.Min, exp.Sum),
        exp.Sum: (exp.Avg, exp.Count),
        exp.Avg: (exp.Sum, exp.Max),
    }
    for other in others.get(type(node), ()):
        yield _summarised(other)
    if isinstance(node, exp.Count):
        if isinstance(node.this, exp.Distinct):
            yield lambda n: n.set("this", n.this.expressions[0])
        elif not isinstance(node.this, exp.Star):
            yield lambda n: n.set("this", exp.Distinct(expressions=[n.this.copy()]))
            yield lambda n: n.set("this", exp.Star())


def _summarised(kind: Any) -> Change:
    return lambda n: n.replace(kind(this=n.this))


def _literal_changes(node: Any) -> Iterator[Change]:
    from sqlglot import exp

    if isinstance(node.parent, exp.Ordered | exp.Group):  # the place of a column
        return
    if node.is_string:
        yield from _pattern_changes(node)
        return
    try:
        number = int(node.name)
    except ValueError:
        return
    for step in (1, -1):
        if number + step > 0 or not isinstance(node.parent, exp.Limit | exp.Offset):
            yield _rewritten(exp.Literal.number(number + step))


def _rewritten(literal: Any) -> Change:
    return lambda n: n.replace(literal.copy())


def _pattern_changes(node: Any) -> Iterator[Change]:
    """A LIKE that is bound at one more end, or at one less."""
    from sqlglot import exp

    if not isinstance(node.parent, exp.Like):
        return
    text = node.name
    for other in (text.removeprefix("%"), text.removesuffix("%"), f"%{text}", f"{text}%"):
        if other != text and "%%" not in other:
            yield _rewritten(exp.Literal.string(other))


def _select_changes(node: Any) -> Iterator[Change]:
    from sqlglot import exp

    if node.args.get("distinct"):
        yield lambda n: n.set("distinct", None)
    elif not _is_distinct(node):
        yield lambda n: n.set("distinct", exp.Distinct())
    group = node.args.get("group")
    for number in range(len(group.expressions) if group is not None else 0):
        yield _without_group(number)
    order = node.args.get("order")
    for number in range(len(order.expressions) if order is not None else 0):
        if len(order.expressions) > 1:
            yield _without_key(number)


def _is_distinct(node: Any) -> bool:
    """Tell whether doubles among a query's rows cannot be, or cannot matter, as far as is plain."""
    from sqlglot import exp

    around = node.parent.parent if isinstance(node.parent, exp.Subquery) else node.parent
    if isinstance(node.parent, exp.SetOperation) and node.parent.args.get("distinct"):
        return True
    if isinstance(around, exp.In | exp.Exists) and node.args.get("limit") is None:
        return True
    shown = [column.unalias() for column in node.expressions]
    group = node.args.get("group")
    if group is not None:
        return all(key in shown for key in group.expressions)
    return all(isinstance(column, exp.AggFunc) for column in shown)


def _without_group(number: int) -> Change:
    def change(node: Any) -> None:
        keys = node.args["group"].expressions
        keys.pop(number)
        node.args["group"].set("expressions", keys)
        if not keys:
            node.set("group", None)

    return change


def _without_key(number: int) -> Change:
    def change(node: Any) -> None:
        node.args["order"].expressions.pop(number)

    return change


def _set_changes(node: Any) -> Iterator[Change]:
    from sqlglot import exp

    if isinstance(node, exp.Union):
        yield lambda n: n.set("distinct", not n.args.get("distinct"))
    for kind in (exp.Union, exp.Intersect, exp.Except):
        if not isinstance(node, kind):
            yield _combined(kind)


def _combined(kind: Any) -> Change:
    """Make a set operation another one of the same queries."""
    return lambda n: n.replace(kind(**{**n.args, "distinct": True}))


def _join_changes(node: Any) -> Iterator[Change]:
    if node.args.get("side"):
        yield lambda n: n.set("side", None)
    elif node.args.get("on") is not None or node.args.get("using"):
        yield lambda n: n.set("side", "LEFT")


def _column_changes(node: Any, columns: Sequence[tuple[str, ...]]) -> Iterator[Change]:
    """The column before and the column after it in its table."""
    from sqlglot import exp

    if node.find_ancestor(exp.Join) and node.find_ancestor(exp.EQ):  # an odd join is no near miss
        return
    name = node.name.lower()
    for table in columns:
        names = [column.lower() for column in table]
        if name in names:
            place = names.index(name)
            for other in table[max(0, place - 1) : place] + table[place + 1 : place + 2]:
                yield _called(other)


def _called(name: str) -> Change:
    from sqlglot import exp

    return lambda n: n.set("this", exp.to_identifier(name))
