"""tau-bench: ``{"task_id", "reward", "info", "traj", "trial"}``, and its few-shot transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said, left_over, read_reward

_SPEAKER = re.compile(r"^(user|assistant|tool|system): ?", re.MULTILINE)


class TauBench:
    """Results of tau-bench's runs, and ``messages_display`` of its few-shot data.

    The transcripts tell that a call was made (``assistant: None``) but not which: it is read as a
    call without a name, and reported.

    Layout: https://github.com/sierra-research/tau-bench, ``EnvRunResult``.
    """

    name = "tau_bench"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and (
            isinstance(record.get("traj"), list) or isinstance(record.get("messages_display"), str)
        )

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("a tau-bench result needs a list 'traj' or a text 'messages_display'.")
        problems: list[str] = []
        if "traj" in record:
            events = tuple(read_messages(record["traj"], problems))
        else:
            events = tuple(_transcript(record["messages_display"], problems))
        trial = f"-trial-{record['trial']}" if record.get("trial") else ""
        yield Found(
            events=events,
            task_id=f"tau-{record['task_id']}{trial}" if "task_id" in record else "",
            reward=read_reward(record.get("reward")),
            data=left_over(record, "traj", "messages_display"),
            problems=tuple(problems),
        )


def _transcript(text: str, problems: list[str]) -> Iterator[Event]:
    pieces = _SPEAKER.split(text)
    if pieces[0].strip():
        problems.append("the transcript begins without a speaker; read as the user's words.")
        yield Asked(text=pieces[0].strip())
    turns = [(who, words.strip()) for who, words in zip(pieces[1::2], pieces[2::2], strict=True)]
    for place, (who, words) in enumerate(turns):
        if who == "assistant":
            calls = sum(1 for _ in _results_after(turns, place))
            if calls:
                problems.append("a transcript does not tell which tool was called.")
            yield Said(text="" if words == "None" else words, calls=_unnamed(calls))
        elif who == "tool":
            yield Heard(text=words)
        else:
            yield Asked(text=words, role=who)


def _results_after(turns: list[tuple[str, str]], place: int) -> Iterator[str]:
    for who, words in turns[place + 1 :]:
        if who != "tool":
            return
        yield words


def _unnamed(count: int) -> tuple[Any, ...]:
    from toolenvs.types import ToolCall

    return tuple(ToolCall("unknown", {}) for _ in range(count))
