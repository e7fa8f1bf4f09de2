"""What a model is shown of results: printable, neutralised, the error where there is no text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from toolenvs.neutral import neutralise, printable
from toolenvs.types import Message, ToolCall, ToolResult

_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


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
    for call, identity, text in zip(calls, call_ids(calls), texts, strict=False):
        message: Message = {"role": "tool", "name": neutralise(printable(call.name))}
        if ids:
            message["tool_call_id"] = identity
        messages.append({**message, "content": text})
    return messages


def is_plain_id(identity: str) -> bool:
    """Tell whether an id is 1 to 128 letters, digits and ``_ . : -``, which mean nothing."""
    return _PLAIN_ID.fullmatch(identity) is not None


def call_ids(calls: Sequence[ToolCall]) -> list[str]:
    """The id of each call, ``call_0`` ... in place of one that is missing, not plain or taken."""
    theirs = {call.id for call in calls}
    ids: list[str] = []
    for index, call in enumerate(calls):
        identity = call.id
        if not is_plain_id(identity) or identity in ids:
            made = (f"call_{number}" for number in itertools.count(index))
            identity = next(name for name in made if name not in theirs and name not in ids)
        ids.append(identity)
    return ids
