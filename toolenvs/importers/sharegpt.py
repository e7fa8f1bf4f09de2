"""ShareGPT: ``{"conversations": [{"from": ..., "value": ...}], "tools": "..."}``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import json_object
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said, left_over, read_call

_PEOPLE = {"human": "user", "user": "user", "system": "system"}


class Sharegpt:
    """Conversations with ``function_call`` and ``observation``, as LLaMA-Factory stores them.

    Layout: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md, "ShareGPT format".
    """

    name = "sharegpt"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("conversations"), list)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("a ShareGPT row needs a list 'conversations'.")
        problems: list[str] = []
        events = [_event(message, problems) for message in record["conversations"]]
        if isinstance(record.get("system"), str) and record["system"]:
            events.insert(0, Asked(text=record["system"], role="system"))
        yield Found(
            events=tuple(events),
            task_id=str(record.get("id") or ""),
            data=left_over(record, "conversations", "system", "id"),
            problems=tuple(problems),
        )


def _event(message: Any, problems: list[str]) -> Event:
    if not isinstance(message, dict) or not isinstance(message.get("value"), str):
        raise DataError("each item of 'conversations' must have a text 'value'.")
    who, text = str(message.get("from")), message["value"]
    if who in ("gpt", "assistant"):
        return Said(text=text)
    if who == "function_call":
        call = json_object(text, problems)
        return Said(calls=(read_call(call.get("name"), call.get("arguments"), "", problems),))
    if who in ("observation", "tool", "function_response"):
        return Heard(text=text)
    if who not in _PEOPLE:
        problems.append(f"the speaker {who!r} is not known; read as 'human'.")
    return Asked(text=text, role=_PEOPLE.get(who, "user"))
