"""NeMo Gym: rollouts in OpenAI's Responses layout, ``responses_create_params`` and ``response``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._talk import (
    Event,
    Found,
    Heard,
    Said,
    left_over,
    read_call,
    read_content,
    read_list,
    read_object,
    read_reward,
)

_ANSWERS = ("expected_answer", "expected_result", "answer")


class NemoGym:
    """What NeMo Gym's rollout collection writes; also its examples, which have no response yet.

    Layout: https://platform.openai.com/docs/api-reference/responses and NeMo Gym's
    ``example_rollouts.jsonl``.
    """

    name = "nemo_gym"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get("responses_create_params"), dict)

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("a NeMo Gym rollout needs an object 'responses_create_params'.")
        problems: list[str] = []
        asked = record["responses_create_params"]
        messages = asked.get("input")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if isinstance(asked.get("instructions"), str):
            said = {"role": "system", "content": asked["instructions"]}
            messages = [said, *read_list(messages, "'input'", problems)]
        response = read_object(record.get("response"), "'response'", problems)
        before = read_list(messages, "'input'", problems)
        after = read_list(response.get("output"), "'output'", problems)
        events = [*_items(before, problems), *_items(after, problems)]
        gold = [record.get(key, response.get(key)) for key in _ANSWERS]
        yield Found(
            events=tuple(_joined(events)),
            task_id=str(record.get("uuid") or record.get("id") or ""),
            answer=next((str(answer) for answer in gold if answer is not None), ""),
            reward=read_reward(record.get("reward")),
            data={
                **left_over(record, "responses_create_params", "response"),
                "request": left_over(asked, "input"),
                "response": left_over(response, "output"),
            },
            problems=tuple(problems),
        )


def _items(items: Any, problems: list[str]) -> Iterator[Event]:
    for item in items:
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "message":
            yield from read_messages([item], problems)
        elif kind == "function_call":
            call = read_call(item.get("name"), item.get("arguments"), item.get("call_id"), problems)
            yield Said(calls=(call,))
        elif kind == "function_call_output":
            text = read_content(item.get("output"), problems)
            yield Heard(text=text, call_id=str(item.get("call_id") or ""))
        elif kind == "reasoning":
            parts = item.get("content") or item.get("summary") or []
            yield Said(thought=read_content(parts, problems))
        else:
            problems.append(f"an item of type {kind!r} is not known and is left out.")


def _joined(events: list[Event]) -> Iterator[Event]:
    """Items of one response are one message of the agent, until a result or a person follows."""
    open_said: Said | None = None
    for event in events:
        if isinstance(event, Said):
            open_said = event if open_said is None else _both(open_said, event)
            continue
        if open_said is not None:
            yield open_said
            open_said = None
        yield event
    if open_said is not None:
        yield open_said


def _both(one: Said, other: Said) -> Said:
    return Said(
        text="\n\n".join(filter(None, (one.text, other.text))),
        thought="\n\n".join(filter(None, (one.thought, other.thought))),
        calls=(*one.calls, *other.calls),
    )
