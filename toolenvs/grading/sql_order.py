"""What a gold query fixes of the order and the choice of its rows.

An ORDER BY leaves rows that tie in any order, and a LIMIT that cuts through them leaves even the
choice open. The result alone does not show it where the key is not among its columns. Hence a
*probe*: the gold rewritten so that it returns all rows, with the keys appended as columns. From the
probe's result follows every result that the gold may have.

    outline = read_outline("SELECT name FROM emp ORDER BY pay DESC LIMIT 1")
    outline.probe    SELECT name, pay AS toolenvs_key_0 FROM emp ORDER BY pay DESC
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql_matching import Arrangement, Group, Row, UndecidedError, allows
from toolenvs.grading.sql_policy import DEFAULT_POLICY, Engine, SqlPolicy
from toolenvs.grading.sql_reading import parse, projections, tokens, unwrapped
from toolenvs.grading.sql_values import Value, equal

NO_LIMIT, UNREAD_LIMIT = -1, -2
_EVERY = 1 << 62
_KEY = "toolenvs_key_"
_EXACT_COLUMNS = SqlPolicy(columns="exact")
_TIE_POLICY = DEFAULT_POLICY  # keys that differ by the rounding of floats tie, too


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
    """

    ordered: bool = False
    keys: tuple[int, ...] | None = ()
    limit: int = NO_LIMIT
    offset: int = 0
    probe: str = ""
    appended: int = 0


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
    limit, offset = _limits(tree)
    keys = _Keys(tree)
    found = keys.find(order.expressions if order is not None else ())
    if limit < 0 and (found is None or not keys.appended):
        return Outline(ordered=order is not None, keys=found, limit=limit)
    probe = tree.copy()
    if limit >= 0:
        for part in ("limit", "offset"):
            probe.set(part, None)
    for number, key in enumerate(keys.appended):
        probe.select(_aliased(key, f"{_KEY}{number}"), copy=False)
    return Outline(
        ordered=order is not None,
        keys=found,
        limit=limit,
        offset=offset,
        probe=probe.sql(dialect=engine),
        appended=len(keys.appended),
    )


class _Keys:
    """Finds the keys of an ORDER BY among the columns of the result, or appends them."""

    def __init__(self, tree: Any) -> None:
        from sqlglot import exp

        self._columns = projections(tree)
        self._starred = any(column.find(exp.Star) and column.is_star for column in self._columns)
        self._extends = isinstance(tree, exp.Select) and not tree.args.get("distinct")
        self.appended: list[Any] = []

    def find(self, ordered: Sequence[Any]) -> tuple[int, ...] | None:
        """A column for each key; None if one can be neither found nor appended."""
        places = [self._place(key.this) for key in ordered]
        if None in places:
            return None
        appended = len(self.appended)
        return tuple(p if p >= 0 else -p - appended - 1 for p in places if p is not None)

    def _place(self, key: Any) -> int | None:
        """The column of the result that is the key; below 0: -1 - its number among ``appended``."""
        from sqlglot import exp

        if isinstance(key, exp.Literal) and not key.is_string:
            return int(key.name) - 1 if key.name.isdigit() else None
        for place, column in enumerate(self._columns):
            if _names(column, key) or column.unalias() == key:
                return place if not self._starred else self._append(column.unalias())
        return self._append(key)

    def _append(self, key: Any) -> int | None:
        from sqlglot import exp

        if not self._extends:
            return None
        if isinstance(key, exp.Collate) and key.expression.name.upper() == "NOCASE":
            key = exp.func("LOWER", key.this.copy())  # the key's own column would not show the tie
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


class TieUnknownError(ValueError):
    """The probe was cut before the rows that tie at the limit ended."""


