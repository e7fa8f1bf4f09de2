"""ReAct: text of ``Question``, ``Thought 1``, ``Action 1: Search[...]``, ``Observation 1``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said
from toolenvs.types import ToolCall

_EPISODE = re.compile(r"^Question: ", re.MULTILINE)
_PART = re.compile(r"^(Thought|Action|Observation)(?: \d+)?: ?", re.MULTILINE)
_CALL = re.compile(r"\s*(\w+)\[(.*)\]\s*", re.DOTALL)
_RULER = re.compile(r"\n-{5,}[^\n]*-{5,}\s*\Z|\n-{5,} (?:BEGIN|END)[^\n]*\s*\Z")
_RIGHT, _WRONG = re.compile(r"answer is correct", re.I), re.compile(r"answer is incorrect", re.I)


class React:
    """Transcripts of any number of episodes, each from ``Question:`` to the next.

    ``Name[text]`` is a call with one argument ``input``; an action that is none is kept as a
    message. What the last observation says of the answer ("Answer is CORRECT") is the reward.

    Layout: Yao et al. 2023, arXiv:2210.03629, appendix C; logs as Reflexion writes them.
    """

    name = "react"

    def matches(self, record: Any) -> bool:
        return isinstance(record, str) and bool(_EPISODE.search(record) and _PART.search(record))

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("a ReAct transcript needs 'Question:' and 'Thought 1:' at line starts.")
        before, *episodes = _EPISODE.split(record)
        for number, text in enumerate(episodes):
            problems = []
            if number == 0 and before.strip(" \n-") and "BEGIN" not in before:
                problems.append(
                    f"what stands before the first question is left out: {before!r:.80}"
                )
            yield _episode(text, problems)


def _episode(text: str, problems: list[str]) -> Found:
    question, *parts = _PART.split(_RULER.sub("", text))
    events: list[Event] = [Asked(text=question.strip())]
    thought, verdict = "", ""
    for kind, raw in zip(parts[::2], parts[1::2], strict=True):
        words = raw.strip()
        if kind == "Thought":
            if thought:
                events.append(Said(text=f"Thought: {thought}", thought=thought))
            thought = words
        elif kind == "Action":
            events.append(_acted(thought, words, problems))
            thought = ""
        else:
            verdict = words
            heard = isinstance(events[-1], Said) and events[-1].calls
            events.append(Heard(text=words) if heard else Asked(text=words))
    if thought:
        events.append(Said(text=f"Thought: {thought}", thought=thought))
    right, wrong = _RIGHT.search(verdict), _WRONG.search(verdict)
    reward = 1.0 if right else 0.0 if wrong else None
    return Found(events=tuple(events), reward=reward, problems=tuple(problems))


def _acted(thought: str, words: str, problems: list[str]) -> Said:
    call = _CALL.fullmatch(words)
    if call is None:
        problems.append(f"the action {words!r:.80} is no NAME[TEXT]; kept as a message.")
        return Said(text=words, thought=thought)
    made = ToolCall(call[1].lower(), {"input": call[2]})
    return Said(text=f"Thought: {thought}" if thought else "", thought=thought, calls=(made,))
