"""Submit the final query: ends the episode."""

from __future__ import annotations

from typing import Annotated

import msgspec

from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.types import ToolResult


class SubmitSql:
    """Submit one statement, once; its result on the database decides."""

    name = "submit_sql"
    description = "Submit the final SQL statement. Its result is the answer; this ends the episode."
    needs = ""
    kind: ToolKind = "pure"
    version = "1"
    instant = True  # its result is its argument: nothing to record, and nothing to miss

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        sql: Annotated[str, msgspec.Meta(description="One statement, without explanation.")]

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        return ToolResult(text="", data={"answer": args.sql, "sql": args.sql}, terminal=True)
