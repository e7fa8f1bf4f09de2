"""SWE-agent: a ``.traj`` file with ``history``, and ``trajectory`` where it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_message
from toolenvs.importers._notes import Notes, left_over, read_content, read_text, shown
from toolenvs.importers._talk import Asked, Call, Event, Found, Heard, Said, read_call

SHELL = "bash"
"""The tool that text actions are calls of: SWE-agent runs them in its shell."""

_ROW = ("history", "trajectory", "info", "environment")
_KIND = "message_type"
_STEP = ("response", "thought", "action", "observation")


class SweAgent:
    """One ``.traj`` file is one episode.

    Messages with ``tool_calls`` are read from ``history``. Where actions are text, each step of
    ``trajectory`` is a message (``response``), a call of the shell (``action``) and its result,
    unless ``history`` tells more messages. The account that is not read is in the task's data.

    Layout: https://swe-agent.com/latest/usage/trajectories/
    """

    name = "swe_agent"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("history"), list)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError(f"a SWE-agent trajectory needs a list 'history', not {shown(record)}.")
        notes = Notes()
        history, steps = record["history"], record.get("trajectory")
        data = left_over(record, "history", "trajectory")
        if isinstance(steps, list) and _tells_more(steps, history):
            begin = next((n for n, message in enumerate(history) if _is_agents(message)), None)
            asked = history if begin is None else history[:begin]
            events = [*_history(asked, notes), *_steps(steps, notes)]
            data["history"] = history[len(asked) :]
        else:
            events = list(_history(history, notes))
            if "trajectory" in record:
                data["trajectory"] = steps
        for name in ("history", "trajectory"):
            if data.get(name):
                notes.tell(
                    "", f"'{name}' tells the same again and is not mapped; kept in the task's data."
                )
        notes.row(record, _ROW)
        yield Found(
            events=tuple(events),
            notes=notes,
            task_id=read_text(record.get("environment"), "environment", notes),
            data=data,
        )


def _tells_more(steps: Sequence[Any], history: Sequence[Any]) -> bool:
    """Tell whether ``trajectory`` tells all that the agent said: calls are only in ``history``."""
    if any(isinstance(message, dict) and message.get("tool_calls") for message in history):
        return False
    told = [step for step in steps if isinstance(step, dict)]
    return bool(told) and len(told) >= sum(map(_is_agents, history))


def _is_agents(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("role") == "assistant"
        and not message.get("is_demo")
    )


def _steps(steps: Sequence[Any], notes: Notes) -> Iterator[Event]:
    for number, step in enumerate(steps):
        at = f"trajectory[{number}]"
        if not isinstance(step, dict):
            notes.keep(at, step, f"a step must be an object, not {shown(step)}")
            continue
        notes.rest(at, "a step", step, _STEP)
        said = _spoken(step, "response", at, notes)
        yield said
        if step.get("observation") is not None:
            text = read_content(step["observation"], f"{at}.observation", notes)
            yield Heard(text=text, at=at) if said.calls else Asked(text=text, at=at)


def _spoken(fields: Mapping[str, Any], key: str, at: str, notes: Notes) -> Said:
    """A message whose action is text of its own."""
    action = read_text(fields.get("action"), f"{at}.action", notes)
    calls: tuple[Call, ...] = ()
    if action.strip():
        calls = (read_call(SHELL, {"command": action}, "", at=at, notes=notes),)
    return Said(
        text=read_content(fields.get(key), f"{at}.{key}", notes),
        thought=read_text(fields.get("thought"), f"{at}.thought", notes),
        calls=calls,
        spoken=True,
        at=at,
    )


def _history(history: Sequence[Any], notes: Notes) -> Iterator[Event]:
    spoke = False  # before that, an observation is the task
    acted = False  # the message before was a text action: what comes now is its result
    for number, message in enumerate(history):
        at = f"history[{number}]"
        fields = message if isinstance(message, dict) else {}
        if fields.get("is_demo"):
            yield _demo(fields, at, notes)
            continue
        if _is_agents(message) and fields.get("action") and not fields.get("tool_calls"):
            notes.rest(at, "a message", fields, ("role", "content", "thought", "action", _KIND))
            yield _spoken(fields, "content", at, notes)
            spoke = acted = True
            continue
        observes = spoke and fields.get(_KIND) == "observation"
        if observes or (acted and fields.get("role") == "user"):
            message = {**fields, "role": "tool"}
        same = fields.get("thought") == fields.get("content")
        known = (_KIND, "is_demo", *(("thought",) if same else ()))
        yield from read_message(message, notes, at=at, known=known)
        spoke, acted = spoke or _is_agents(message), False


def _demo(fields: Mapping[str, Any], at: str, notes: Notes) -> Asked:
    """A message of a demonstration, whoever speaks in it: the agent was shown it."""
    notes.rest(at, "a message", fields, ("role", "content", "is_demo", _KIND))
    text = read_content(fields.get("content"), f"{at}.content", notes)
    return Asked(text=text, at=at)
