"""Submit the final answer: ends the episode."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from toolenvs.neutral import restore
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.types import ToolResult

_Answer = Annotated[
    str | int | float, msgspec.Meta(description="The answer alone, without explanation.")
]


class Submit:
    """Submit the final answer, once; whatever is called after it is not run.

    What was copied out of an observation is handed in as it stood before it was neutralised.

    Args:
        cites: whether an answer may name the ids of the passages that support it.
    """

    name = "submit"
    description = "Submit the final answer. This ends the episode."
    needs = ""
    kind: ToolKind = "pure"
    version = "2"
    instant = True  # its result is its argument: nothing to record, and nothing to miss

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        answer: _Answer

    class CitingArgs(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call that may cite."""

        answer: _Answer
        citations: Annotated[
            list[str | int],
            msgspec.Meta(description="The ids of the passages that support the answer."),
        ] = []

    def __init__(self, *, cites: bool = False) -> None:
        self.cites = cites
        if cites:
            self.Args = self.CitingArgs  # type: ignore[misc,assignment]

    async def run(self, args: Any, context: ToolContext) -> ToolResult:
        data: dict[str, Any] = {"answer": restore(str(args.answer))}
        if self.cites:
            data["citations"] = [restore(str(name)) for name in args.citations]
        return ToolResult(text="", data=data, terminal=True)
