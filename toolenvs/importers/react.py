"""ReAct: text of ``Question``, ``Thought 1``, ``Action 1: Search[...]``, ``Observation 1``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._notes import Notes, shown
from toolenvs.importers._talk import Asked, Event, Found, Heard, Said, read_call

_EPISODE = re.compile(r"^Question: ?", re.MULTILINE)
_PART = re.compile(r"^(Thought|Action|Observation)(?: \d+)?: ?", re.MULTILINE)
_CALL = re.compile(r"\s*(\w+)\[(.*)\]\s*", re.DOTALL)
_RULER = re.compile(r"\n-{5,}[^\n]*-{5,}\s*\Z|\n-{5,} (?:BEGIN|END)[^\n]*\s*\Z")
_RIGHT, _WRONG = re.compile(r"answer is correct", re.I), re.compile(r"answer is incorrect", re.I)


class React:
    """Transcripts of any number of episodes, each from ``Question:`` to the next.

    The action of a step is the text of its thought and action as they stand. ``Name[text]`` is a
    call of the tool ``name`` with one argument ``input``; an action that is none is kept as a
    message. What the last observation says of the answer ("Answer is CORRECT") is the reward.

    Layout: Yao et al. 2023, arXiv:2210.03629, appendix C; logs as Reflexion writes them.
    """

    name = "react"

    def matches(self, record: Any) -> bool:
        return isinstance(record, str) and bool(_EPISODE.search(record) and _PART.search(record))

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError(
                "a ReAct transcript needs 'Question:' and 'Thought 1:' at line starts, not "
                f"{shown(record)}."
            )
        before, *episodes = _EPISODE.split(record)
        for number, text in enumerate(episodes):
            notes = Notes()
            if number == 0 and before.strip():
                notes.keep("before", before, f"what stands before a question: {shown(before)}")
            yield _episode(text, notes)


def _episode(text: str, notes: Notes) -> Found:
    ruler = _RULER.search(text)
    if ruler is not None:
        notes.keep("after", ruler[0].strip(), "a ruled line is no part of an episode")
        text = text[: ruler.start()]
    parts = list(_PART.finditer(text))
    ends = [part.start() for part in parts[1:]] + [len(text)]
    question = text[: parts[0].start()] if parts else text
    events: list[Event] = [Asked(text=question.strip(), at="Question")]
    open_thought: tuple[int, str] | None = None  # where it begins, and what it says
    verdict = ""
    for part, end in zip(parts, ends, strict=True):
        kind, words = part[1], text[part.end() : end].strip()
        begin, thought = open_thought or (part.start(), "")
        if kind == "Action":
            events.append(_acted(text[begin:end].strip(), thought, words, notes))
            open_thought = None
            continue
        if open_thought is not None:
            said = text[begin : part.start()].strip()
            events.append(Said(text=said, thought=thought, spoken=True, at=_name(said)))
        open_thought = (part.start(), words) if kind == "Thought" else None
        if kind == "Observation":
            verdict = words
            before = events[-1]
            heard = isinstance(before, Said) and before.calls
            at = _name(part[0])
            events.append(Heard(text=words, at=at) if heard else Asked(text=words, at=at))
    if open_thought is not None:
        said = text[open_thought[0] :].strip()
        events.append(Said(text=said, thought=open_thought[1], spoken=True, at=_name(said)))
    right, wrong = _RIGHT.search(verdict), _WRONG.search(verdict)
    reward = 1.0 if right else 0.0 if wrong else None
    return Found(events=tuple(events), notes=notes, reward=reward)


def _name(text: str) -> str:
    """What a part is called in messages: ``Action 2``."""
    return text.partition(":")[0]


def _acted(said: str, thought: str, words: str, notes: Notes) -> Said:
    at = _name(said)
    call = _CALL.fullmatch(words)
    if call is None:
        notes.tell(at, f"the action {shown(words)} is no NAME[TEXT]; kept as a message.")
        return Said(text=said, thought=thought, spoken=True, at=at)
    made = read_call(call[1].lower(), {"input": call[2]}, "", at=at, notes=notes)
    return Said(text=said, thought=thought, calls=(made,), spoken=True, at=at)
