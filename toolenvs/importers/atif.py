"""ATIF: ``{"schema_version": "ATIF-v1.x", "session_id": ..., "agent": ..., "steps": [...]}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._talk import (
    Asked,
    Event,
    Found,
    Heard,
    Said,
    left_over,
    read_call,
    read_content,
    read_list,
    read_object,
)
from toolenvs.types import ToolCall

_PEOPLE = ("user", "system")


class Atif:
    """One document is one episode; an agent's step holds its message, calls and observation.

    Layout: the Harbor project's RFC "Agent Trajectory Interchange Format", version 1.
    """

    name = "atif"

    def matches(self, record: Any) -> bool:
        return (
            isinstance(record, dict)
            and str(record.get("schema_version", "")).startswith("ATIF")
            and isinstance(record.get("steps"), list)
        )

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("an ATIF document needs 'schema_version' ATIF-v1 and a list 'steps'.")
        problems: list[str] = []
        events = [event for step in record["steps"] for event in _step(step, problems)]
        yield Found(
            events=tuple(events),
            task_id=str(record.get("session_id") or ""),
            data=left_over(record, "steps"),
            problems=tuple(problems),
        )


def _step(step: Any, problems: list[str]) -> Iterator[Event]:
    if not isinstance(step, dict) or "source" not in step:
        raise DataError("each step of an ATIF document must be an object with a 'source'.")
    text = read_content(step.get("message"), problems)
    if step["source"] in _PEOPLE:
        yield Asked(text=text, role=step["source"])
        return
    if step["source"] != "agent":
        problems.append(f"the source {step['source']!r} is not known; read as 'agent'.")
    asked = read_list(step.get("tool_calls"), "'tool_calls'", problems)
    calls = [_call(read_object(call, "a tool call", problems), problems) for call in asked]
    yield Said(text=text, thought=str(step.get("reasoning_content") or ""), calls=tuple(calls))
    observation = read_object(step.get("observation"), "'observation'", problems)
    for entry in read_list(observation.get("results"), "'results'", problems):
        result = read_object(entry, "a result", problems)
        heard = read_content(result.get("content"), problems)
        if calls:
            yield Heard(text=heard, call_id=str(result.get("source_call_id") or ""))
        else:
            yield Asked(text=heard, role="user")


def _call(call: Mapping[str, Any], problems: list[str]) -> ToolCall:
    return read_call(
        call.get("function_name"), call.get("arguments"), call.get("tool_call_id"), problems
    )
