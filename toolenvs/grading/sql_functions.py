"""What the value of an expression is made of, node by node of its syntax tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_RANKS = frozenset(("Rank", "DenseRank", "PercentRank", "CumeDist"))
_COUNTS = frozenset(("Count", "CountIf", "RowNumber", "Ntile"))
_SUMS = frozenset(("sum", "total"))
_UNITS = frozenset((1.0, 100.0))
"""Of which a sum is a count, or one in percent."""
_COLLECTING = """
group_concat string_agg array_agg json_agg jsonb_agg json_array_agg json_group_array json_object_agg
jsonb_object_agg json_group_object
"""
_MEASURING = """
length char_length octet_length cardinality array_length array_size array_upper json_array_length
jsonb_array_length
"""
_MULTIPLYING = """
generate_series exploding_generate_series generate_subscripts unnest explode regexp_split_to_table
string_to_table regexp_matches json_array_elements json_array_elements_text jsonb_array_elements
jsonb_array_elements_text json_object_keys jsonb_object_keys json_each json_each_text jsonb_each
jsonb_each_text
"""
_COLLECTS = frozenset(_COLLECTING.split())
_LENGTHS = frozenset(_MEASURING.split())
_ROWS = frozenset(_MULTIPLYING.split())
_COALESCES = frozenset(("coalesce", "ifnull", "nvl"))
_TEXTS = frozenset(
    ("HexString", "BitString", "ByteString", "RawString", "UnicodeString", "National")
)


def counts_rows(node: Any) -> bool:
    """Tell whether a function's value depends on how many rows there are, of whatever content.

    ``count('x')`` counts, ``sum(1)``, ``row_number()`` and the length of what an aggregate
    collects. Any other aggregate of a written value is that value, or made of it.
    """
    from sqlglot import exp

    if type(node).__name__ in _COUNTS:
        return True
    name, below = _name(node), _arguments(node)
    if name in _SUMS and below:
        unit = abs(_number(below[0]) or 0) in _UNITS
        return unit or below[0].find(exp.Column) is not None
    return name in _LENGTHS and any(
        isinstance(part, exp.ArrayAgg | exp.JSONArrayAgg) or _name(part) in _COLLECTS
        for part in node.walk()
    )


def measured(node: Any) -> Sequence[Any]:
    """The queries of which a node is the number of rows: ``cardinality(ARRAY(SELECT ...))``."""
    from sqlglot import exp

    return list(node.find_all(exp.Query)) if _name(node) in _LENGTHS else ()


def gives_rows(node: Any) -> bool:
    """Tell whether a function in the place of a value gives several rows."""
    return _name(node) in _ROWS


def takes_first(node: Any) -> bool:
    """Tell whether a node is the first of several values that there is."""
    return _name(node) in _COALESCES


def ranked_by(window: Any) -> Sequence[Any] | None:
    """The terms by which a rank is one; None for another function, or if the text is elsewhere."""
    order = window.args.get("order")
    return [order] if order is not None and type(window.this).__name__ in _RANKS else None


def parts(node: Any) -> Sequence[Any]:
    """The nodes below one that its value is made of.

    All of them, but for forms that are certain to be what is written: ``coalesce('x', a)``,
    ``nullif('x', a)``, ``0 * a``, ``a - a``, and CASE where the condition reads no column or each
    branch holds one and the same written value.
    """
    from sqlglot import exp

    name, below = _name(node), _arguments(node)
    if takes_first(node) and below:
        return below[:1] if _is_written(below[0]) else below
    if name == "nullif" and below and _is_written(below[0]):
        return below[:1]
    if isinstance(node, exp.Mul):
        zeros = [side for side in (node.this, node.expression) if _number(side) == 0]
        return zeros[:1] or below
    if isinstance(node, exp.Sub | exp.Div) and node.this == node.expression:
        return ()
    branches = _branches(node)
    written = [branch for branch in branches if branch is not None and _is_written(branch)]
    same = len(written) == len(branches) and all(each == written[0] for each in written)
    # Where no table is asked which branch is taken, that may be the one that is written.
    if written and (same or not _asks(node)):
        return written
    return below


def literal_of(node: Any) -> str:
    """The text of a written value, ``""`` if the node is none."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        return f"'{node.name}" if node.is_string else str(node.name)
    if isinstance(node, exp.Null | exp.Boolean):
        return str(node.sql()).lower()
    return f"'{node.name}" if type(node).__name__ in _TEXTS else ""


def pinned_by(tree: Any) -> frozenset[str]:
    """The written values that a query sets something equal to: ``city = 'Bern'``, ``IN (1, 2)``.

    ``WHERE ok`` sets a column to what is true.
    """
    from sqlglot import exp

    found: set[str] = set()
    for node in tree.find_all(exp.EQ, exp.In, exp.Is, exp.NullSafeEQ):
        found.update(literal_of(_bare(child)) for child in node.iter_expressions())
    for node in tree.find_all(exp.Like, exp.ILike):
        text = literal_of(_bare(node.expression))
        found.update(() if {"%", "_"} & set(text) else (text,))
    for node in tree.find_all(exp.Where, exp.And, exp.Or, exp.Not):
        if any(isinstance(child, exp.Column) for child in node.iter_expressions()):
            found.update(("false", "0") if isinstance(node, exp.Not) else ("true", "1"))
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


def _branches(node: Any) -> list[Any]:
    """What a CASE or IF may return, None for an ELSE that is not there; nothing of other nodes."""
    from sqlglot import exp

    if isinstance(node, exp.Case):
        branches = [branch.args.get("true") for branch in node.args.get("ifs") or ()]
        return [*branches, node.args.get("default")]
    if isinstance(node, exp.If):
        return [node.args.get("true"), node.args.get("false")]
    return [*_arguments(node)[1:], None][:2] if _name(node) in ("iif", "if") else []


def _asks(node: Any) -> bool:
    """Tell whether a condition of a CASE or IF reads a column, a query or a number of rows."""
    from sqlglot import exp

    conditions = [node.this, *(branch.this for branch in node.args.get("ifs") or ())]
    if isinstance(node, exp.Anonymous):
        conditions = _arguments(node)[:1]
    reads = exp.Column | exp.Query | exp.AggFunc
    return any(isinstance(part, reads) for each in conditions if each for part in each.walk())


def _bare(node: Any) -> Any:
    """The expression inside brackets, casts and signs."""
    from sqlglot import exp

    while isinstance(node, exp.Paren | exp.Cast | exp.Neg):
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
