"""For rewards only: the rows of a query on one of the task's databases."""

from __future__ import annotations

import msgspec

from toolenvs.errors import UsageError
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools import _sql
from toolenvs.types import Task, ToolResult

_MAX_BYTES = 8 << 20


class SqlRows:
    """Run a query where the agent cannot reach; an episode offers it to no agent.

    Args:
        timeout_s: seconds for one statement: more than the agent's, so that no gold is cut short.

    Raises:
        UsageError: The number is out of range.
    """

    name = "sql_rows"
    description = "Run a query for a reward."
    needs = "sandbox:sql"
    kind: ToolKind = "reads"
    version = "1"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call; ``instance`` 0 is the task's database, 1 its first instance."""

        sql: str
        instance: int = 0
        max_rows: int = 10_000

    def __init__(self, *, timeout_s: float = 20.0) -> None:
        if timeout_s <= 0:
            raise UsageError(f"timeout_s={timeout_s}: give more than 0.")
        self.timeout_s = timeout_s

    def bound(self, task: Task) -> SqlRows:
        """The tool for the engine of the task's database."""
        return _sql.bound(self, task)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        request = {
            "op": "query",
            "database": _sql.target(context.task.database, instance=args.instance),
            "sql": args.sql,
            "max_rows": args.max_rows,
            "max_bytes": _MAX_BYTES,
            "timeout_s": self.timeout_s,
        }
        answer = await _sql.ask(context, request)
        return _sql.refused(answer) if "error" in answer else ToolResult("", data=answer)
