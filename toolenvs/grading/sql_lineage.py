"""Where the columns of a query's result come from: from tables, or from the query's own text.

An answer that is written out in a query (``SELECT 'Lion' FROM animal``) is no answer to what was
asked. Hence each column is followed through subqueries, CTEs, joins and set operations to the
tables that it depends on. A condition counts (``CASE WHEN pay > 3 THEN 'high' END``), and so does a
number of rows (``count(*)``). What cannot be followed is taken to depend on a table.

This reads, it does not run: a query that uses a table for show (``CASE WHEN id > 0 THEN 'Lion'
END``) passes. Only another content of the tables tells that one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_MOST_COLUMNS = 2_000  # as in SQLite; ``*`` of CTEs could double them without end
_VALUES_COLUMN = "column"  # VALUES call their columns column1, column2 ...
_OF_FUNCTIONS = (
    *("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"),
    *("ordinality", "unnest"),
)


class TangledError(ValueError):
    """A text that would take too long to follow."""


class Origin(msgspec.Struct, frozen=True):
    """What a value or a column is made of.

    Attributes:
        depends: on a table, in all of its rows.
        partly: in some of its rows, as far as UNION and VALUES tell them apart.
        literals: the values written in the text that went into it.
    """

    depends: bool = False
    partly: bool = False
    literals: frozenset[str] = frozenset()

    def __or__(self, other: Origin) -> Origin:
        """What is made of both."""
        return Origin(
            self.depends or other.depends,
            self.partly or other.partly,
            self.literals | other.literals,
        )

    def beside(self, other: Origin) -> Origin:
        """What is the one in some rows and the other in others."""
        return Origin(
            self.depends and other.depends,
            self.partly or other.partly,
            self.literals | other.literals,
        )


_TABLE = Origin(depends=True, partly=True)
_NOTHING = Origin()
_NO_ROWS = Origin(depends=True)


class Column(msgspec.Struct, frozen=True):
    """A column of a result, its name in lower case; ``*`` stands for those of a table."""

    name: str
    origin: Origin


class Rows(msgspec.Struct, frozen=True):
    """The result of a query: its columns, and whether a table decides how many rows there are."""

    columns: tuple[Column, ...]
    counted: bool


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
    return frozenset(filter(None, map(_literal, tree.walk())))


class _Source(msgspec.Struct, frozen=True):
    """What a FROM names: a table, a result, or a function's rows.

    Attributes:
        name: by which columns refer to it, in lower case.
        columns: those that are known, by name.
        others: what any other column is, if it may have others.
        counted: a table decides how many rows there are.
    """

    name: str
    columns: Mapping[str, Origin]
    others: Origin | None
    counted: bool

    def find(self, name: str) -> Origin | None:
        """The column of that name, None if it has none."""
        return self.columns.get(name, self.others)

    def all(self) -> Iterator[Column]:
        """What ``*`` stands for."""
        yield from itertools.starmap(Column, self.columns.items())
        if self.others is not None:
            yield Column("*", self.others)


class _Scope:
    """The sources that the expressions of one query see, and those of the query around it."""

    def __init__(self, outer: _Scope | None, ctes: Mapping[str, Rows]) -> None:
        self.outer = outer
        self.ctes = ctes
        self.sources: list[_Source] = []
        self.shared: set[str] = set()  # columns of USING
        self.natural = False

    @property
    def counted(self) -> bool:
        return any(source.counted for source in self.sources)

    def column(self, name: str, table: str) -> Origin:
        """What a column is; what is unknown is taken to be a table's."""
        if table:
            found = [source for source in self.sources if source.name == table]
            if found:
                return found[0].find(name) or _TABLE
        else:
            known = [source.columns[name] for source in self.sources if name in source.columns]
            others = [s.others for s in self.sources if s.others is not None]
            if known and not (self.natural or name in self.shared):
                return known[0]
            if known or others:
                return _any((*known, *others))
        return self.outer.column(name, table) if self.outer is not None else _TABLE


