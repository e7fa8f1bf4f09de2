"""What the SQL tools share: asking the task's database, and showing what it gave."""

from __future__ import annotations

import copy
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.types import Database, ErrorKind, ExecResult, Task, ToolError, ToolResult

NEEDS = {"sqlite": "sandbox:sql", "postgres": "service:postgres"}
"""Where the statements of an engine run."""

SPARE_S = 5.0
"""Seconds beyond a statement's own limit until the sandbox ends the call."""

_PROGRAM = "import toolenvs_database\nprint(toolenvs_database.answer({!r}))"
_ENDED: Mapping[str, tuple[ErrorKind, str]] = {
    "timeout": ("timeout", "The statement was stopped at its time limit."),
    "memory": ("memory", "The statement needs more memory than it may use."),
    "killed": ("memory", "The statement was stopped: it used more than it may."),
    "output": ("output", "The result is larger than it may be."),
}
_CELL_CHARS = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

T = TypeVar("T")


def bound(tool: T, task: Task, *, kind: ToolKind | None = None) -> T:
    """A copy of a tool for the engine of a task's database."""
    placed = copy.copy(tool)
    engine = task.database.engine if task.database is not None else "sqlite"
    placed.needs = NEEDS[engine]  # type: ignore[attr-defined]
    if kind is not None:
        placed.kind = kind  # type: ignore[attr-defined]
    return placed


def target(database: Database | None, *, instance: int = 0, writable: bool = False) -> Any:
    """The part of a request that says which database is meant.

    Args:
        database: the task's.
        instance: 0 for it, 1 for the first of its instances, and so on.
        writable: a copy that may be changed.

    Raises:
        RuntimeFailure: The task has no such database.
    """
    places = () if database is None else (database.place, *database.instances)
    if database is None or not 0 <= instance < len(places):
        raise RuntimeFailure("data", f"the task has no database number {instance}.")
    return {"engine": database.engine, "place": places[instance], "writable": writable}


async def ask(context: ToolContext, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have a request answered where the task's database is; see ``toolenvs.database.answers``.

    Returns:
        The answer; a fault of the statement is ``{"error": {"kind": ..., "message": ...}}``.

    Raises:
        RuntimeFailure: The machine failed, or the database is not there.
    """
    assert context.sandbox is not None
    text = json.dumps(request)
    sqlite = request["database"]["engine"] == "sqlite"
    code = _PROGRAM.format(text) if sqlite else text
    result = await context.sandbox.execute(code, timeout_s=request["timeout_s"] + SPARE_S)
    answer = _read(result)
    error = answer.get("error")
    if error and error["kind"] == "unavailable":
        raise RuntimeFailure("data", f"the task's database cannot be used: {error['message']}")
    return answer


def refused(answer: Mapping[str, Any]) -> ToolResult:
    """The result of a call whose answer is an error."""
    error = answer["error"]
    lost = {"session_lost": True} if answer.get("session_lost") else {}
    return ToolResult(error["message"], data=lost, error=ToolError(error["kind"], error["message"]))


def table_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Column names and rows, a line each, their cells between bars."""
    lines = [" | ".join(cell_text(name) for name in columns)]
    lines += [" | ".join(cell_text(value) for value in row) for row in rows]
    return "\n".join(lines)


def cell_text(value: Any) -> str:
    """One value on one line: NULL is visible, control characters are escaped, long ones are cut."""
    if value is None:
        return "NULL"
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        value = f"x'{inner}'" if kind == "bytes" else inner
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = f"{text[:_CELL_CHARS]}... ({len(text)} characters)" if len(text) > _CELL_CHARS else text
    return _CONTROL.sub(_escaped, cut)


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return _ESCAPES.get(char, f"\\u{ord(char):04x}" if unicodedata.category(char) else char)


def _read(result: ExecResult) -> dict[str, Any]:
    if result.status in _ENDED:
        kind, message = _ENDED[result.status]
        error = {"kind": kind, "message": message}
        return {"error": error, "session_lost": result.session_lost}
    try:
        answer = json.loads(result.stdout)
    except ValueError:
        answer = None
    if result.status != "ok" or not isinstance(answer, dict):
        raise RuntimeFailure(
            "tool", f"the database gave no answer ({result.status}): {result.stderr[-500:]}"
        )
    return answer
