"""Where the columns of a query's result come from: from tables, or from the query's own text.

An answer that is written out in a query (``SELECT 'Lion' FROM animal``) is no answer to what was
asked. Hence each column is followed through subqueries, CTEs, joins and set operations to the
tables that it depends on. It does if a table goes into its value, be it by a condition (``CASE WHEN
pay > 3 THEN 'high' END``) or a number of rows (``count(*)``), in one part of a UNION at least; or
if a table decides which of several written values there are, by a condition that compares the two
or by ORDER BY with LIMIT. A part of a UNION that holds written values only is an answer written out
all the same. What cannot be followed is taken to depend: a right answer must not be refused.

This reads, it does not run: a query that uses a table for show (``CASE WHEN id > 0 THEN 'Lion'
END``) passes. Only another content of the tables tells that one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql_functions import (
    counts_rows,
    gives_rows,
    is_catalogue,
    literal_of,
    measured,
    parts,
    ranked_by,
    takes_first,
)
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
        rows = Rows((Column(None, OF_TABLE),), counted=True)
    for operation, seen in reversed(steps):
        rows = _combined(rows, _query(operation.expression, seen, outer), operation)
    if len(rows.columns) > _MOST_COLUMNS:
        raise TangledError("the query has too many columns")
    return rows


def _combined(left: Rows, right: Rows, operation: Any) -> Rows:
    """The rows of a UNION, INTERSECT or EXCEPT."""
    from sqlglot import exp

    if isinstance(operation, exp.Except):  # the rows are the left's
        rows = left if right.fixed else left.chosen()
    else:
        rows = left.common(right) if isinstance(operation, exp.Intersect) else left.above(right)
    limited = operation.args.get("order") and operation.args.get("limit")
    decides = limited and any(column.origin.partly for column in rows.columns)
    return rows.chosen() if decides else rows


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
            columns.append(Column(_name_of(expression), _origin(expression, scope)))
        if len(columns) > _MOST_COLUMNS:
            raise TangledError("the query has too many columns")
    rows = Rows(tuple(columns), scope.counted)
    return _chosen(rows, tree, scope)


def _name_of(expression: Any) -> str:
    """What a column of a result is called, ``""`` where the database chooses the name."""
    from sqlglot import exp

    if isinstance(expression, exp.Star | exp.Func):  # ``count(*)`` would be called ``*``
        return ""
    return str(expression.alias_or_name.lower())


def _starred(star: Any, scope: Scope) -> list[Column]:
    """The columns that ``*`` or ``t.*`` stands for."""
    from sqlglot import exp

    table = star.table.lower() if isinstance(star, exp.Column) else ""
    named = [source for source in scope.sources if table in ("", source.name)]
    columns = [column for source in named for column in source.listed]
    if not table and (scope.natural or scope.shared):  # which of them are one is not known
        return [Column(None, in_turn(column.origin for column in columns))]
    return columns


def _chosen(rows: Rows, tree: Any, scope: Scope) -> Rows:
    """The rows that are left where what a table holds decides which there are."""
    clauses = [_part(tree, "where"), _part(tree, "having")]
    clauses += [join.args.get("on") for join in _part_list(tree, "joins")]
    origins = [_origin(clause, scope) for clause in clauses if clause is not None]
    origins += scope.compared
    order = _part(tree, "order") if _part(tree, "limit") is not None else None
    ordered = order is not None and _origin(order, scope).partly
    picks = ordered or any(origin.partly and origin.several for origin in origins)
    if picks or (scope.natural and scope.counted):
        return rows.chosen()
    return rows.chosen(picks=False) if any(origin.partly for origin in origins) else rows


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
    origin = msgspec.structs.replace(origin, several=True)
    function = getattr(node.this, "name", "").lower() if node.this is not None else ""
    names = {*_OF_FUNCTIONS, name, function, *(c.lower() for c in node.alias_column_names)}
    columns = dict.fromkeys(names - {""}, origin)
    return Source(name, columns, None, counted=origin.depends, listed=_any_number(origin))


def _any_number(origin: Origin) -> tuple[Column, ...]:
    return (Column(None, origin),)


def _of_rows(name: str, rows: Rows) -> Source:
    columns: dict[str, Origin] = {}
    others: Origin | None = None
    for column in rows.columns:
        if column.name is None:
            others = column.origin if others is None else others.beside(column.origin)
        elif column.name:
            columns.setdefault(column.name, column.origin)
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
        elif isinstance(node, exp.Window) and (order := ranked_by(node)) is not None:
            waiting += order
        elif isinstance(node, exp.Window | exp.Filter):
            waiting.append(node.this)  # the rows that are looked at are no part of the value
        elif isinstance(node, exp.DataType):
            continue
        elif takes_first(node):
            found |= in_turn(_origin(part, scope) for part in parts(node))
        else:
            found |= _alone(node, scope)
            waiting += parts(node)
    return found


def _alone(node: Any, scope: Scope) -> Origin:
    """What a node is made of, besides the parts below it."""
    if scope.counted and counts_rows(node):
        return OF_TABLE
    queries = measured(node)
    if any(_query(query, scope.ctes, scope).counted for query in queries):
        return OF_TABLE
    literal = literal_of(node)
    return Origin(literals=frozenset(filter(None, (literal,))), several=gives_rows(node))
