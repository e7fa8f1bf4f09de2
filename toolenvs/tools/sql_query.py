"""Run one SQL statement on the task's database and read its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from toolenvs.errors import UsageError
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools import _sql
from toolenvs.types import Task, ToolError, ToolResult

_MAX_BYTES = 512 << 10
_NOTE_CHARS = 120  # of the limit, for the lines below the rows
_OF_A_SHELL = re.compile(r"\s*(?:show|desc|describe|\.|\\)", re.IGNORECASE)


class SqlQuery:
    """Run one statement; rows come in the order in which the database gave them.

    On the database of a task that only reads, whatever would change something is refused. A task
    that asks for changes has a copy of its own, and later calls find what earlier ones did.

    Args:
        limit_rows: rows that the agent reads.
        limit_chars: most characters that it reads.
        keep_rows: rows that are kept for rewards, at least ``limit_rows``.
        timeout_s: seconds for one statement: of the processor in SQLite, of the clock in
            PostgreSQL.

    Raises:
        UsageError: A number is out of range.
    """

    name = "sql_query"
    description = (
        "Run one SQL statement on the database and read the rows it returns. Names in double "
        "quotes, texts in single quotes."
    )
    needs = "sandbox:sql"
    kind: ToolKind = "reads"
    version = "2"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        sql: Annotated[str, msgspec.Meta(description="One statement.")]

    def __init__(
        self,
        *,
        limit_rows: int = 50,
        limit_chars: int = 8000,
        keep_rows: int = 1000,
        timeout_s: float = 10.0,
    ) -> None:
        if not 1 <= limit_rows <= keep_rows:
            raise UsageError(f"limit_rows={limit_rows}: give 1 to keep_rows={keep_rows}.")
        if limit_chars < 200 or timeout_s <= 0:
            raise UsageError(f"limit_chars={limit_chars}, timeout_s={timeout_s}: too small.")
        self.limit_rows = limit_rows
        self.limit_chars = limit_chars
        self.keep_rows = keep_rows
        self.timeout_s = timeout_s

    def bound(self, task: Task) -> SqlQuery:
        """The tool for the engine of the task's database; it keeps state where that is writable."""
        writable = task.database is not None and task.database.writable
        return _sql.bound(self, task, kind="stateful" if writable else "reads")

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        database = context.task.database
        writable = database is not None and database.writable
        request = {
            "op": "query",
            "database": _sql.target(database, writable=writable),
            "sql": args.sql,
            "max_rows": self.keep_rows,
            "max_bytes": _MAX_BYTES,
            "timeout_s": self.timeout_s,
        }
        answer = await _sql.ask(context, request)
        if "error" in answer:
            return self._failed(args.sql, answer)
        columns, rows = answer["columns"], answer["rows"]
        if not columns:
            text, shown = f"Done; {_counted(answer['row_count'])} changed.", 0
        else:
            text, shown = _sql.lines_text(
                columns, rows[: self.limit_rows], limit_chars=self.limit_chars - _NOTE_CHARS
            )
            text = f"{text}\n{_count(len(rows), shown, cut_off=answer['cut'])}"
        if answer.get("undecodable"):
            values = _counted(answer["undecodable"], "value")
            text += f"\n(in {values}, \ufffd stands for bytes that are no UTF-8)"
        return ToolResult(
            text,
            data={name: answer[name] for name in ("columns", "rows", "row_count", "cut")},
            truncated=answer["cut"] or shown < len(rows),
        )

    def _failed(self, sql: str, answer: Mapping[str, Any]) -> ToolResult:
        result = _sql.refused(answer, stateful=self.kind == "stateful")
        assert result.error is not None
        if (
            self.kind == "stateful"
            and result.error.kind == "timeout"
            and "session_lost" not in answer
        ):
            # The engine stopped it, not the sandbox: what it had changed is rolled back.
            return msgspec.structs.replace(result, data={"state_kept": True})
        if result.error.kind != "raised" or not _OF_A_SHELL.match(sql):
            return result
        hint = f"{result.error.message} To see what the database holds, use sql_schema."
        return msgspec.structs.replace(result, text=hint, error=ToolError("raised", hint))


def _count(rows: int, shown: int, *, cut_off: bool) -> str:
    if cut_off and not rows:
        return f"(no row is shown: the first one is larger than {_MAX_BYTES >> 10} KB)"
    if cut_off:
        return f"(the first {shown} rows; there are more than {rows})"
    if shown < rows:
        return f"(the first {shown} of {rows} rows)"
    return f"({_counted(rows)})"


def _counted(number: int, what: str = "row") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
