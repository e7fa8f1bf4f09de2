"""How a gold query orders and limits, and the query that shows the rows which tie.

An ORDER BY leaves rows that tie in any order, and a LIMIT that cuts through them leaves even the
choice open. The result alone does not show it where the key is not among its columns. Hence a
*probe*: the gold rewritten so that it returns all rows, with the keys appended as columns, and the
number of the rows' group as the database itself counts it: where the collation of a column makes
``Ann`` and ``ann`` one, their keys do not show the tie. From the probe's result follows every
result that the gold may have (``sql_order``).

    outline = read_outline("SELECT name FROM emp ORDER BY city DESC LIMIT 1")
    outline.probe    SELECT name, city AS toolenvs_key_0,
                     DENSE_RANK() OVER (ORDER BY city DESC) AS toolenvs_rank
                     FROM emp ORDER BY city DESC
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import parse, projections, tokens, unwrapped

NO_LIMIT, UNREAD_LIMIT = -1, -2
_EVERY = 1 << 62
_KEY, _RANK, _ROWS, _COLUMN = "toolenvs_key_", "toolenvs_rank", "toolenvs_rows", "toolenvs_column_"


class Outline(msgspec.Struct, frozen=True):
    """How the outermost statement of a query orders and limits.

    Attributes:
        ordered: it has an ORDER BY.
        keys: for each key its column in the result of ``probe`` (of the query where there is no
            probe), counted from the end if negative; None if that cannot be said.
        limit: rows taken at most, ``NO_LIMIT`` (all) or ``UNREAD_LIMIT`` (it is no plain number).
        offset: rows skipped before.
        probe: the query that returns the rows before the limit, with the keys among its columns;
            ``""`` where the query itself does.
        appended: columns that the probe adds.
        ranked: the last of them numbers the groups of rows that tie.
    """

    ordered: bool = False
    keys: tuple[int, ...] | None = ()
    limit: int = NO_LIMIT
    offset: int = 0
    probe: str = ""
    appended: int = 0
    ranked: bool = False

    @property
    def shown(self) -> bool:
        """True where the keys are columns of the result, which is not limited."""
        return self.limit < 0 and self.keys is not None and all(key >= 0 for key in self.keys)


@functools.lru_cache(maxsize=1024)
def read_outline(sql: str, engine: Engine = "sqlite") -> Outline:
    """Read how ``sql`` orders and limits. Never raises, whatever the text.

    What the parser cannot read is ordered if an ``ORDER`` stands outside all brackets.
    """
    tree = parse(sql, engine)
    if tree is None:
        return Outline(ordered=_has_order(sql, engine), keys=None)
    return outline_of(unwrapped(tree), engine)


def outline_of(tree: Any, engine: Engine) -> Outline:
    """The outline of a parsed query; the tree is not changed."""
    order = tree.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    limit, offset = _limits(tree)
    keys = _Keys(tree)
    found = keys.find(ordered)
    ranks = keys.ranks(ordered) if found is not None else None
    if limit < 0 and (found is None or not (keys.appended or ranks)):
        return Outline(
            ordered=order is not None, keys=None if found is None else tuple(found), limit=limit
        )
    probe = tree.copy()
    if limit >= 0:
        for part in ("limit", "offset"):
            probe.set(part, None)
    for number, key in enumerate(keys.appended):
        probe.select(_aliased(key, f"{_KEY}{number}"), copy=False)
    if ranks:
        probe = _ranked(probe, ranks, keys.width if keys.wraps else 0)
    appended = len(keys.appended) + bool(ranks)
    return Outline(
        ordered=order is not None,
        keys=found if found is None else tuple(p if p >= 0 else -p - appended - 1 for p in found),
        limit=limit,
        offset=offset,
        probe=probe.sql(dialect=engine),
        appended=appended,
        ranked=bool(ranks),
    )


def _ranked(probe: Any, ranks: Sequence[Any], width: int) -> Any:
    """The query with the number of each row's group as a further column.

    Args:
        probe: the query.
        ranks: the terms of its ORDER BY.
        width: 0, or the number of its columns where it must be wrapped: what DISTINCT or UNION
            makes one can be numbered only when that is done.
    """
    from sqlglot import exp

    order = exp.Order(expressions=[term.copy() for term in ranks])
    rank = exp.alias_(exp.Window(this=exp.Anonymous(this="DENSE_RANK"), order=order), _RANK)
    if not width:
        return probe.select(rank, copy=False)
    probe.set("order", None)
    names = [f"{_COLUMN}{number}" for number in range(width)]
    cte = exp.CTE(
        this=probe,
        alias=exp.TableAlias(
            this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(name) for name in names]
        ),
    )
    whole = exp.select(*map(exp.column, names), rank).from_(_ROWS)
    whole.set("with_" if "with_" in whole.arg_types else "with", exp.With(expressions=[cte]))
    whole.set("order", order.copy())
    return whole


class _Keys:
    """Finds the keys of an ORDER BY among the columns of the result, or appends them."""

    def __init__(self, tree: Any) -> None:
        from sqlglot import exp

        self._columns = projections(tree)
        self._starred = any(column.find(exp.Star) and column.is_star for column in self._columns)
        distinct = tree.args.get("distinct")  # of a set operation True or False
        self._extends = isinstance(tree, exp.Select) and not distinct
        self._picks = isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None
        self.width = len(self._columns)
        self.appended: list[Any] = []

    @property
    def wraps(self) -> bool:
        """Whether a column can be added only around the query."""
        return not self._extends

    def find(self, ordered: Sequence[Any]) -> list[int] | None:
        """A column for each key, below 0: -1 - its number among ``appended``.

        None if one can be neither found nor appended.
        """
        places = [self._place(key.this) for key in ordered]
        found = [place for place in places if place is not None]
        return found if len(found) == len(places) else None

    def ranks(self, ordered: Sequence[Any]) -> list[Any] | None:
        """The terms of the ORDER BY as a window takes them; None if it need or can take none."""
        from sqlglot import exp

        if not any(_may_collate(self._meant(key.this)) for key in ordered):
            return None
        if self.wraps and (self._starred or self._picks):
            return None
        terms: list[Any] = []
        for term in ordered:
            meant = self._meant(term.this)
            if meant is None or (self._extends and meant.find(exp.Window)):
                return None
            copied = term.copy()
            copied.set("this", self._wrapped(term.this) if self.wraps else meant)
            terms.append(copied)
        return terms

    def _meant(self, key: Any) -> Any:
        """The expression that a term of ORDER BY stands for; None if that cannot be said."""
        from sqlglot import exp

        if isinstance(key, exp.Literal) and not key.is_string:
            number = int(key.name) - 1 if key.name.isdigit() else -1
            known = not self._starred and 0 <= number < self.width
            return self._columns[number].unalias().copy() if known else None
        for column in self._columns:
            if isinstance(column, exp.Alias) and _names(column, key):
                return column.this.copy()
        return self._resolved(key)

    def _wrapped(self, key: Any) -> Any:
        """A term of ORDER BY by the name that its column has where the query is wrapped."""
        from sqlglot import exp

        if isinstance(key, exp.Collate):
            copied = key.copy()
            copied.set("this", self._wrapped(key.this))
            return copied
        return exp.column(f"{_COLUMN}{self._place(key)}")

    def _place(self, key: Any) -> int | None:
        from sqlglot import exp

        if isinstance(key, exp.Literal) and not key.is_string:
            return int(key.name) - 1 if key.name.isdigit() else None
        for place, column in enumerate(self._columns):
            if _names(column, key) or column.unalias() == key:
                return place if not self._starred else self._append(column.unalias())
        if isinstance(key, exp.Collate) and self.wraps:
            return self._place(key.this)
        return self._append(key)

    def _append(self, key: Any) -> int | None:
        if not self._extends:
            return None
        self.appended.append(self._resolved(key))
        return -len(self.appended)

    def _resolved(self, key: Any) -> Any:
        """The key with the names that the query gave its columns replaced by what they name."""
        from sqlglot import exp

        given = {c.alias.lower(): c.this for c in self._columns if isinstance(c, exp.Alias)}

        def replaced(node: Any) -> Any:
            bare = isinstance(node, exp.Column) and not node.table
            named = given.get(node.name.lower()) if bare else None
            return exp.paren(named.copy()) if named is not None else node

        return key.copy().transform(replaced)


def _may_collate(key: Any) -> bool:
    """Tell whether values of a key may be one for the database that are not equal: texts."""
    from sqlglot import exp

    if isinstance(key, exp.Paren | exp.Neg):
        return _may_collate(key.this)
    numbers = exp.Count | exp.Sum | exp.Avg | exp.Add | exp.Sub | exp.Mul | exp.Div
    return not isinstance(key, numbers)


def _names(column: Any, key: Any) -> bool:
    """Tell whether a bare name in ORDER BY names this column of the result."""
    from sqlglot import exp

    bare = isinstance(key, exp.Column) and not key.table
    return bare and column.alias_or_name.lower() == key.name.lower()


def _aliased(key: Any, name: str) -> Any:
    from sqlglot import exp

    return exp.alias_(key.copy(), name)


def _limits(tree: Any) -> tuple[int, int]:
    """Rows taken (``NO_LIMIT``, ``UNREAD_LIMIT``) and rows skipped."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    skipped = _number(offset.expression) if offset is not None else 0
    if limit is None:
        return (_EVERY if skipped else NO_LIMIT), max(0, skipped)
    options = limit.args.get("limit_options") or limit
    if options.args.get("with_ties"):
        return NO_LIMIT, 0  # all rows that tie are taken, so nothing is left to choice
    taken = _number(limit.args.get("expression") or limit.args.get("count"))
    if taken < 0 or skipped < 0 or options.args.get("percent"):
        return UNREAD_LIMIT, 0
    return taken, skipped


def _number(expression: Any) -> int:
    from sqlglot import exp

    if isinstance(expression, exp.Neg):  # SQLite takes all rows
        return _EVERY
    if isinstance(expression, exp.Var) and expression.name.upper() == "ALL":
        return _EVERY
    plain = isinstance(expression, exp.Literal) and expression.name.isdigit()
    return int(expression.name) if plain else -1


def _has_order(sql: str, engine: Engine) -> bool:
    depth = 0
    for word in tokens(sql, engine) or ():
        if word.kind == "word":
            depth += (word.text == "(") - (word.text == ")")
            if depth == 0 and word.text in ("ORDER", "ORDER BY"):
                return True
    return False
