"""What of an agent's doing is answered and never run, since no record could hold it whole."""

from __future__ import annotations

from toolenvs import exactjson
from toolenvs.errors import UsageError
from toolenvs.spaces import MAX_CHARS
from toolenvs.types import ErrorKind, ParsedTurn, ToolCall, ToolError, ToolResult, Turn

MAX_DEPTH = 64
"""Levels of a call's arguments; a record can hold some more."""

_TOO_LONG = f"the message has more than {MAX_CHARS:,} characters; nothing of it was run."


def refusal(kind: ErrorKind, message: str) -> ToolResult:
    """The result of a call that was not run."""
    return ToolResult(text=message, error=ToolError(kind, message))


def bounded(turn: Turn) -> Turn:
    """The message, or as much of it as shows that it is too long: so it replays as it went."""
    if len(turn) <= MAX_CHARS:
        return turn
    return Turn(
        turn[: MAX_CHARS + 1],
        turn.finish_reason,
        turn.stop_string,
        turn.token_ids,
        turn.logprobs,
        turn.policy_version,
    )


def too_long(turn: Turn) -> ParsedTurn | None:
    """How a message is read that is longer than one may be; None for any other."""
    if len(turn) <= MAX_CHARS:
        return None
    return ParsedTurn(error=ToolError("format", _TOO_LONG), problems=(_TOO_LONG,))


def why_unrecorded(call: ToolCall) -> str:
    """Why no record can hold a call's arguments, ``""`` if one can."""
    if exactjson.is_deeper(call.arguments, MAX_DEPTH):
        return f"arguments are nested more than {MAX_DEPTH} levels deep."
    try:
        exactjson.encode(call.arguments, name="arguments")
    except UsageError as error:
        return str(error)
    return ""
