"""Where the columns of a query's result come from: from tables, or from the query's own text.

An answer that is written out in a query (``SELECT 'Lion' FROM animal``) is no answer to what was
asked. Hence each column is followed through subqueries, CTEs, joins and set operations to the
tables that it depends on. A condition counts (``CASE WHEN pay > 3 THEN 'high' END``), and so does a
number of rows (``count(*)``). What cannot be followed is taken to depend on a table.

This reads, it does not run: a query that uses a table for show (``CASE WHEN id > 0 THEN 'Lion'
END``) passes. Only another content of the tables tells that one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.grading.sql_functions import counts_rows, is_catalogue, literal_of, parts
from toolenvs.grading.sql_origin import (
    OF_NOTHING,
    OF_TABLE,
    Column,
    Origin,
    Rows,
    Scope,
    Source,
    in_turn,
    made_of,
)

_MOST_COLUMNS = 2_000  # as in SQLite; ``*`` of CTEs could double them without end
_VALUES_COLUMN = "column"  # VALUES call their columns column1, column2 ...
_OF_FUNCTIONS = (
    *("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"),
    *("ordinality", "unnest"),
)


class TangledError(ValueError):
    """A text that would take too long to follow."""


def follow(tree: Any) -> Rows:
    """Follow the columns of a parsed query.

    Raises:
        TangledError: There are too many columns, or it nests too deeply.
    """
    try:
        return _query(tree, {}, None)
    except RecursionError:
        raise TangledError("the query nests too deeply") from None


def literals_of(tree: Any) -> frozenset[str]:
    """All values that are written in a query."""
    return frozenset(filter(None, map(literal_of, tree.walk())))


def _part(tree: Any, name: str) -> Any:
    """A clause, which some releases of sqlglot call by another name (``from_``)."""
    return tree.args.get(f"{name}_") or tree.args.get(name)


# -- queries --------------------------------------------------------------------------------------


def _query(tree: Any, ctes: Mapping[str, Rows], outer: Scope | None) -> Rows:
    from sqlglot import exp

    steps: list[Any] = []  # a long chain of UNIONs must not nest calls
    while isinstance(tree, exp.Subquery | exp.SetOperation | exp.Paren):
        ctes = _with_ctes(tree, ctes, outer)
        if isinstance(tree, exp.SetOperation):
            steps.append((tree, ctes))
        tree = tree.this
    ctes = _with_ctes(tree, ctes, outer)
    if isinstance(tree, exp.Select):
        rows = _select(tree, ctes, outer)
    elif isinstance(tree, exp.Values):
        rows = _values(tree, ctes, outer)
    else:
        rows = Rows((Column("*", OF_TABLE),), counted=True)
    for operation, seen in reversed(steps):
        right = _query(operation.expression, seen, outer)
        if isinstance(operation, exp.Except):  # the rows are the left's
            rows = rows.chosen() if right.whole().partly else rows
        else:
            rows = _combined(rows, right, intersects=isinstance(operation, exp.Intersect))
    if len(rows.columns) > _MOST_COLUMNS:
        raise TangledError("the query has too many columns")
    return rows


def _combined(left: Rows, right: Rows, *, intersects: bool) -> Rows:
    """The rows of a UNION, or of an INTERSECT."""
    join = Origin.__or__ if intersects else Origin.beside
    if len(left.columns) != len(right.columns):  # a ``*``
        whole = Column("*", join(left.whole(), right.whole()))
        return Rows((whole,), left.counted or right.counted)
    columns = tuple(
        Column(one.name, join(one.origin, other.origin))
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    return Rows(columns, left.counted or right.counted)


def _with_ctes(tree: Any, ctes: Mapping[str, Rows], outer: Scope | None) -> Mapping[str, Rows]:
    """The CTEs that a query sees, its own among them."""
    from sqlglot import exp

    clause = _part(tree, "with")
    if clause is None:
        return ctes
    known = dict(ctes)
    for cte in clause.expressions:
        name = cte.alias.lower()
        if isinstance(cte.this, exp.SetOperation) and clause.args.get("recursive"):
            known[name] = _renamed(_query(cte.this.this, known, outer), cte)
        known[name] = _renamed(_query(cte.this, known, outer), cte)
    return known


def _renamed(rows: Rows, aliased: Any) -> Rows:
    """The rows under the column names that an alias gives: ``AS v (a, b)``."""
    names = [name.lower() for name in aliased.alias_column_names]
    columns = [
        Column(name or column.name, column.origin)
        for name, column in itertools.zip_longest(names, rows.columns, fillvalue=None)
        if column is not None
    ]
    if len(names) > len(rows.columns):  # of a ``*``: they are what it is
        whole = rows.whole()
        columns = [Column(name, whole) for name in names]
    return Rows(tuple(columns), rows.counted)


def _values(tree: Any, ctes: Mapping[str, Rows], outer: Scope | None) -> Rows:
    scope = Scope(outer, ctes)
    rows = [getattr(row, "expressions", None) or [row] for row in tree.expressions]
    columns: list[Column] = []
    for number in range(max(map(len, rows), default=0)):
        origins = [_origin(row[number], scope) for row in rows if number < len(row)]
        columns.append(Column(f"{_VALUES_COLUMN}{number + 1}", in_turn(origins)))
    return Rows(tuple(columns), counted=False)


def _select(tree: Any, ctes: Mapping[str, Rows], outer: Scope | None) -> Rows:
    from sqlglot import exp

    scope = Scope(outer, ctes)
    start = _part(tree, "from")
    for node in (start.this if start is not None else None, *_part_list(tree, "laterals")):
        _add_sources(node, scope)
    _add_joins(tree, scope)
    columns: list[Column] = []
    for expression in tree.expressions:
        if expression.is_star and not expression.find(exp.AggFunc):
            columns += _starred(expression, scope)
        else:
            columns.append(Column(expression.alias_or_name.lower(), _origin(expression, scope)))
        if len(columns) > _MOST_COLUMNS:
            raise TangledError("the query has too many columns")
    rows = Rows(tuple(columns), scope.counted)
    return rows.chosen() if _chooses(tree, scope) else rows


def _starred(star: Any, scope: Scope) -> list[Column]:
    """The columns that ``*`` or ``t.*`` stands for."""
    from sqlglot import exp

    table = star.table.lower() if isinstance(star, exp.Column) else ""
    named = [source for source in scope.sources if table in ("", source.name)]
    columns = [column for source in named for column in source.listed]
    if not table and (scope.natural or scope.shared):  # which of them are one is not known
        return [Column("*", in_turn(column.origin for column in columns))]
    return columns


def _chooses(tree: Any, scope: Scope) -> bool:
    """Tell whether a condition on a table decides which rows there are."""
    clauses = [_part(tree, "where"), _part(tree, "having")]
    clauses += [join.args.get("on") for join in _part_list(tree, "joins")]
    return any(_origin(clause, scope).partly for clause in clauses if clause is not None)


# -- sources --------------------------------------------------------------------------------------


def _part_list(tree: Any, name: str) -> Sequence[Any]:
    return tree.args.get(name) or ()


def _add_joins(tree: Any, scope: Scope) -> None:
    for join in _part_list(tree, "joins"):
        joined = len(scope.sources)
        _add_sources(join.this, scope)
        side = str(join.args.get("side") or "").upper()
        natural = str(join.args.get("method") or "").upper() == "NATURAL"
        scope.natural = scope.natural or (natural and side != "LEFT")
        for name in _part_list(join, "using"):
            scope.share(name.name.lower(), joined=joined, side=side)


def _add_sources(node: Any, scope: Scope) -> None:
    """Add what a FROM or JOIN names, with what is joined to it inside brackets."""
    from sqlglot import exp

    if node is None:
        return
    inner = node.this
    if (
        isinstance(node, exp.Subquery | exp.Paren)
        and isinstance(inner, exp.Table | exp.Subquery | exp.Paren)
        and not node.alias
    ):
        _add_sources(inner, scope)
    else:
        scope.sources.append(_source(node, scope))
    _add_joins(node, scope)


def _source(node: Any, scope: Scope) -> Source:
    from sqlglot import exp

    name = node.alias_or_name.lower()
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        rows = scope.ctes.get(node.name.lower()) if not node.db else None
        if rows is None and is_catalogue(node):
            return Source(name, {}, OF_NOTHING, counted=False, listed=_any_number(OF_NOTHING))
        if rows is None:
            return Source(name, {}, OF_TABLE, counted=True, listed=_any_number(OF_TABLE))
        return _of_rows(name, _renamed(rows, node))
    if isinstance(node, exp.Values):
        return _of_rows(name, _renamed(_values(node, scope.ctes, scope), node))
    query = node.this if isinstance(node, exp.Subquery | exp.Lateral) else None
    if isinstance(query, exp.Subquery | exp.Query | exp.Values):
        return _of_rows(name, _renamed(_query(node, scope.ctes, scope), node))
    origin = made_of(_origin(part, scope) for part in node.iter_expressions())
    function = getattr(node.this, "name", "").lower() if node.this is not None else ""
    names = {*_OF_FUNCTIONS, name, function, *(c.lower() for c in node.alias_column_names)}
    columns = dict.fromkeys(names - {""}, origin)
    return Source(name, columns, None, counted=origin.depends, listed=_any_number(origin))


def _any_number(origin: Origin) -> tuple[Column, ...]:
    return (Column("*", origin),)


def _of_rows(name: str, rows: Rows) -> Source:
    columns: dict[str, Origin] = {}
    others: Origin | None = None
    for column in rows.columns:
        if column.name == "*":
            others = column.origin if others is None else others.beside(column.origin)
        elif column.name:
            known = columns.get(column.name, column.origin)
            columns[column.name] = known.beside(column.origin)
    return Source(name, columns, others, rows.counted, listed=rows.columns)


# -- expressions ----------------------------------------------------------------------------------


def _origin(expression: Any, scope: Scope) -> Origin:
    """What a value is made of."""
    from sqlglot import exp

    found = OF_NOTHING
    waiting = [expression]  # a long chain of operators must not nest calls
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            found |= scope.column(node.name.lower(), node.table.lower())
        elif isinstance(node, exp.Exists):
            rows = _query(node.this, scope.ctes, scope)
            found |= made_of(column.origin for column in rows.columns)
            found |= OF_TABLE if rows.counted else OF_NOTHING
        elif isinstance(node, exp.Query):  # in the place of one value, or behind IN
            found |= made_of(c.origin for c in _query(node, scope.ctes, scope).columns)
        elif isinstance(node, exp.Window | exp.Filter):
            waiting.append(node.this)  # the rows that are looked at are no part of the value
        elif isinstance(node, exp.DataType):
            continue
        else:
            found |= OF_TABLE if scope.counted and counts_rows(node) else OF_NOTHING
            literal = literal_of(node)
            if literal:
                found |= Origin(literals=frozenset((literal,)))
            waiting += parts(node)
    return found
