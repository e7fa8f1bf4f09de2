"""Inspect AI: an evaluation log as JSON, ``{"eval": ..., "samples": [{"messages": ...}]}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._notes import (
    Notes,
    as_number,
    left_over,
    read_object,
    read_text,
    shown,
)
from toolenvs.importers._talk import Found

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_ROW = (
    *("id", "epoch", "uuid", "input", "target", "choices", "messages", "output", "scores"),
    *("metadata", "sandbox", "files", "setup", "store", "events", "events_data", "attachments"),
    *("model_usage", "role_usage", "error", "error_retries", "limit", "timelines", "invalidation"),
    *("started_at", "completed_at", "total_time", "working_time"),
)
_LOG = (
    *("version", "status", "eval", "plan", "results", "stats", "error", "invalidated", "samples"),
    *("reductions", "location", "etag", "tags", "metadata", "log_updates", "eval_set"),
)


class InspectLog:
    """Each sample is an episode; its first numeric score, or grade C, I, P, is the reward.

    What the log holds besides its samples is in the data of each, under ``log``.

    Layout: https://inspect.aisi.org.uk/eval-logs.html (``inspect log convert --to json`` writes it
    from ``.eval`` files).
    """

    name = "inspect_log"

    def matches(self, record: Any) -> bool:
        return (
            isinstance(record, dict)
            and isinstance(record.get("eval"), dict)
            and isinstance(record.get("samples"), list)
        )

    def read(self, record: Any) -> Iterator[Found | DataError]:
        if not self.matches(record):
            raise DataError(
                f"an Inspect log needs an object 'eval' and a list 'samples', not {shown(record)}."
            )
        about = left_over(record, "samples")
        for number, sample in enumerate(record["samples"]):
            at = f"samples[{number}]"
            if isinstance(sample, dict):
                yield _sample(sample, at, about)
            else:
                yield DataError(f"{at}: a sample must be an object, not {shown(sample)}.")


def _sample(fields: Mapping[str, Any], at: str, about: Mapping[str, Any]) -> Found:
    notes = Notes()
    notes.row(about, _LOG)
    notes.row(fields, _ROW)
    scores = read_object(fields.get("scores"), f"{at}.scores", notes)
    target = fields.get("target")
    wanted = target if isinstance(target, list) else [target]
    identity = read_text(fields.get("id"), f"{at}.id", notes)
    epoch = read_text(fields.get("epoch", 1), f"{at}.epoch", notes)
    return Found(
        events=tuple(read_messages(fields.get("messages"), notes, at=f"{at}.messages")),
        notes=notes,
        task_id=f"{identity}-epoch-{epoch}" if identity else "",
        answer="\n".join(read_text(one, f"{at}.target", notes) for one in wanted),
        reward=_reward(scores, f"{at}.scores", notes),
        data=left_over(fields, "messages"),
        about={"log": about},
    )


def _reward(scores: Mapping[str, Any], at: str, notes: Notes) -> float | None:
    for score in scores.values():
        value = score.get("value") if isinstance(score, dict) else score
        reward = _GRADES.get(value) if isinstance(value, str) else as_number(value)
        if reward is not None:
            return reward
    if scores:
        notes.tell(at, f"no score is a number or a grade: {shown(scores)}; none is mapped.")
    return None
