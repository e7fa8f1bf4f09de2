"""Run Python in a fresh interpreter: nothing is kept from one call to the next."""

from __future__ import annotations

from typing import Annotated

import msgspec

from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools._python_output import DESCRIPTION, LOST, present
from toolenvs.types import ToolResult


class Python:
    """Run a Python program in a fresh interpreter.

    Args:
        limit_chars: most characters that the agent reads of one call.
        timeout_s: seconds for one call; see ``Limits.timeout_s`` for what counts.
    """

    name = "python"
    description = f"Run a Python program in a fresh interpreter. {DESCRIPTION}"
    needs = "sandbox:python"
    kind: ToolKind = "pure"
    version = "2"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        code: Annotated[str, msgspec.Meta(description="The program, as plain Python text.")]

    def __init__(self, *, limit_chars: int = 8000, timeout_s: float = 10.0) -> None:
        self.limit_chars = limit_chars
        self.timeout_s = timeout_s

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        assert context.sandbox is not None
        result = await context.sandbox.execute(args.code, timeout_s=self.timeout_s)
        lost = self.kind == "stateful" and (result.session_lost or context.restarted)
        return present(
            result,
            limit_chars=self.limit_chars,
            timeout_s=self.timeout_s,
            note=LOST if lost else "",
        )
