"""What tools that ask a search index share."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from toolenvs.errors import RuntimeFailure
from toolenvs.neutral import HIDDEN
from toolenvs.protocols import ToolContext
from toolenvs.types import ToolError, ToolResult

_HIDDEN = re.compile(f"[{HIDDEN}\\u2800]")  # an empty pattern of Braille


async def ask(context: ToolContext, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the index and return its answer; see ``runtimes.index``.

    Raises:
        RuntimeFailure: The answer is none: the index failed.
    """
    assert context.sandbox is not None
    result = await context.sandbox.execute(json.dumps(request))
    try:
        answer = json.loads(result.stdout) if result.status == "ok" else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RuntimeFailure("search", f"the search index gave no answer ({result.status}).")
    return answer


def fault(message: str, kind: Any = "bad_arguments") -> ToolResult:
    """The result of a call that the agent got wrong."""
    return ToolResult(text=message, error=ToolError(kind, message))


def fault_of(answer: dict[str, Any]) -> ToolResult | None:
    """The result of a call that the index refused, None where it did not."""
    error = answer.get("error")
    return None if error is None else fault(str(error["message"]), error["kind"])


def is_blank(text: str) -> bool:
    """Tell whether nothing of a text is drawn: no more than blanks, controls and hidden marks."""
    shown = _HIDDEN.sub("", text)
    return all(char.isspace() or unicodedata.category(char)[0] == "C" for char in shown)


def one_line(text: str, *, most: int) -> str:
    """A text in one line of at most ``most`` characters, so that no document begins a line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: max(most - 3, 0)].rstrip() + "..."
