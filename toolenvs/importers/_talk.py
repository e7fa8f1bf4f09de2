"""A conversation as a list of what was said, and the trajectory that it makes.

Every message of the agent is a step. The results of its calls, and what people say before its next
message, are the observation; what stands before its first message is the prompt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs import formats
from toolenvs.importers._reading import read_json
from toolenvs.types import ParsedTurn, Step, Task, ToolCall, ToolResult, Trajectory

FAMILY = "imported"
END_REASON = "imported"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the agent; ``calls`` hold arguments as they were read, see ``read_call``."""

    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: of the call with this id, else of the first without one."""

    text: str
    call_id: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person, or of the system."""

    text: str
    role: str = "user"


Event = Said | Heard | Asked


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One episode as its layout tells it.

    Attributes:
        events: what was said, in order.
        task_id: the layout's own id, ``""`` if it has none.
        answer: the gold answer, if the layout tells it.
        reward: the episode's reward, None if none was recorded.
        data: everything else of the record.
        problems: what could not be mapped.
    """

    events: tuple[Event, ...]
    task_id: str = ""
    answer: str = ""
    reward: float | None = None
    data: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()


def assembled(found: Found, *, task_id: str, layout: str) -> tuple[Trajectory, list[str]]:
    """Make the trajectory, and tell what did not fit into it."""
    problems = list(found.problems)
    first = next((i for i, event in enumerate(found.events) if isinstance(event, Said)), None)
    if first is None:
        problems.append("the agent says nothing: the episode has no step.")
        first = len(found.events)
    before, after = found.events[:first], found.events[first:]
    prompt = "\n\n".join(_text_of(event, problems) for event in before)
    steps = [_step(turn, number, problems) for number, turn in enumerate(_turns(after))]
    if steps:
        steps[-1] = _ended(steps[-1], found.reward)
    elif found.reward is not None:
        problems.append(f"the reward {found.reward:g} belongs to no step.")
    task = Task(
        id=task_id,
        prompt="\n\n".join(event.text for event in before if _is_question(event)) or prompt,
        answer=found.answer,
        family=FAMILY,
        data={"layout": layout, **found.data},
    )
    return Trajectory(task=task, prompt=prompt, steps=tuple(steps)), problems


def read_call(name: Any, arguments: Any, call_id: Any, problems: list[str]) -> ToolCall:
    """A call as a layout writes it; arguments that are no JSON object are kept as a text."""
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except ValueError:
            problems.append(f"the arguments of {name!r} are no JSON; kept as the text 'arguments'.")
            arguments = {"arguments": arguments}
    if not isinstance(arguments, dict):
        problems.append(f"the arguments of {name!r} are no object; kept as 'arguments'.")
        arguments = {"arguments": arguments}
    return ToolCall(str(name), arguments, "" if call_id is None else str(call_id))


def read_content(content: Any, problems: list[str]) -> str:
    """The text of a message whose content is a text, null, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    texts = []
    for part in content:
        known = part if isinstance(part, dict) else {"text": part, "type": type(part).__name__}
        text = known.get("text", known.get("value"))
        if isinstance(text, str):
            texts.append(text)
        else:
            kind = known.get("type", "?")
            problems.append(f"a part of type {kind!r} is no text and is left out.")
    return "".join(texts)


def read_object(value: Any, what: str, problems: list[str]) -> Mapping[str, Any]:
    """An object of a record, an empty one where there is none; anything else is told."""
    if isinstance(value, dict):
        return value
    if value is not None:
        problems.append(f"{what} is no object and is left out.")
    return {}


def read_list(value: Any, what: str, problems: list[str]) -> Sequence[Any]:
    """A list of a record, an empty one where there is none; anything else is told."""
    if isinstance(value, list):
        return value
    if value is not None:
        problems.append(f"{what} is no list and is left out.")
    return ()


def read_reward(value: Any) -> float | None:
    """A reward, None where it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        reward = float(value)
    except OverflowError:
        return None
    return reward if math.isfinite(reward) else None


def left_over(record: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """What a record holds besides the fields that were read."""
    return {key: value for key, value in record.items() if key not in known}


def _turns(events: Sequence[Event]) -> list[tuple[Said, list[Event]]]:
    turns: list[tuple[Said, list[Event]]] = []
    for event in events:
        if isinstance(event, Said):
            turns.append((event, []))
        else:
            turns[-1][1].append(event)
    return turns


def _step(turn: tuple[Said, list[Event]], number: int, problems: list[str]) -> Step:
    said, replies = turn
    results: dict[int, ToolResult] = {}
    for event in replies:
        if isinstance(event, Heard):
            place = _call_of(said, event, results)
            if place is None:
                problems.append(f"message {number}: a result answers no call; it is only shown.")
            else:
                results[place] = ToolResult(event.text)
    for place, call in enumerate(said.calls):
        if place not in results:
            problems.append(f"message {number}: no result of {call.name!r} was recorded.")
            results[place] = ToolResult("", note="no result was recorded")
    return Step(
        action=_action(said),
        parsed=ParsedTurn(calls=said.calls, thought=said.thought),
        calls=said.calls,
        results=tuple(results[place] for place in range(len(said.calls))),
        observation="\n\n".join(event.text for event in replies),
    )


def _call_of(said: Said, heard: Heard, results: Mapping[int, ToolResult]) -> int | None:
    free = [place for place in range(len(said.calls)) if place not in results]
    if heard.call_id:
        named = [place for place in free if said.calls[place].id == heard.call_id]
        return named[0] if named else None
    return free[0] if free else None


def _action(said: Said) -> str:
    """The message's own text; with calls, the message as a chat API would write it."""
    if not said.calls:
        return said.text
    text: str = formats.make("openai").compose(said.calls, said.text)
    return text


def _ended(step: Step, reward: float | None) -> Step:
    paid = {} if reward is None else {"reward": reward, "terms": {"imported": reward}}
    return msgspec.structs.replace(step, terminated=True, end_reason=END_REASON, **paid)


def _is_question(event: Event) -> bool:
    return isinstance(event, Asked) and event.role == "user"


def _text_of(event: Event, problems: list[str]) -> str:
    if isinstance(event, Heard):
        problems.append("a result stands before the agent's first message; it is in the prompt.")
    assert not isinstance(event, Said)
    return event.text
