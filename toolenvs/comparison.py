"""Compares an episode with its record, step by step, to the byte."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from toolenvs import exactjson
from toolenvs.episode import Episode
from toolenvs.errors import RuntimeFailure
from toolenvs.types import Step, Trajectory

_packer = msgspec.msgpack.Encoder(order="sorted")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where a replay parts from the record.

    Attributes:
        episode: number of the trajectory in its run. task_id, sample: which episode it is.
        step: number of the step, -1 for the start.
        field: what differs: a field of ``Step``, ``prompt``, ``rubric`` or ``steps``.
        diff: recorded and replayed as a unified diff.
    """

    episode: int
    task_id: str
    sample: int
    step: int
    field: str
    diff: str


class NotRun(msgspec.Struct, frozen=True, kw_only=True):
    """Where a machine failed in a live replay: neither equal nor different.

    Attributes:
        episode: number of the trajectory in its run. task_id, sample: which episode it is.
        step: number of the step, -1 for the start.
        failure: its kind and what happened, ``"data: ..."``.
    """

    episode: int
    task_id: str
    sample: int
    step: int
    failure: str


class EpisodeReplay(msgspec.Struct, frozen=True, kw_only=True):
    """How the replay of one episode went.

    Attributes:
        steps: recorded steps that were compared: live, none in which a machine failed, and none
            from where one fails now.
        identical_steps: those that came out as recorded.
        differences: the first difference of each step that has one.
        played: False for an episode that never began.
        not_run: where a machine failed now, None where none did.
    """

    steps: int
    identical_steps: int
    differences: tuple[Difference, ...] = ()
    played: bool = True
    not_run: NotRun | None = None


class Comparison:
    """Compares an episode with its record, step by step."""

    def __init__(self, trajectory: Trajectory, number: int) -> None:
        self._recorded = trajectory
        self._number = number
        self._identical = 0
        self._at = -1
        self.differences: list[Difference] = []
        self._not_run: NotRun | None = None

    def start(self, episode: Episode, *, rubric: str) -> None:
        """Compare what stands before the first step."""
        setup = self._recorded.settings
        for field, recorded, replayed in (
            ("prompt", self._recorded.prompt, episode.trajectory.prompt),
            ("rubric", setup.get("rubric", ""), rubric),
        ):
            if recorded != replayed:
                self.note(field, recorded, replayed)
                return

    def goes_on(self, episode: Episode) -> bool:
        """Go to the next recorded step; that the episode has ended before it is a difference."""
        self._at += 1
        if episode.trajectory.ended:
            self.note("steps", "(one more step)", "the episode has ended")
        return not episode.trajectory.ended

    def step(self, recorded: Step, replayed: Step) -> None:
        """Compare the step that it stands at."""
        if _equal(recorded, replayed):
            self._identical += 1
            return
        for field in Step.__struct_fields__:
            pair = getattr(recorded, field), getattr(replayed, field)
            if not _equal(*pair):
                self._add(field, *pair)
                return

    def note(self, field: str, recorded: object, replayed: object) -> None:
        """Enter a difference that is none between two steps."""
        self._add(field, recorded, replayed)

    def fail(self, failure: RuntimeFailure) -> None:
        """Enter that a machine failed at the step that it stands at: it ends the comparison."""
        self._not_run = NotRun(
            episode=self._number,
            task_id=self._recorded.task.id,
            sample=self._recorded.sample,
            step=self._at,
            failure=f"{failure.kind}: {failure}",
        )

    def outcome(self, steps: int) -> EpisodeReplay:
        """What came out.

        Args:
            steps: those that were to be compared.
        """
        return EpisodeReplay(
            steps=steps if self._not_run is None else max(0, self._at),
            identical_steps=self._identical,
            differences=tuple(self.differences),
            not_run=self._not_run,
        )

    def _add(self, field: str, recorded: object, replayed: object) -> None:
        self.differences.append(
            Difference(
                episode=self._number,
                task_id=self._recorded.task.id,
                sample=self._recorded.sample,
                step=self._at,
                field=field,
                diff=readable_diff(recorded, replayed),
            )
        )


def _equal(recorded: Any, replayed: Any) -> bool:
    """Whether two values are the same bytes: 1 is neither 1.0 nor true."""
    try:  # a quick way to say the same, without lone surrogates and huge integers
        return _packer.encode(recorded) == _packer.encode(replayed)
    except (UnicodeEncodeError, OverflowError):
        return exactjson.encode(recorded) == exactjson.encode(replayed)


def readable_diff(recorded: object, replayed: object) -> str:
    """Two values as a unified diff of their lines; what is no text is shown as JSON."""
    lines = difflib.unified_diff(
        list(_lines(recorded)), list(_lines(replayed)), "recorded", "replayed", n=2, lineterm=""
    )
    return "\n".join(lines)


def _lines(value: object) -> Iterator[str]:
    if not isinstance(value, str):
        value = json.dumps(exactjson.decode(exactjson.encode(value)), indent=1, sort_keys=True)
    # Not splitlines(): it would cut at U+2028 too, and hide whether the last line had an end.
    yield from value.split("\n")
