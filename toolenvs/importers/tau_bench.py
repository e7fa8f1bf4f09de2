"""tau-bench: ``{"task_id", "reward", "info", "traj", "trial"}``, and its few-shot transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._notes import Notes, left_over, read_reward, read_text, shown
from toolenvs.importers._talk import Asked, Call, Event, Found, Heard, Said
from toolenvs.types import ToolCall

_SPEAKER = re.compile(r"^(user|assistant|tool|system): ?", re.MULTILINE)
_ROW = ("task_id", "reward", "info", "traj", "trial", "messages_display")
_NO_TEXT = "None"
"""What a transcript shows of a message that only calls."""


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
            raise DataError(
                "a tau-bench result needs a list 'traj' or a text 'messages_display', not "
                f"{shown(record)}."
            )
        notes = Notes()
        if isinstance(record.get("traj"), list):
            read = "traj"
            events = tuple(read_messages(record["traj"], notes, at="traj"))
        else:
            read = "messages_display"
            events = tuple(_transcript(record["messages_display"], notes))
        if set(record) >= {"traj", "messages_display"}:
            notes.tell("", f"'{read}' is read; the other account is kept in the task's data.")
        notes.row(record, _ROW)
        yield Found(
            events=events,
            notes=notes,
            task_id=_task_id(record, notes),
            reward=read_reward(record.get("reward"), "reward", notes),
            data=left_over(record, read),
        )


def _task_id(record: Mapping[str, Any], notes: Notes) -> str:
    task = read_text(record.get("task_id"), "task_id", notes)
    trial = read_text(record.get("trial") or None, "trial", notes)
    if not task:
        return ""
    return f"tau-{task}-trial-{trial}" if trial else f"tau-{task}"


def _transcript(text: str, notes: Notes) -> Iterator[Event]:
    before, *pieces = _SPEAKER.split(text)
    if before.strip():
        notes.tell(
            "messages_display", f"it begins without a speaker: {shown(before)}; read as the user's."
        )
        yield Asked(text=before.removesuffix("\n"), at="messages_display")
    turns = [
        (who, words.removesuffix("\n"))
        for who, words in zip(pieces[::2], pieces[1::2], strict=True)
    ]
    for place, (who, words) in enumerate(turns):
        at = f"messages_display[{place}]"
        if who == "assistant":
            calls = _results_after(turns, place)
            if calls:
                notes.tell(at, "a transcript does not tell which tool was called, nor how.")
            shows_nothing = calls and words.strip() == _NO_TEXT
            unnamed = Call(ToolCall("", {}), "")
            yield Said(
                text="" if shows_nothing else words, calls=(unnamed,) * calls, spoken=True, at=at
            )
        elif who == "tool":
            yield Heard(text=words, at=at)
        else:
            yield Asked(text=words, role=who, at=at)


def _results_after(turns: Sequence[tuple[str, str]], place: int) -> int:
    after = [who for who, _ in turns[place + 1 :]]
    return next((n for n, who in enumerate(after) if who != "tool"), len(after))