def arrange(
    outline: Outline,
    rows: Sequence[Row],
    *,
    width: int,
    probe: Sequence[Row] | None = None,
    probe_cut: bool = False,
    policy: SqlPolicy = DEFAULT_POLICY,
    widened: bool = False,
) -> Arrangement:
    """The results that a gold query allows.

    Where the keys are known, rows that tie may stand in any order, and where a LIMIT cuts through
    them any of them may be taken. Where they are not (an ORDER BY by what DISTINCT dropped, a probe
    that did not run or does not fit the result), an ordered result is the one row after row.

    Args:
        outline: how the gold orders.
        rows: its result, each row of ``width`` values.
        width: its number of columns.
        probe: the result of ``outline.probe``, if that ran.
        probe_cut: more rows than ``probe`` holds exist.
        policy: whether order counts.
        widened: take all rows that tie at the limit.

    Raises:
        TieUnknownError: Whether rows tie at the limit cannot be seen from a probe that was cut.
    """
    ordered = policy.order == "always" or (policy.order == "auto" and outline.ordered)
    plain = _plain(rows, width, ordered)
    if outline.keys is None or (policy.order == "always" and not outline.ordered):
        return plain
    if not outline.probe:
        keys = [[row[key] for key in outline.keys if key < width] for row in rows]
        return Arrangement(width, _tied(rows, keys), ordered) if ordered else plain
    if probe is None:
        return plain
    limited = _limited(outline, probe, cut=probe_cut, widened=False)
    found = Arrangement(width, limited, ordered)
    if not _holds(found, rows, width):
        return plain
    if widened:
        all_tied = _limited(outline, probe, cut=probe_cut, widened=True)
        return Arrangement(width, all_tied, ordered)
    return found


def _holds(found: Arrangement, rows: Sequence[Row], width: int) -> bool:
    """Tell whether the gold's own result is one of those found; else the probe was misread."""
    try:
        return allows(found, rows, width=width, policy=_EXACT_COLUMNS)
    except UndecidedError:
        return False


def _plain(rows: Sequence[Row], width: int, ordered: bool) -> Arrangement:
    groups = [[row] for row in rows] if ordered else [rows]
    return Arrangement(width, tuple(Group(tuple(group), len(group)) for group in groups), ordered)


def _limited(
    outline: Outline, probe: Sequence[Row], *, cut: bool, widened: bool
) -> tuple[Group, ...]:
    """The groups of the probe's rows that the limit takes from, with how many of each."""
    first = outline.offset
    last = first + outline.limit if outline.limit >= 0 else len(probe)
    groups: list[Group] = []
    start = 0
    for group in key_groups(outline, probe):
        end = start + len(group.rows)
        take = max(0, min(end, last) - max(start, first))
        if take:
            if cut and end == len(probe):
                raise TieUnknownError("the probe was cut")
            groups.append(Group(group.rows, len(group.rows) if widened else take))
        start = end
    return tuple(groups)


def key_groups(outline: Outline, probe: Sequence[Row]) -> tuple[Group, ...]:
    """The rows of a probe without their keys, in groups that tie; needs ``outline.keys``."""
    assert outline.keys is not None
    shown = [row[: len(row) - outline.appended] for row in probe]
    return _tied(shown, [[row[key] for key in outline.keys] for row in probe])


def _tied(rows: Sequence[Row], keys: Sequence[Sequence[Value]]) -> tuple[Group, ...]:
    """Runs of rows whose keys are equal to those of the next."""
    return tuple(Group(tuple(rows[place] for place in run), len(run)) for run in _runs(keys) if run)


def _runs(keys: Sequence[Sequence[Value]]) -> Iterator[list[int]]:
    run: list[int] = []
    for place in range(len(keys)):
        if run and not _same_keys(keys[place - 1], keys[place]):
            yield run
            run = []
        run.append(place)
    yield run


def _same_keys(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return all(itertools.starmap(_same_key, zip(left, right, strict=True)))


def _same_key(left: Value, right: Value) -> bool:
    return equal(left, right, _TIE_POLICY)
