"""ATIF: ``{"schema_version": "ATIF-v1.x", "session_id": ..., "agent": ..., "steps": [...]}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._notes import (
    Notes,
    left_over,
    read_content,
    read_list,
    read_object,
    read_text,
    read_tokens,
    shown,
)
from toolenvs.importers._talk import Asked, Call, Event, Found, Heard, Said, read_call

_PEOPLE = ("user", "system")
_ROW = ("schema_version", "session_id", "agent", "steps", "notes", "final_metrics", "extra")
_IDS, _LOGPROBS = "completion_token_ids", "logprobs"


class Atif:
    """One document is one episode; an agent's step holds its message, calls and observation.

    Token ids with log-probabilities, where the metrics of a step have both, are the step's.

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
            raise DataError(
                "an ATIF document needs 'schema_version' ATIF-v1 and a list 'steps', not "
                f"{shown(record)}."
            )
        notes = Notes()
        events = [
            event
            for number, step in enumerate(record["steps"])
            for event in _step(step, number, notes)
        ]
        notes.row(record, _ROW)
        yield Found(
            events=tuple(events),
            notes=notes,
            task_id=read_text(record.get("session_id"), "session_id", notes),
            data=left_over(record, "steps"),
        )


def _step(step: Any, number: int, notes: Notes) -> Iterator[Event]:
    at = f"steps[{number}]"
    if not isinstance(step, dict) or not isinstance(step.get("source"), str):
        notes.keep(at, step, f"a step must be an object with a 'source', not {shown(step)}")
        return
    known = ["source", "message", *(["step_id"] if step.get("step_id") == number + 1 else [])]
    text = read_content(step.get("message"), f"{at}.message", notes)
    if step["source"] in _PEOPLE:
        notes.rest(at, "a step", step, known)
        yield Asked(text=text, role=step["source"], at=at)
        return
    if step["source"] != "agent":
        notes.tell(at, f"the source {shown(step['source'])} is not known; read as 'agent'.")
        notes.rest(at, "a step", {"source": step["source"]}, ())
    metrics = read_object(step.get("metrics"), f"{at}.metrics", notes)
    token_ids, logprobs = read_tokens(metrics, _IDS, _LOGPROBS)
    notes.rest(
        f"{at}.metrics", "the metrics of a step", metrics, (_IDS, _LOGPROBS) if token_ids else ()
    )
    known += ["metrics", "reasoning_content", "tool_calls", "observation"]
    notes.rest(at, "a step", step, known)
    asked = read_list(step.get("tool_calls"), f"{at}.tool_calls", notes)
    calls = tuple(_call(call, f"{at}.tool_calls[{n}]", notes) for n, call in enumerate(asked))
    thought = read_text(step.get("reasoning_content"), f"{at}.reasoning_content", notes)
    yield Said(
        text=text, thought=thought, calls=calls, token_ids=token_ids, logprobs=logprobs, at=at
    )
    yield from _observed(step.get("observation"), bool(calls), f"{at}.observation", notes)


def _observed(observation: Any, called: bool, at: str, notes: Notes) -> Iterator[Event]:
    whole = read_object(observation, at, notes)
    notes.rest(at, "an observation", whole, ("results",))
    for number, entry in enumerate(read_list(whole.get("results"), f"{at}.results", notes)):
        place = f"{at}.results[{number}]"
        result: Mapping[str, Any] = read_object(entry, place, notes)
        if not result:
            continue
        known = ("content", "source_call_id") if called else ("content",)
        notes.rest(place, "a result", result, known)
        heard = read_content(result.get("content"), f"{place}.content", notes)
        if called:
            call_id = read_text(result.get("source_call_id"), f"{place}.source_call_id", notes)
            yield Heard(text=heard, call_id=call_id, at=place)
        else:
            yield Asked(text=heard, role="user", at=place)


def _call(call: Any, at: str, notes: Notes) -> Call:
    fields = read_object(call, at, notes)
    notes.rest(at, "a call", fields, ("function_name", "arguments", "tool_call_id"))
    return read_call(
        fields.get("function_name"),
        fields.get("arguments"),
        fields.get("tool_call_id"),
        at=at,
        notes=notes,
    )
