"""For rewards only: what statements leave in a fresh copy of the task's database."""

from __future__ import annotations

import msgspec

from toolenvs.errors import UsageError
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools import _sql
from toolenvs.types import Task, ToolResult

_MAX_BYTES = 8 << 20


class SqlAfter:
    """Run statements on a copy made for them, then read all tables; offered to no agent.

    Args:
        timeout_s: seconds for one statement.

    Raises:
        UsageError: The number is out of range.
    """

    name = "sql_after"
    description = "Run statements for a reward and read all tables."
    needs = "sandbox:sql"
    kind: ToolKind = "pure"
    version = "1"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call; ``max_rows`` of each table."""

        statements: list[str]
        max_rows: int = 10_000

    def __init__(self, *, timeout_s: float = 20.0) -> None:
        if timeout_s <= 0:
            raise UsageError(f"timeout_s={timeout_s}: give more than 0.")
        self.timeout_s = timeout_s

    def bound(self, task: Task) -> SqlAfter:
        """The tool for the engine of the task's database."""
        return _sql.bound(self, task)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        request = {
            "op": "state",
            "database": _sql.target(context.task.database, writable=True),
            "statements": args.statements,
            "max_rows": args.max_rows,
            "max_bytes": _MAX_BYTES,
            "timeout_s": self.timeout_s,
        }
        answer = await _sql.ask(context, request)
        if "stopped" in answer:
            return _sql.refused({"error": answer["stopped"]})
        if "error" in answer:
            return _sql.refused(answer)
        return ToolResult("", data=answer)
