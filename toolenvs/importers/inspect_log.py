"""Inspect AI: an evaluation log as JSON, ``{"eval": ..., "samples": [{"messages": ...}]}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolenvs.errors import DataError
from toolenvs.importers._messages import read_messages
from toolenvs.importers._talk import Found, left_over, read_object, read_reward

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


class InspectLog:
    """Each sample is an episode; its first numeric score, or grade C, I, P, is the reward.

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

    def read(self, record: Any) -> Iterator[Found]:
        if not self.matches(record):
            raise DataError("an Inspect log needs an object 'eval' and a list 'samples'.")
        for sample in record["samples"]:
            if not isinstance(sample, dict):
                raise DataError("each of 'samples' must be an object.")
            problems: list[str] = []
            scores = read_object(sample.get("scores"), "'scores'", problems)
            events = tuple(read_messages(sample.get("messages"), problems))
            target = sample.get("target", "")
            yield Found(
                events=events,
                task_id=f"{sample.get('id', '')}-epoch-{sample.get('epoch', 1)}",
                answer="\n".join(map(str, target)) if isinstance(target, list) else str(target),
                reward=_reward(scores),
                data={**left_over(sample, "messages"), "eval": record["eval"].get("task", "")},
                problems=tuple(problems),
            )


def _reward(scores: Mapping[str, Any]) -> float | None:
    for score in scores.values():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, str):
            value = _GRADES.get(value)
        if (reward := read_reward(value)) is not None:
            return reward
    return None
