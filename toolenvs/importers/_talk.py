"""A conversation as a list of what was said, and the trajectory that it makes.

Every message of the agent is a step. The results of its calls, and what people say before its next
message, are the observation; what stands before its first message is the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.importers import _chat
from toolenvs.importers._notes import Notes, read_text, shown
from toolenvs.importers._reading import read_json
from toolenvs.recorded import IMPORTED
from toolenvs.types import Message, ParsedTurn, Step, Task, ToolCall, ToolResult, Trajectory

FAMILY = "imported"
END_REASON = "imported"
LAYOUT, UNMAPPED = "layout", "unmapped"
"""Keys of a task's data, beside the fields of the row and ``_chat.HEARD``."""


class Call(msgspec.Struct, frozen=True):
    """A call, and its arguments as the agent wrote them."""

    tool: ToolCall
    written: str


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the agent.

    Attributes:
        text: what it shows, as it was.
        thought: what it thought.
        refusal: what it said instead, where the layout tells a refusal apart.
        calls: what it called.
        spoken: True where thought and calls stand in the text already.
        token_ids, logprobs: as they were sampled, if the layout tells them.
        at: the place within the record.
    """

    text: str = ""
    thought: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    spoken: bool = False
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    at: str = ""

    @property
    def tools(self) -> tuple[ToolCall, ...]:
        """The calls as steps have them."""
        return tuple(call.tool for call in self.calls)

    def action(self) -> str:
        """The whole message as one text, see ``_chat``."""
        if self.spoken:
            return _chat.write_action(self.text)
        return _chat.write_action(
            self.text,
            thought=self.thought,
            refusal=self.refusal,
            calls=[(call.tool, call.written) for call in self.calls],
        )


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: of the call with this id, else of the first without a result."""

    text: str
    call_id: str = ""
    at: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person, or of the system."""

    text: str
    role: str = "user"
    at: str = ""


Event = Said | Heard | Asked


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One episode as its layout tells it.

    Attributes:
        events: what was said, in order.
        notes: what could not be mapped.
        task_id: the layout's own id, ``""`` if it has none.
        answer: the gold answer, if the layout tells it.
        reward: the episode's reward, None if none was recorded.
        data: every other field of the row, under its own name.
        about: what the layout keeps besides, under names of its own.
    """

    events: tuple[Event, ...]
    notes: Notes
    task_id: str = ""
    answer: str = ""
    reward: float | None = None
    data: Mapping[str, Any] = {}
    about: Mapping[str, Any] = {}


def assembled(found: Found, *, task_id: str, layout: str) -> Trajectory:
    """Make the trajectory; what does not fit into it is told to the notes."""
    notes = found.notes
    first = next((i for i, event in enumerate(found.events) if isinstance(event, Said)), None)
    if first is None:
        notes.tell("", "the agent says nothing: the episode has no step.")
        first = len(found.events)
    before, after = found.events[:first], found.events[first:]
    for event in before:
        if isinstance(event, Heard):
            notes.tell(event.at, "a result before the agent's first message; it is in the prompt.")
    prompt = "\n\n".join(event.text for event in before)
    taken = [_step(said, replies, notes) for said, replies in _turns(after)]
    steps = [step for step, _ in taken]
    if steps:
        steps[-1] = _ended(steps[-1], found.reward)
    elif found.reward is not None:
        notes.tell("", f"the reward {found.reward:g} belongs to no step.")
    task = Task(
        id=task_id,
        prompt="\n\n".join(event.text for event in before if _is_question(event)) or prompt,
        answer=found.answer,
        family=FAMILY,
        data=_data(found, layout, [[_heard(event) for event in before], *(h for _, h in taken)]),
    )
    return Trajectory(task=task, prompt=prompt, settings={IMPORTED: layout}, steps=tuple(steps))


