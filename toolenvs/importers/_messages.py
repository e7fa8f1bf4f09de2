"""Chat messages in OpenAI's layout and its variants, as what was said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolenvs.importers._notes import (
    Notes,
    read_content,
    read_list,
    read_object,
    read_text,
    shown,
)
from toolenvs.importers._reading import read_json
from toolenvs.importers._talk import Asked, Call, Event, Heard, Said, read_call
from toolenvs.types import ToolCall

_PEOPLE = ("user", "system", "developer")
_CALL_PARTS = ("tool_call", "tool_use")
_THOUGHT_PARTS = ("reasoning", "thinking")


def read_messages(
    messages: Any, notes: Notes, *, at: str = "messages", known: Sequence[str] = ()
) -> Iterator[Event]:
    """Read messages of the roles ``system``, ``developer``, ``user``, ``assistant`` and ``tool``.

    Args:
        messages: a list of them; what is no message is kept and told.
        notes: what is told.
        at: the place of the list within the record.
        known: keys of a message that the layout reads itself.
    """
    for number, message in enumerate(read_list(messages, at, notes)):
        yield from read_message(message, notes, at=f"{at}[{number}]", known=known)


def read_message(
    message: Any, notes: Notes, *, at: str, known: Sequence[str] = ()
) -> Iterator[Event]:
    """Read one message; none comes of what is no object with a role."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        notes.keep(at, message, f"a message must be an object with a 'role', not {shown(message)}")
        return
    role = message["role"]
    if role == "assistant":
        yield _said(message, notes, at, known)
        return
    text = read_content(message.get("content"), f"{at}.content", notes)
    if role in ("tool", "function"):
        key, identity = _answered(message)
        notes.rest(at, "a message", message, ("role", "content", key, *known))
        yield Heard(text=text, call_id=read_text(identity, f"{at}.{key}", notes), at=at)
        return
    if role not in _PEOPLE:
        notes.tell(at, f"the role {shown(role)} is not known; read as 'user'.")
        notes.rest(at, "a message", {"role": role}, ())
    notes.rest(at, "a message", message, ("role", "content", *known))
    yield Asked(text=text, role=role if role in _PEOPLE else "user", at=at)


def _said(message: Mapping[str, Any], notes: Notes, at: str, known: Sequence[str]) -> Said:
    content, calls = message.get("content"), []
    read = ["role", "content", "tool_calls", *known]
    for number, call in enumerate(read_list(message.get("tool_calls"), f"{at}.tool_calls", notes)):
        calls.append(_call(call, notes, f"{at}.tool_calls[{number}]"))
    if isinstance(message.get("function_call"), dict):
        read.append("function_call")
        calls.append(_function(message["function_call"], None, notes, f"{at}.function_call"))
    thought = refusal = ""
    for key in ("reasoning_content", "reasoning"):
        if not thought and isinstance(message.get(key), str):
            thought = message[key]
            read.append(key)
    if isinstance(message.get("refusal"), str):
        refusal = message["refusal"]
        read.append("refusal")
    if isinstance(content, list):
        calls += _typed_calls(content, notes, f"{at}.content")
        if not thought:
            thought, content = _typed_thought(content, notes, f"{at}.content")
    notes.rest(at, "a message", message, read)
    return Said(
        text=_typed_text(content, notes, f"{at}.content"),
        thought=thought,
        refusal=refusal,
        calls=tuple(calls),
        at=at,
    )


def _answered(message: Mapping[str, Any]) -> tuple[str, Any]:
    """The key under which a result names its call, and the id."""
    ids = message.get("tool_call_ids")
    if not message.get("tool_call_id") and isinstance(ids, list) and len(ids) == 1:
        return "tool_call_ids", ids[0]
    return "tool_call_id", message.get("tool_call_id")


def _call(call: Any, notes: Notes, at: str) -> Call:
    if not isinstance(call, dict):
        notes.keep(at, call, f"a call must be an object, not {shown(call)}")
        return Call(ToolCall("", {}), "")
    if isinstance(call.get("function"), str):  # Inspect: {"id", "function": NAME, "arguments": ...}
        notes.rest(at, "a call", _less_type(call), ("id", "function", "arguments"))
        return read_call(
            call["function"], call.get("arguments"), call.get("id"), at=at, notes=notes
        )
    if "function" not in call:
        return _function(_less_type(call), call.get("id"), notes, at)
    notes.rest(at, "a call", _less_type(call), ("id", "function"))
    function = read_object(call["function"], f"{at}.function", notes)
    return _function(function, call.get("id"), notes, at)


def _function(function: Mapping[str, Any], identity: Any, notes: Notes, at: str) -> Call:
    notes.rest(at, "a call", function, ("name", "arguments", "id"))
    return read_call(function.get("name"), function.get("arguments"), identity, at=at, notes=notes)


def _less_type(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call without the type that every call of a function has."""
    return {k: v for k, v in call.items() if k != "type" or v not in (None, "function")}


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


def _typed_calls(parts: Sequence[Any], notes: Notes, place: str) -> list[Call]:
    """Calls that are parts of the content."""
    calls = []
    for number, part in enumerate(parts):
        at = f"{place}[{number}]"
        if _kind(part) == "tool_use":
            notes.rest(at, "a call", part, ("type", "name", "input", "id"))
            calls.append(
                read_call(part.get("name"), part.get("input"), part.get("id"), at=at, notes=notes)
            )
        elif _kind(part) == "tool_call" and "value" in part:
            notes.rest(at, "a call", part, ("type", "value", "id"))
            calls += written_calls(part["value"], part.get("id"), notes, at)
        elif _kind(part) == "tool_call":
            written = {k: v for k, v in part.items() if k != "type"}
            calls.append(_function(written, part.get("id"), notes, at))
    return calls


def written_calls(value: Any, identity: Any, notes: Notes, at: str) -> list[Call]:
    """Calls that are written as JSON, one or a list; anything else is one without a name."""
    data = value
    if isinstance(value, str):
        try:
            data = read_json(value)
        except ValueError:
            data = None
    if isinstance(data, list) and data and all(isinstance(item, dict) for item in data):
        return [
            _function(item, item.get("id", identity), notes, f"{at}.value[{number}]")
            for number, item in enumerate(data)
        ]
    if isinstance(data, dict):
        return [_function(data, identity, notes, at)]
    notes.keep(f"{at}.value", value, f"a call must be a JSON object, not {shown(value)}")
    written = value if isinstance(value, str) else ""
    return [Call(ToolCall("", {"text": written} if written else {}), written)]


def _typed_thought(parts: Sequence[Any], notes: Notes, place: str) -> tuple[str, list[Any]]:
    """The thought that parts of the content hold, and the content without them."""
    texts, others = [], list(parts)
    for number, part in enumerate(parts):
        key = next((k for k in ("value", "thinking", "reasoning", "text") if _is_text(part, k)), "")
        if _kind(part) in _THOUGHT_PARTS and key:
            notes.rest(f"{place}[{number}]", "a part of a content", part, ("type", key))
            texts.append(part[key])
            others[number] = ""
    return "".join(texts), others


def _is_text(part: Any, key: str) -> bool:
    return isinstance(part, dict) and isinstance(part.get(key), str)


def _typed_text(content: Any, notes: Notes, at: str) -> str:
    """The text of a content but for its calls."""
    if isinstance(content, list):
        content = ["" if _kind(part) in _CALL_PARTS else part for part in content]
    return read_content(content, at, notes)
