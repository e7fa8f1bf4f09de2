"""What a model is shown of results: printable, neutralised, the error where there is no text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolenvs.neutral import neutralise, printable
from toolenvs.types import Message, ToolCall, ToolResult


def shown(result: ToolResult, reserved: Iterable[str] = (), *, every_tag: bool = False) -> str:
    """The text of one result; an error without a text shows its message."""
    text = result.text or (result.error.message if result.error is not None else "")
    return neutralise(printable(text), reserved, every_tag=every_tag)


def user_messages(texts: Sequence[str]) -> list[Message]:
    """One message of the user that holds all results, for formats whose calls are plain text."""
    return [{"role": "user", "content": "\n".join(texts)}] if texts else []


def tool_messages(
    calls: Sequence[ToolCall], texts: Sequence[str], *, ids: bool = False
) -> list[Message]:
    """A message of role ``tool`` for each call; of ``user`` when no call could be read.

    Args:
        calls: the calls that ran.
        texts: what their results show.
        ids: name each call by ``tool_call_id``, as OpenAI's API wants it.
    """
    if not calls:
        return user_messages(texts)
    messages: list[Message] = []
    for index, (call, text) in enumerate(zip(calls, texts, strict=False)):
        message: Message = {"role": "tool", "name": neutralise(printable(call.name))}
        if ids:
            message["tool_call_id"] = call.id or call_id(index)
        messages.append({**message, "content": text})
    return messages


def call_id(index: int) -> str:
    """The id of a call that came without one."""
    return f"call_{index}"
