"""What the rewards of the family ``sql`` ask of the referee, and how they read its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.types import Step, ToolCall, ToolResult

QUERY, SCHEMA = "sql_query", "sql_schema"


def rows_call(sql: str, *, instance: int = 0, max_rows: int) -> ToolCall:
    """The private call that runs a query on one of the task's databases.

    Args:
        sql: the query.
        instance: 0 is the task's own database, 1 the first of its instances, and so on.
        max_rows: rows that are kept.
    """
    return ToolCall("sql_rows", {"sql": sql, "instance": instance, "max_rows": max_rows})


def state_call(statements: Sequence[str], *, max_rows: int) -> ToolCall:
    """The private call that runs statements on a fresh copy and returns all tables."""
    return ToolCall("sql_after", {"statements": list(statements), "max_rows": max_rows})


def answer_to(call: ToolCall, step: Step) -> Mapping[str, Any] | None:
    """What the referee found, in the JSON form of results; None if it was not asked."""
    for asked, result in step.evidence:
        if asked.name == call.name and asked.arguments == call.arguments:
            return as_data(result)
    return None


def as_data(result: ToolResult) -> Mapping[str, Any]:
    """A tool's result in the JSON form of results."""
    if result.error is not None:
        return {"error": {"kind": result.error.kind, "message": result.error.message}}
    return result.data


def submitted_sql(step: Step) -> str | None:
    """The statement that was handed in with this step, None if nothing was."""
    for result in step.results:
        if result.terminal:
            sql: Any = result.data.get("sql", result.data.get("answer"))
            return None if sql is None else str(sql)
    return None


def calls_of(steps: Sequence[Step], name: str) -> list[tuple[Mapping[str, Any], ToolResult]]:
    """Arguments and result of every call of one tool."""
    return [
        (call.arguments, result)
        for step in steps
        # Not strict: an unreadable message has a result but no call.
        for call, result in zip(step.calls, step.results, strict=False)
        if call.name == name
    ]
