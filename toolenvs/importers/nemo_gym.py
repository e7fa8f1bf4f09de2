"""NeMo Gym: rollouts in OpenAI's Responses layout, ``responses_create_params`` and ``response``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_message
from toolenvs.importers._notes import (
    Notes,
    left_over,
    read_content,
    read_list,
    read_object,
    read_reward,
    read_text,
    read_tokens,
    shown,
)
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said, read_call

_ANSWERS = ("expected_answer", "expected_result", "answer")
_ROW = ("responses_create_params", "response", "reward", "uuid", "id", *_ANSWERS)
_IDS, _LOGPROBS = "generation_token_ids", "generation_log_probs"


class NemoGym:
    """What NeMo Gym's rollout collection writes; also its examples, which have no response yet.

    ``generation_token_ids`` with ``generation_log_probs``, where an item has both, are the step's.

    Layout: https://platform.openai.com/docs/api-reference/responses and NeMo Gym's
    ``example_rollouts.jsonl``.
    """

    name = "nemo_gym"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("responses_create_params"), dict)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError(
                "a NeMo Gym rollout needs an object 'responses_create_params', not "
                f"{shown(record)}."
            )
        notes = Notes()
        asked = record["responses_create_params"]
        response = read_object(record.get("response"), "response", notes)
        events = [*_asked(asked, notes), *_items(response.get("output"), "response.output", notes)]
        notes.row(record, _ROW)
        gold = [(key, record.get(key, response.get(key))) for key in _ANSWERS]
        key, answer = next((pair for pair in gold if pair[1] is not None), ("", None))
        yield Found(
            events=tuple(_joined(events)),
            notes=notes,
            task_id=_task_id(record, notes),
            answer=read_text(answer, key, notes),
            reward=read_reward(record.get("reward"), "reward", notes),
            data=left_over(record, "responses_create_params", "response"),
            about={
                "request": left_over(asked, "input"),
                "response": left_over(response, "output"),
            },
        )


def _task_id(record: Mapping[str, Any], notes: Notes) -> str:
    key = "id" if record.get("uuid") in (None, "") else "uuid"
    return read_text(record.get(key), key, notes)


def _asked(request: Mapping[str, Any], notes: Notes) -> Iterator[Event]:
    at = "responses_create_params"
    if request.get("instructions") not in (None, ""):
        place = f"{at}.instructions"
        text = read_content(request["instructions"], place, notes)
        yield Asked(text=text, role="system", at=place)
    if isinstance(request.get("input"), str):
        yield Asked(text=request["input"], at=f"{at}.input")
        return
    yield from _items(request.get("input"), f"{at}.input", notes)


def _items(items: Any, place: str, notes: Notes) -> Iterator[Event]:
    for number, item in enumerate(read_list(items, place, notes)):
        yield from _item(item, f"{place}[{number}]", notes)


def _item(item: Any, at: str, notes: Notes) -> Iterable[Event]:
    if not isinstance(item, dict):
        notes.keep(at, item, f"an item must be an object, not {shown(item)}")
        return
    kind = item.get("type", "message")
    token_ids, logprobs = read_tokens(item, _IDS, _LOGPROBS)
    known = ("type", _IDS, _LOGPROBS) if token_ids else ("type",)
    if kind == "message":
        for event in read_message(item, notes, at=at, known=known):
            yield _sampled(event, token_ids, logprobs)
    elif kind == "function_call":
        notes.rest(at, "an item", item, ("name", "arguments", "call_id", *known))
        call = read_call(
            item.get("name"), item.get("arguments"), item.get("call_id"), at=at, notes=notes
        )
        yield Said(calls=(call,), token_ids=token_ids, logprobs=logprobs, at=at)
    elif kind == "function_call_output":
        notes.rest(at, "an item", item, ("type", "output", "call_id"))
        text = read_content(item.get("output"), f"{at}.output", notes)
        yield Heard(
            text=text, call_id=read_text(item.get("call_id"), f"{at}.call_id", notes), at=at
        )
    elif kind == "reasoning":
        key = "content" if item.get("content") else "summary"
        notes.rest(at, "an item", item, (key, *known))
        thought = read_content(item.get(key), f"{at}.{key}", notes)
        yield Said(thought=thought, token_ids=token_ids, logprobs=logprobs, at=at)
    else:
        notes.keep(at, item, f"an item of type {shown(kind)} is not known")


def _sampled(event: Event, token_ids: tuple[int, ...], logprobs: tuple[float, ...]) -> Event:
    if not isinstance(event, Said):
        return event
    return msgspec.structs.replace(event, token_ids=token_ids, logprobs=logprobs)


def _joined(events: list[Event]) -> Iterator[Event]:
    """Items of one response are one message of the agent: it shows one text, and is sampled once.

    Nothing tells where a response ends; it does at a result, at a person's message, behind token
    ids, and before a second text.
    """
    open_said: Said | None = None
    for event in events:
        if isinstance(event, Said) and open_said is not None and _joins(open_said, event):
            open_said = _both(open_said, event)
            continue
        if open_said is not None:
            yield open_said
        open_said = event if isinstance(event, Said) else None
        if open_said is None:
            yield event
    if open_said is not None:
        yield open_said


def _joins(one: Said, other: Said) -> bool:
    return not one.token_ids and not (one.text and other.text)


def _both(one: Said, other: Said) -> Said:
    return Said(
        text=one.text or other.text,
        thought="\n\n".join(filter(None, (one.thought, other.thought))),
        refusal=one.refusal or other.refusal,
        calls=(*one.calls, *other.calls),
        token_ids=other.token_ids,
        logprobs=other.logprobs,
        at=one.at,
    )