def _any(origins: Iterable[Origin]) -> Origin:
    return functools.reduce(Origin.__or__, origins, _NOTHING)


def _all(origins: Iterable[Origin]) -> Origin:
    return functools.reduce(Origin.beside, origins, _NO_ROWS)


def _whole(rows: Rows) -> Origin:
    """What any column may be."""
    return _all(column.origin for column in rows.columns)


def _part(tree: Any, name: str) -> Any:
    """A clause, which some releases of sqlglot call by another name (``from_``)."""
    return tree.args.get(f"{name}_") or tree.args.get(name)


# -- queries --------------------------------------------------------------------------------------


def _query(tree: Any, ctes: Mapping[str, Rows], outer: _Scope | None) -> Rows:
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
        rows = Rows((Column("*", _TABLE),), counted=True)
    for operation, seen in reversed(steps):
        if not isinstance(operation, exp.Except):  # whose rows are the left's
            right = _query(operation.expression, seen, outer)
            rows = _combined(rows, right, intersects=isinstance(operation, exp.Intersect))
    if len(rows.columns) > _MOST_COLUMNS:
        raise TangledError("the query has too many columns")
    return rows


def _combined(left: Rows, right: Rows, *, intersects: bool) -> Rows:
    """The rows of a UNION, or of an INTERSECT."""
    join = Origin.__or__ if intersects else Origin.beside
    if len(left.columns) != len(right.columns):  # a ``*``
        whole = Column("*", join(_whole(left), _whole(right)))
        return Rows((whole,), left.counted or right.counted)
    columns = tuple(
        Column(one.name, join(one.origin, other.origin))
        for one, other in zip(left.columns, right.columns, strict=True)
    )
    return Rows(columns, left.counted or right.counted)


def _with_ctes(tree: Any, ctes: Mapping[str, Rows], outer: _Scope | None) -> Mapping[str, Rows]:
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
        whole = _whole(rows)
        columns = [Column(name, whole) for name in names]
    return Rows(tuple(columns), rows.counted)


def _values(tree: Any, ctes: Mapping[str, Rows], outer: _Scope | None) -> Rows:
    scope = _Scope(outer, ctes)
    rows = [getattr(row, "expressions", None) or [row] for row in tree.expressions]
    columns: list[Column] = []
    for number in range(max(map(len, rows), default=0)):
        origins = [_origin(row[number], scope) for row in rows if number < len(row)]
        columns.append(Column(f"{_VALUES_COLUMN}{number + 1}", _all(origins)))
    return Rows(tuple(columns), counted=False)


def _select(tree: Any, ctes: Mapping[str, Rows], outer: _Scope | None) -> Rows:
    from sqlglot import exp

    scope = _Scope(outer, ctes)
    start = _part(tree, "from")
    for node in (start.this if start is not None else None, *_part_list(tree, "laterals")):
        _add_sources(node, scope)
    _add_joins(tree, scope)
    columns: list[Column] = []
    for expression in tree.expressions:
        if expression.is_star and not expression.find(exp.AggFunc):
            table = expression.table.lower() if isinstance(expression, exp.Column) else ""
            for source in scope.sources:
                if table in ("", source.name):
                    columns += source.all()
        else:
            columns.append(Column(expression.alias_or_name.lower(), _origin(expression, scope)))
        if len(columns) > _MOST_COLUMNS:
            raise TangledError("the query has too many columns")
    return Rows(tuple(columns), scope.counted)


# -- sources --------------------------------------------------------------------------------------


def _part_list(tree: Any, name: str) -> Sequence[Any]:
    return tree.args.get(name) or ()


def _add_joins(tree: Any, scope: _Scope) -> None:
    for join in _part_list(tree, "joins"):
        _add_sources(join.this, scope)
        scope.natural = scope.natural or str(join.args.get("method") or "").upper() == "NATURAL"
        scope.shared.update(name.name.lower() for name in _part_list(join, "using"))


