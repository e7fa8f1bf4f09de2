"""OpenAI chat: ``{"messages": [...], "tools": [...]}``, also with typed parts as content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._talk import Found, left_over, read_reward


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
            raise DataError("an OpenAI chat needs a list 'messages'.")
        problems: list[str] = []
        events = tuple(read_messages(record["messages"], problems))
        reward = record.get("reward", record.get("score"))
        yield Found(
            events=events,
            task_id=str(record.get("id") or record.get("task_id") or ""),
            reward=read_reward(reward),
            data=left_over(record, "messages", "id"),
            problems=tuple(problems),
        )
