"""PostgreSQL scripts whose data do not move with the clock, and the same for SQLite.

defog's scripts fill some tables relative to the day on which they run. Here that day is fixed, so
that a database has one content on every day and every machine.
"""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from typing import Any

_DAY, _NOON = "2024-06-15", "2024-06-15 12:00:00"
_CLOCK = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/)
    | \b(?P<moment>CURRENT_TIMESTAMP\b | LOCALTIMESTAMP\b | NOW\s*\(\s*\)) | \bCURRENT_DATE\b""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def without_clock(script: str) -> str:
    """The script with the day 2024-06-15, at noon, wherever it asks for the present."""

    def fixed(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found[0]
        return f"TIMESTAMP '{_NOON}'" if found["moment"] else f"DATE '{_DAY}'"

    return _CLOCK.sub(fixed, script)


def for_sqlite(script: str) -> str:
    """The tables and rows of a PostgreSQL script as statements of SQLite.

    Schemas (``public.``) are dropped, and constants that are computed are written out; dates are
    texts in ISO's form.

    Raises:
        ValueError: A statement cannot be read.
    """
    import sqlglot
    from sqlglot import exp

    statements: list[str] = []
    for tree in sqlglot.parse(script, read="postgres"):
        if not isinstance(tree, exp.Create | exp.Insert):
            continue
        for table in tree.find_all(exp.Table):
            table.set("db", None)
        for kind in tree.find_all(exp.DataType):
            if kind.is_type("serial", "bigserial"):
                kind.replace(exp.DataType.build("int"))
        statements.append(tree.transform(_written_out).sql(dialect="sqlite", comments=False))
    return "".join(f"{statement};\n" for statement in statements)


def _written_out(node: Any) -> Any:
    from sqlglot import exp

    computed = (exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.TimestampTrunc, exp.Extract, exp.TimeToStr)
    if not isinstance(node, computed):
        return node
    value = _value(node)
    if isinstance(value, datetime):
        midnight = value == value.replace(hour=0, minute=0, second=0)
        value = value.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")
    return exp.convert(value)


def _value(node: Any) -> Any:
    """What a constant expression is: a text, a number or a moment.

    Raises:
        ValueError: It holds something else.
    """
    from sqlglot import exp

    if isinstance(node, exp.Literal):
        return node.name if node.is_string else float(node.name)
    if isinstance(node, exp.Paren):
        return _value(node.this)
    if isinstance(node, exp.Cast):
        inner = _value(node.this)
        dated = node.to.is_type("date", "timestamp", "timestamptz") and isinstance(inner, str)
        if node.to.is_type("int", "bigint"):
            return int(inner)
        return datetime.fromisoformat(inner) if dated else inner
    if isinstance(node, exp.Mul):
        return round(_value(node.this) * _value(node.expression))
    if isinstance(node, exp.Add | exp.Sub):
        sign = 1 if isinstance(node, exp.Add) else -1
        return _shifted(_value(node.this), node.expression, sign)
    if isinstance(node, exp.TimestampTrunc):
        return _truncated(_value(node.this), node.text("unit").lower())
    if isinstance(node, exp.Extract):
        moment = _value(node.expression)
        year = node.name.lower() == "year"
        return moment.year if year else calendar.timegm(moment.timetuple())
    if isinstance(node, exp.TimeToStr):
        return _value(node.this).strftime("%B").ljust(9)  # the one form in use: 'Month'
    raise ValueError(f"{node.sql()!r} is no constant.")


def _shifted(moment: datetime, interval: Any, sign: int) -> datetime:
    number = sign * int(interval.name)
    unit = interval.text("unit").lower().removesuffix("s")
    if unit in ("day", "week"):
        return moment + timedelta(days=number * (7 if unit == "week" else 1))
    months = moment.year * 12 + moment.month - 1 + number * {"month": 1, "year": 12}[unit]
    year, month = divmod(months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _truncated(moment: datetime, unit: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day
