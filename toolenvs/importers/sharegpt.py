"""ShareGPT: ``{"conversations": [{"from": ..., "value": ...}], "tools": "..."}``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import written_calls
from toolenvs.importers._notes import Notes, left_over, read_content, read_text, shown
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said

_PEOPLE = {"human": "user", "user": "user", "system": "system"}
_ROW = ("conversations", "system", "tools", "id")


class Sharegpt:
    """Conversations with ``function_call`` and ``observation``, as LLaMA-Factory stores them.

    Layout: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md, "ShareGPT format".
    """

    name = "sharegpt"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("conversations"), list)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError(f"a ShareGPT row needs a list 'conversations', not {shown(record)}.")
        notes = Notes()
        events = [
            event
            for number, message in enumerate(record["conversations"])
            for event in _events(message, f"conversations[{number}]", notes)
        ]
        system = read_text(record.get("system"), "system", notes)
        if system:
            events.insert(0, Asked(text=system, role="system", at="system"))
        notes.row(record, _ROW)
        yield Found(
            events=tuple(events),
            notes=notes,
            task_id=read_text(record.get("id"), "id", notes),
            data=left_over(record, "conversations", "system"),
        )


def _events(message: Any, at: str, notes: Notes) -> Iterator[Event]:
    if not isinstance(message, dict) or not isinstance(message.get("from"), str):
        notes.keep(
            at,
            message,
            f"a message must be an object with 'from' and 'value', not {shown(message)}",
        )
        return
    notes.rest(at, "a message", message, ("from", "value"))
    who, value = message["from"], message.get("value")
    if who == "function_call":
        yield Said(calls=tuple(written_calls(value, None, notes, at)), at=at)
        return
    text = read_content(value, f"{at}.value", notes)
    if who in ("gpt", "assistant"):
        yield Said(text=text, at=at)
    elif who in ("observation", "tool", "function_response"):
        yield Heard(text=text, at=at)
    else:
        if who not in _PEOPLE:
            notes.tell(at, f"the speaker {shown(who)} is not known; read as 'human'.")
            notes.rest(at, "a message", {"from": who}, ())
        yield Asked(text=text, role=_PEOPLE.get(who, "user"), at=at)
