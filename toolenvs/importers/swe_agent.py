"""SWE-agent: a ``.traj`` file with ``history``, and ``trajectory`` where it was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._talk import (
    Asked,
    Event,
    Found,
    Heard,
    Said,
    left_over,
    read_call,
    read_object,
)
from toolenvs.types import ToolCall

SHELL = "bash"
"""The tool that text actions are calls of: SWE-agent runs them in its shell."""


class SweAgent:
    """One ``.traj`` file is one episode.

    Messages with ``tool_calls`` are read as they are. Where actions are text, each step of
    ``trajectory`` is a message (``response``), a call of the shell (``action``) and its result.

    Layout: https://swe-agent.com/latest/usage/trajectories/
    """

    name = "swe_agent"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("history"), list)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("a SWE-agent trajectory needs a list 'history'.")
        problems: list[str] = []
        events = tuple(_events(record, problems))
        info = record.get("info") or {}
        yield Found(
            events=events,
            task_id=str(record.get("environment") or ""),
            data={**left_over(record, "history", "trajectory"), "info": info},
            problems=tuple(problems),
        )


def _events(record: dict[str, Any], problems: list[str]) -> Iterator[Event]:
    history = record["history"]
    steps = record.get("trajectory")
    calls_are_data = any(isinstance(m, dict) and m.get("tool_calls") for m in history)
    if calls_are_data or not isinstance(steps, list):
        yield from _history(history, problems)
        return
    for entry in history:
        message = read_object(entry, "a message", problems)
        if message.get("role") == "assistant" and not message.get("is_demo"):
            break
        yield Asked(text=str(message.get("content", "")), role=str(message.get("role", "user")))
    for entry in steps:
        step = read_object(entry, "a step", problems)
        action = str(step.get("action") or "")
        calls = (ToolCall(SHELL, {"command": action}),) if action.strip() else ()
        yield Said(
            text=str(step.get("response") or ""),
            thought=str(step.get("thought") or ""),
            calls=calls,
        )
        observation = str(step.get("observation") or "")
        yield Heard(text=observation) if calls else Asked(text=observation)


def _history(history: list[Any], problems: list[str]) -> Iterator[Event]:
    for message in history:
        text_action = isinstance(message, dict) and message.get("action")
        if text_action and not message.get("tool_calls"):
            call = read_call(SHELL, {"command": message["action"]}, "", problems)
            yield Said(
                text=str(message.get("content") or ""),
                thought=str(message.get("thought") or ""),
                calls=(call,),
            )
        elif isinstance(message, dict) and message.get("message_type") == "observation":
            yield from read_messages([{**message, "role": "tool"}], problems)
        else:
            yield from read_messages([message], problems)