def _add_sources(node: Any, scope: _Scope) -> None:
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


def _source(node: Any, scope: _Scope) -> _Source:
    from sqlglot import exp

    name = node.alias_or_name.lower()
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        rows = scope.ctes.get(node.name.lower()) if not node.db else None
        if rows is None:
            return _Source(name, {}, _TABLE, counted=True)
        return _of_rows(name, _renamed(rows, node))
    if isinstance(node, exp.Values):
        return _of_rows(name, _renamed(_values(node, scope.ctes, scope), node))
    query = node.this if isinstance(node, exp.Subquery | exp.Lateral) else None
    if isinstance(query, exp.Subquery | exp.Query | exp.Values):
        return _of_rows(name, _renamed(_query(node, scope.ctes, scope), node))
    origin = _any(_origin(part, scope) for part in node.iter_expressions())
    function = getattr(node.this, "name", "").lower() if node.this is not None else ""
    names = {*_OF_FUNCTIONS, name, function, *(c.lower() for c in node.alias_column_names)}
    return _Source(name, dict.fromkeys(names - {""}, origin), None, counted=origin.depends)


def _of_rows(name: str, rows: Rows) -> _Source:
    columns: dict[str, Origin] = {}
    others: Origin | None = None
    for column in rows.columns:
        if column.name == "*":
            others = column.origin if others is None else others.beside(column.origin)
        else:
            name_or_place = column.name or f"?{len(columns)}"
            known = columns.get(name_or_place, _NO_ROWS)
            columns[name_or_place] = known.beside(column.origin)
    return _Source(name, columns, others, rows.counted)


# -- expressions ----------------------------------------------------------------------------------


def _origin(expression: Any, scope: _Scope) -> Origin:
    """What a value is made of."""
    from sqlglot import exp

    found = _NOTHING
    waiting = [expression]  # a long chain of operators must not nest calls
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            found |= scope.column(node.name.lower(), node.table.lower())
        elif isinstance(node, exp.Exists):
            rows = _query(node.this, scope.ctes, scope)
            found |= _any(column.origin for column in rows.columns)
            found |= _TABLE if rows.counted else _NOTHING
        elif isinstance(node, exp.Query):  # in the place of one value, or behind IN
            found |= _any(c.origin for c in _query(node, scope.ctes, scope).columns)
        elif isinstance(node, exp.Window | exp.Filter):
            waiting.append(node.this)  # the rows that are looked at are no part of the value
        elif isinstance(node, exp.DataType):
            continue
        else:
            found |= _TABLE if scope.counted and _counts_rows(node) else _NOTHING
            literal = _literal(node)
            if literal:
                found |= Origin(literals=frozenset((literal,)))
            waiting += node.iter_expressions()
    return found


def _counts_rows(node: Any) -> bool:
    """Tell whether a function's value depends on how many rows there are, of whatever content."""
    from sqlglot import exp

    if type(node).__name__ in (
        "RowNumber",
        "Rank",
        "DenseRank",
        "PercentRank",
        "CumeDist",
        "Ntile",
    ):
        return True
    one_of_its_values = (exp.Max, exp.Min, exp.Avg, exp.AnyValue, exp.First, exp.Last)
    picked = ("FirstValue", "LastValue", "NthValue", "Lag", "Lead", "Median")
    if isinstance(node, one_of_its_values) or type(node).__name__ in picked:
        return False
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in ("total", "rank", "dense_rank", "ntile", "json_group_array")
    return isinstance(node, exp.AggFunc)


def _literal(node: Any) -> str:
    """The text of a written value, ``""`` if the node is none."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        return f"'{node.name}" if node.is_string else str(node.name)
    if isinstance(node, exp.Null | exp.Boolean):
        return str(node.sql()).lower()
    kinds = ("HexString", "BitString", "ByteString", "RawString", "UnicodeString", "National")
    return f"'{node.name}" if type(node).__name__ in kinds else ""