def read_call(name: Any, arguments: Any, call_id: Any, *, at: str, notes: Notes) -> Call:
    """A call as a layout writes it; arguments that are no JSON object are kept as ``arguments``."""
    if isinstance(name, str) and name:
        called = name
    else:
        called = ""
        notes.tell(at, "a call has no name.")
        if name not in (None, ""):
            notes.keep(f"{at}.name", name, f"the name {shown(name)} is no text")
    written = arguments if isinstance(arguments, str) else ""
    if arguments is None:
        notes.tell(at, f"no arguments of {shown(called)} were recorded.")
        arguments = {}
    elif isinstance(arguments, str):
        arguments = _decoded(arguments, called, at, notes)
    else:
        written = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(arguments, dict):
        notes.tell(
            at,
            f"the arguments of {shown(called)} are no object; kept as 'arguments': "
            f"{shown(arguments)}",
        )
        arguments = {"arguments": arguments}
    return Call(ToolCall(called, arguments, read_text(call_id, f"{at}.id", notes)), written)


def _decoded(written: str, name: str, at: str, notes: Notes) -> Any:
    if not written.strip():
        return {}
    try:
        return read_json(written)
    except ValueError:
        notes.tell(
            at,
            f"the arguments of {shown(name)} are no JSON; kept as the text 'arguments': "
            f"{shown(written)}",
        )
        return {"arguments": written}


def _turns(events: Sequence[Event]) -> list[tuple[Said, list[Heard | Asked]]]:
    turns: list[tuple[Said, list[Heard | Asked]]] = []
    for event in events:
        if isinstance(event, Said):
            turns.append((event, []))
        else:
            turns[-1][1].append(event)
    return turns


def _step(
    said: Said, replies: Sequence[Heard | Asked], notes: Notes
) -> tuple[Step, list[dict[str, Any]]]:
    """A step, and what followed it as messages: a result is only the number of its call."""
    results: dict[int, ToolResult] = {}
    heard = []
    for event in replies:
        place = _call_of(said, event, results) if isinstance(event, Heard) else None
        if place is not None:
            results[place] = ToolResult(event.text)
        elif isinstance(event, Heard):
            notes.tell(event.at, "a result answers no call; it is only shown.")
        heard.append(_heard(event) if place is None else {_chat.CALL: place})
    for place, call in enumerate(said.tools):
        if place not in results:
            notes.tell(said.at, f"no result of {shown(call.name)} was recorded.")
            results[place] = ToolResult("", note="no result was recorded")
    step = Step(
        action=said.action(),
        token_ids=said.token_ids,
        logprobs=said.logprobs,
        parsed=ParsedTurn(calls=said.tools, thought=said.thought),
        calls=said.tools,
        results=tuple(results[place] for place in range(len(said.calls))),
        observation="\n\n".join(event.text for event in replies),
    )
    return step, heard


def _call_of(said: Said, heard: Heard, results: Mapping[int, ToolResult]) -> int | None:
    free = [place for place in range(len(said.calls)) if place not in results]
    if heard.call_id:
        free = [place for place in free if said.calls[place].tool.id == heard.call_id]
    return free[0] if free else None


def _heard(event: Event) -> Message:
    if isinstance(event, Asked):
        return {"role": event.role, "content": event.text}
    assert isinstance(event, Heard)
    named = {"tool_call_id": event.call_id} if event.call_id else {}
    return {"role": "tool", **named, "content": event.text}


def _data(found: Found, layout: str, heard: Sequence[Sequence[Message]]) -> dict[str, Any]:
    """The fields of the row and of the importer; a row's field of such a name is set aside."""
    own: dict[str, Any] = {**found.about, LAYOUT: layout, _chat.HEARD: heard}
    taken = {key: value for key, value in found.data.items() if key in (*own, UNMAPPED)}
    if taken:
        found.notes.rest("row", "a row", taken, ())
    if found.notes.kept:
        own[UNMAPPED] = dict(found.notes.kept)
    return {**found.data, **own}


def _ended(step: Step, reward: float | None) -> Step:
    paid = {} if reward is None else {"reward": reward, "terms": {"imported": reward}}
    return msgspec.structs.replace(step, terminated=True, end_reason=END_REASON, **paid)


def _is_question(event: Event) -> bool:
    return isinstance(event, Asked) and event.role == "user"
