"""What the value of an expression is made of, node by node of its syntax tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_RANKS = frozenset(("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "Ntile"))
_PICKS = frozenset(("FirstValue", "LastValue", "NthValue", "Lag", "Lead", "Median"))
_COUNTING = frozenset(("total", "rank", "dense_rank", "ntile", "json_group_array"))
_JOINING = frozenset(
    ("group_concat", "string_agg", "json_group_array", "array_agg", "json_agg", "jsonb_agg")
)
_TEXTS = frozenset(
    ("HexString", "BitString", "ByteString", "RawString", "UnicodeString", "National")
)


def counts_rows(node: Any) -> bool:
    """Tell whether a function's value depends on how many rows there are, of whatever content.

    ``sum(1)`` counts; ``sum(5)`` and ``group_concat('x')`` repeat what is written.
    """
    from sqlglot import exp

    kind = type(node).__name__
    if kind in _RANKS:
        return True
    if isinstance(node, exp.Max | exp.Min | exp.Avg | exp.AnyValue | exp.First | exp.Last):
        return False
    if kind in _PICKS or _name(node) in _JOINING:
        return False
    if _name(node) in ("sum", "total") and _arguments(node):
        literal = _number(_arguments(node)[0])
        return literal is None or literal == 1
    if isinstance(node, exp.Anonymous):
        return _name(node) in _COUNTING
    return isinstance(node, exp.AggFunc)


def parts(node: Any) -> Sequence[Any]:
    """The nodes below one that its value is made of.

    All of them, but for forms that are certain to be what is written: ``coalesce('x', a)``,
    ``nullif('x', a)``, ``0 * a``, and ``CASE`` with one and the same written value in each branch.
    """
    from sqlglot import exp

    name, below = _name(node), _arguments(node)
    if name in ("coalesce", "ifnull", "nvl") and below:
        return below[:1] if _is_written(below[0]) else below
    if name == "nullif" and below and _is_written(below[0]):
        return below[:1]
    if isinstance(node, exp.Mul):
        zeros = [side for side in (node.this, node.expression) if _number(side) == 0]
        return zeros[:1] or below
    results = _results(node)
    if results and _is_written(results[0]) and all(each == results[0] for each in results):
        return results[:1]
    return list(node.iter_expressions())


def literal_of(node: Any) -> str:
    """The text of a written value, ``""`` if the node is none."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        return f"'{node.name}" if node.is_string else str(node.name)
    if isinstance(node, exp.Null | exp.Boolean):
        return str(node.sql()).lower()
    return f"'{node.name}" if type(node).__name__ in _TEXTS else ""


def pinned_by(tree: Any) -> frozenset[str]:
    """The written values that a query sets something equal to: ``city = 'Bern'``, ``IN (1, 2)``."""
    from sqlglot import exp

    found: set[str] = set()
    for node in tree.find_all(exp.EQ, exp.In, exp.Is, exp.NullSafeEQ):
        found.update(literal_of(_bare(child)) for child in node.iter_expressions())
    return frozenset(found - {""})


def is_catalogue(table: Any) -> bool:
    """Tell whether a table is the database's own, which says nothing of its content."""
    name, schema = table.name.lower(), table.db.lower()
    own = name.startswith(("sqlite_", "pragma_", "pg_"))
    return own or schema in ("information_schema", "pg_catalog")


def _name(node: Any) -> str:
    """What a function is called, in lower case; ``""`` if the node is none."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else ""


def _arguments(node: Any) -> list[Any]:
    return list(node.iter_expressions())


def _results(node: Any) -> list[Any]:
    """What a CASE or IF may return; nothing of other nodes, and of one without an ELSE."""
    from sqlglot import exp

    if isinstance(node, exp.Case):
        branches = [branch.args.get("true") for branch in node.args.get("ifs") or ()]
        found = [*branches, node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args.get("true"), node.args.get("false")]
    elif _name(node) in ("iif", "if"):
        found = [*_arguments(node)[1:], None][:2]
    else:
        return []
    return [] if None in found else found


def _bare(node: Any) -> Any:
    """The expression inside brackets and casts."""
    from sqlglot import exp

    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def _is_written(node: Any) -> bool:
    """Tell whether a node is a written value other than NULL."""
    literal = literal_of(_bare(node))
    return literal not in ("", "null")


def _number(node: Any) -> float | None:
    """The number that is written, None if none is."""
    from sqlglot import exp

    bare = _bare(node)
    if not isinstance(bare, exp.Literal) or bare.is_string:
        return None
    try:
        return float(bare.name)
    except ValueError:
        return None
