"""Score a recorded run again, by its own rubric or another, from the records alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

import msgspec

from toolenvs import exactjson
from toolenvs.errors import UsageError
from toolenvs.records import read_trajectories
from toolenvs.rubric import Rubric, Settled, make_rubric, rescore
from toolenvs.types import Trajectory


class RunRescore(msgspec.Struct, frozen=True, kw_only=True):
    """What a rubric makes of a run.

    Attributes:
        episodes: those that were scored.
        equal: those whose every term came out as recorded, to the byte.
        recorded, rescored: mean over the episodes of the score (``score``) and of each term.
    """

    episodes: int
    equal: int
    recorded: Mapping[str, float]
    rescored: Mapping[str, float]


def rescore_run(path: str | os.PathLike[str], *, rewards: str | Rubric = "") -> RunRescore:
    """Score every episode of a run again.

    Args:
        path: the folder of a run or a file of trajectories.
        rewards: a preset's name or a rubric; each episode's own when empty.

    Raises:
        UsageError: There is no episode, the evidence that the rubric needs was not recorded, or an
            episode's own rubric held an object, which is no data.
    """
    other = make_rubric(rewards) if rewards else None
    episodes = equal = 0
    recorded: Counter[str] = Counter()
    rescored: Counter[str] = Counter()
    for trajectory in read_trajectories(path):
        if not trajectory.settings:  # it never began
            continue
        settled = rescore(trajectory, other or _own_rubric(trajectory))
        episodes += 1
        equal += _as_recorded(trajectory, settled)
        for step, now in zip(trajectory.steps, settled, strict=True):
            recorded.update({"score": step.reward, **step.terms})
            rescored.update({"score": now.reward, **now.terms})
    if not episodes:
        raise UsageError(f"{path} holds no episode to score.")
    return RunRescore(
        episodes=episodes,
        equal=equal,
        recorded={name: value / episodes for name, value in recorded.items()},
        rescored={name: value / episodes for name, value in rescored.items()},
    )


def _own_rubric(trajectory: Trajectory) -> Rubric:
    content = trajectory.settings.get("rewards")
    if content is None:
        raise UsageError(
            f"the rubric of task {trajectory.task.id!r} is not in the record as data: name one."
        )
    return Rubric.from_dict(content)


def _as_recorded(trajectory: Trajectory, settled: list[Settled]) -> bool:
    before = [[step.reward, step.terms] for step in trajectory.steps]
    return exactjson.encode(before) == exactjson.encode(
        [[one.reward, one.terms] for one in settled]
    )
