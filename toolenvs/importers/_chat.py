"""A message of the agent as the text of an action, and imported episodes as chat messages again.

An action is the text that the message showed. A message that holds more (calls, a thought apart
from the text, a refusal) is that message as JSON, with every text in it as it was; so is a text
that could be taken for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.errors import UsageError
from toolenvs.types import Message, Step, ToolCall, Trajectory

HEARD = "heard"
"""Key of a task's data: the messages before the first step, then those after each step."""

CALL = "call"
"""Stands in a message for the result of the step's call with this number."""


def write_action(
    text: str,
    *,
    thought: str = "",
    refusal: str = "",
    calls: Sequence[tuple[ToolCall, str]] = (),
) -> str:
    """Write a message of the agent; calls come with their arguments as they were written."""
    if not (thought or refusal or calls) and _read_message(text) is None:
        return text
    message: Message = {"role": "assistant", "content": text or None}
    if refusal:
        message["refusal"] = refusal
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [_written(call, arguments) for call, arguments in calls]
    return json.dumps(message, ensure_ascii=False)


def chat_messages(trajectory: Trajectory) -> list[Message]:
    """An imported episode as chat messages in OpenAI's layout.

    Texts, thoughts (``reasoning_content``), calls with their ids and arguments, and results are as
    they were read. Results of calls that stand in a text, such as ReAct's, are the user's messages.

    Raises:
        UsageError: The episode was not imported.
    """
    heard = trajectory.task.data.get(HEARD)
    if not isinstance(heard, list | tuple) or len(heard) != len(trajectory.steps) + 1:
        raise UsageError(
            f"task {trajectory.task.id!r} does not tell who said what: it was not imported."
        )
    messages: list[Message] = [dict(message) for message in heard[0]]
    for step, following in zip(trajectory.steps, heard[1:], strict=True):
        said = _read_message(step.action)
        said = {"role": "assistant", "content": step.action} if said is None else said
        messages.append(said)
        messages += [_answer(entry, step, said) for entry in following]
    return messages


def _written(call: ToolCall, arguments: str) -> dict[str, Any]:
    named = {"id": call.id} if call.id else {}
    return {
        **named,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _read_message(text: str) -> Message | None:
    """The message that a text is, None if it is just a text."""
    if not text.startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and data.get("role") == "assistant" else None


def _answer(entry: Mapping[str, Any], step: Step, said: Message) -> Message:
    if CALL not in entry:
        return dict(entry)
    place = entry[CALL]
    text = step.results[place].text
    if "tool_calls" not in said:
        return {"role": "user", "content": text}
    identity = step.calls[place].id
    named = {"tool_call_id": identity} if identity else {}
    return {"role": "tool", **named, "content": text}
