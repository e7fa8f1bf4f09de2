"""Submit the final answer: ends the episode."""

from __future__ import annotations

from typing import Annotated

import msgspec

from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.types import ToolResult


class Submit:
    """Submit the final answer, once; whatever is called after it is not run."""

    name = "submit"
    description = "Submit the final answer. This ends the episode."
    needs = ""
    kind: ToolKind = "pure"
    version = "1"
    instant = True  # its result is its argument: nothing to record, and nothing to miss

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        answer: Annotated[
            str | int | float, msgspec.Meta(description="The answer alone, without explanation.")
        ]

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        return ToolResult(text="", data={"answer": str(args.answer)}, terminal=True)
