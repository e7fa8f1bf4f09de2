"""Run Python in one interpreter that keeps its variables and files for the whole episode."""

from __future__ import annotations

from typing import Annotated

import msgspec

from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools._python_output import DESCRIPTION, LOST, present
from toolenvs.types import ToolResult


class PythonSession:
    """Run Python in the episode's own interpreter, as the cells of a notebook.

    When the interpreter dies (killed, out of memory, a time limit it did not heed) the result says
    so, the next call gets a new one, and its result says so again.

    Args:
        limit_chars: most characters that the agent reads of one call.
        timeout_s: seconds for one call; see ``Limits.timeout_s`` for what counts.
    """

    name = "python_session"
    description = (
        "Run Python in a session that keeps its variables and files from one call to the next. "
        + DESCRIPTION
    )
    needs = "sandbox:python"
    kind: ToolKind = "stateful"
    version = "1"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        code: Annotated[str, msgspec.Meta(description="The code, as plain Python text.")]

    def __init__(self, *, limit_chars: int = 8000, timeout_s: float = 10.0) -> None:
        self.limit_chars = limit_chars
        self.timeout_s = timeout_s

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        assert context.sandbox is not None
        result = await context.sandbox.execute(args.code, timeout_s=self.timeout_s)
        note = LOST if result.session_lost or context.restarted else ""
        return present(result, limit_chars=self.limit_chars, timeout_s=self.timeout_s, note=note)
