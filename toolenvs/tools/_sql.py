"""What the SQL tools share: asking the task's database, and showing what it gave."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from toolenvs.cut import cut
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.types import Database, ErrorKind, ExecResult, Task, ToolError, ToolResult

LOST = "The database is again as it was given."

SPARE_S = 5.0
"""Seconds beyond a statement's own limit until the sandbox ends the call."""

_PROGRAM = "import toolenvs_database\nprint(toolenvs_database.answer({!r}))"
_ENDED: Mapping[str, tuple[ErrorKind, str]] = {
    "timeout": ("timeout", "The statement was stopped at its time limit."),
    "memory": ("memory", "The statement needs more memory than it may use."),
    "killed": ("memory", "The statement was stopped: it used more than it may."),
    "output": ("output", "The result is larger than it may be."),
}
_CELL_CHARS, _BLOB_DIGITS = 200, 32
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN_NAMES = {
    "sqlite": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "postgres": re.compile(r"[a-z_][a-z0-9_]*"),  # others are folded to these
}
_RESERVED_WORDS = """
add all alter and any array as asc autoincrement between both by case cast check collate column
commit constraint create cross current_date current_time current_timestamp current_user default
deferrable delete desc distinct do drop else end escape except exists false fetch for foreign
from full grant group having ilike in index indexed inner insert intersect into is isnull join
lateral leading left like limit localtime localtimestamp natural not notnull null offset on only
or order outer placing primary references returning right select session_user set similar some
symmetric table then to trailing transaction true union unique update user using values when
where window with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())

T = TypeVar("T")


def bound(tool: T, task: Task, *, kind: ToolKind | None = None) -> T:
    """A copy of a tool for the engine of a task's database."""
    placed = copy.copy(tool)
    if task.database is not None:
        placed.needs = task.database.needs  # type: ignore[attr-defined]
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


def refused(answer: Mapping[str, Any], *, stateful: bool = False) -> ToolResult:
    """The result of a call whose answer is an error.

    Args:
        answer: with an ``error``, and ``session_lost`` where the sandbox ended with it.
        stateful: earlier calls may have changed the database: then the agent is told what became
            of that.
    """
    error = answer["error"]
    lost = bool(answer.get("session_lost"))
    note = LOST if lost and stateful else ""
    message = f"{error['message']} {note}".rstrip()
    data = {"session_lost": True} if lost else {}
    return ToolResult(message, data=data, error=ToolError(error["kind"], message), note=note)


def lines_text(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, limit_chars: int
) -> tuple[str, int]:
    """Column names and rows, a line each, their cells between bars.

    Args:
        columns: the names.
        rows: values in their JSON form.
        limit_chars: most characters of the text.

    Returns:
        The text, which ends with the last row that fits whole, and how many rows are in it. Names
        that do not fit are cut.
    """
    head, was_cut = cut(row_text(columns), limit_chars)
    lines, left = [head], limit_chars - len(head)
    for row in () if was_cut else rows:
        line = row_text(row)
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines), len(lines) - 1


def row_text(cells: Sequence[Any]) -> str:
    """Cells between bars, on one line."""
    return " | ".join(map(cell_text, cells))


def name_text(name: str, engine: str) -> str:
    """A name as a statement must write it: in double quotes where it needs them."""
    plain = _PLAIN_NAMES[engine].fullmatch(name) and name.lower() not in _RESERVED
    return name if plain else cell_text('"' + name.replace('"', '""') + '"')


def cell_text(value: Any) -> str:
    """One value on one line: NULL is visible, control characters are escaped, long ones are cut."""
    if value is None:
        return "NULL"
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "bytes":
            return _blob_text(inner)
        value = inner
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = text
    if len(text) > _CELL_CHARS:
        shown = f"{text[:_CELL_CHARS]}... ({len(text)} characters)"
    return _CONTROL.sub(_escaped, shown)


def _blob_text(digits: str) -> str:
    if len(digits) <= _CELL_CHARS:
        return f"x'{digits}'"
    return f"x'{digits[:_BLOB_DIGITS]}'... ({len(digits) // 2} bytes)"


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}")


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
