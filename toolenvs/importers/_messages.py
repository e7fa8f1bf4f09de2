"""Chat messages in OpenAI's layout and its variants, as what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._reading import read_json
from toolenvs.importers._talk import (
    Asked,
    Event,
    Heard,
    Said,
    read_call,
    read_content,
    read_list,
    read_object,
)
from toolenvs.types import ToolCall

_PEOPLE = ("user", "system", "developer")


def read_messages(messages: Any, problems: list[str]) -> Iterator[Event]:
    """Read messages of the roles ``system``, ``developer``, ``user``, ``assistant`` and ``tool``.

    Raises:
        DataError: They are no list of objects with a role.
    """
    if not isinstance(messages, list):
        raise DataError("'messages' must be a list.")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or "role" not in message:
            raise DataError(f"message {number} must be an object with a 'role'.")
        role = message["role"]
        if role == "assistant":
            yield _said(message, problems)
        elif role in ("tool", "function"):
            text = read_content(message.get("content"), problems)
            yield Heard(text=text, call_id=str(message.get("tool_call_id") or _sole_id(message)))
        else:
            if role not in _PEOPLE:
                problems.append(
                    f"message {number}: the role {role!r} is not known; read as 'user'."
                )
            told = role if role in _PEOPLE else "user"
            yield Asked(text=read_content(message.get("content"), problems), role=told)


def _said(message: Mapping[str, Any], problems: list[str]) -> Said:
    content = message.get("content")
    asked = read_list(message.get("tool_calls"), "'tool_calls'", problems)
    calls = [_call(call, problems) for call in asked]
    if isinstance(message.get("function_call"), dict):
        old = message["function_call"]
        calls.append(read_call(old.get("name"), old.get("arguments"), "", problems))
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    if isinstance(content, list):
        calls += _typed_calls(content, problems)
        thought = thought or _typed(content, ("reasoning", "thinking"), problems)
        content = [part for part in content if not _is_typed(part)]
    return Said(
        text=read_content(content, problems),
        thought=thought if isinstance(thought, str) else json.dumps(thought),
        calls=tuple(calls),
    )


def _call(call: Any, problems: list[str]) -> ToolCall:
    if not isinstance(call, dict):
        problems.append("a tool call is no object; kept by its text.")
        return ToolCall("", {"call": call})
    function = call.get("function", call)
    if isinstance(function, str):  # Inspect: {"id", "function": NAME, "arguments": {...}}
        return read_call(function, call.get("arguments"), call.get("id"), problems)
    function = read_object(function, "'function' of a call", problems)
    return read_call(function.get("name"), function.get("arguments"), call.get("id"), problems)


def _is_typed(part: Any) -> bool:
    kinds = ("tool_call", "reasoning", "thinking", "tool_use")
    return isinstance(part, dict) and part.get("type") in kinds


def _typed_calls(parts: Sequence[Any], problems: list[str]) -> list[ToolCall]:
    """Calls that are parts of the content."""
    calls = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        if part.get("type") == "tool_use":
            calls.append(read_call(part.get("name"), part.get("input"), part.get("id"), problems))
        elif part.get("type") == "tool_call":
            written = part.get("value", part)
            if isinstance(written, str):
                written = json_object(written, problems)
            written = read_object(written, "a call", problems)
            calls.append(
                read_call(written.get("name"), written.get("arguments"), part.get("id"), problems)
            )
    return calls


def _typed(parts: Sequence[Any], kinds: Sequence[str], problems: list[str]) -> str:
    found = [part for part in parts if isinstance(part, dict) and part.get("type") in kinds]
    texts = [part.get("value") or part.get("thinking") or part.get("reasoning") for part in found]
    return read_content([text if text is not None else {} for text in texts], problems)


def json_object(text: str, problems: list[str]) -> dict[str, Any]:
    """An object that is written as JSON; otherwise its text under ``arguments``, without a name."""
    try:
        data = read_json(text)
    except ValueError:
        data = None
    if isinstance(data, dict):
        return data
    problems.append("a call is no JSON object; kept by its text.")
    return {"name": "", "arguments": {"text": text}}


def _sole_id(message: Mapping[str, Any]) -> str:
    ids = message.get("tool_call_ids")
    return str(ids[0]) if isinstance(ids, list) and len(ids) == 1 else ""
