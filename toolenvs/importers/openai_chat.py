"""OpenAI chat: ``{"messages": [...], "tools": [...]}``, also with typed parts as content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._notes import Notes, left_over, read_reward, read_text, shown
from toolenvs.importers._talk import Found

_ROW = ("messages", "tools", "id", "task_id", "reward", "score")


class OpenaiChat:
    """Chat messages with ``tool_calls``, as OpenAI's API takes them and datasets store them.

    Layout: https://platform.openai.com/docs/api-reference/chat/create; typed parts (``reasoning``,
    ``tool_call``, ``text``) as LLaMA-Factory writes them. A number under ``reward`` or ``score`` is
    the episode's reward.
    """

    name = "openai_chat"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("messages"), list)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError(f"an OpenAI chat needs a list 'messages', not {shown(record)}.")
        notes = Notes()
        events = tuple(read_messages(record["messages"], notes))
        notes.row(record, _ROW)
        identity = "task_id" if record.get("id") in (None, "") else "id"
        paid = "score" if record.get("reward") is None else "reward"
        yield Found(
            events=events,
            notes=notes,
            task_id=read_text(record.get(identity), identity, notes),
            reward=read_reward(record.get(paid), paid, notes),
            data=left_over(record, "messages"),
        )
