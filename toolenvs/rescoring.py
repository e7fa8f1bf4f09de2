"""Score a recorded run again, by its own rubric or another, from the records alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

import msgspec

from toolenvs import exactjson
from toolenvs.errors import DataError, UsageError
from toolenvs.final_answer import handed_in
from toolenvs.recorded import as_data_error, has_begun, layout_of, make_rubric
from toolenvs.records import Damage, is_torn_tail, read_lines
from toolenvs.rubric import Rubric, Settled, rescore
from toolenvs.rubric import make_rubric as rubric_of
from toolenvs.types import Trajectory

_OF_DATABASES = {"execution_match", "result_overlap", "schema_recall", "sql_valid"}
"""Rewards that say nothing of an episode without a database."""

_OF_ANSWERS = {"answer", "answer_em", "answer_f1"}
"""Rewards that compare an answer with a gold answer."""


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """An episode that a rubric cannot score.

    Attributes:
        episode: number of the trajectory in its run. task_id, sample: which episode it is.
        reason: why not.
    """

    episode: int
    task_id: str
    sample: int
    reason: str


class RunRescore(msgspec.Struct, frozen=True, kw_only=True):
    """What a rubric makes of a run.

    Attributes:
        episodes: those that were scored.
        equal: those whose every term came out as recorded, to the byte.
        recorded, rescored: mean over the episodes of the score (``score``) and of each term.
        unplayed: episodes that never began, because a machine failed.
        unscored: episodes that could not be scored; they are in no mean.
        damaged: lines that hold no episode; a last line that a crash cut is not counted.
    """

    episodes: int
    equal: int
    recorded: Mapping[str, float]
    rescored: Mapping[str, float]
    unplayed: int = 0
    unscored: tuple[Unscored, ...] = ()
    damaged: tuple[Damage, ...] = ()

    @property
    def whole(self) -> bool:
        """True when every episode that began was scored, and every line holds one."""
        return not (self.unscored or self.damaged)


def rescore_run(path: str | os.PathLike[str], *, rewards: str | Rubric = "") -> RunRescore:
    """Score every episode of a run again.

    Of an imported episode the answer is found as ``final_answer`` says. One for which a term of the
    rubric has no meaning, such as that of the answer where no gold answer is told, is not scored,
    and named; so is any that lacks evidence which the rubric needs.

    Args:
        path: the folder of a run or a file of trajectories.
        rewards: a preset's name or a rubric; each episode's own when empty.

    Raises:
        UsageError: No episode can be scored; with the reason of the first.
    """
    other = rubric_of(rewards) if rewards else None
    tally = _Tally()
    unplayed = 0
    unscored: list[Unscored] = []
    damaged: list[Damage] = []
    for number, line in enumerate(read_lines(path, damaged=damaged.append)):
        one = line.trajectory
        if not has_begun(one):
            unplayed += 1
            continue
        try:
            tally.add(one, _imported(one, other) if layout_of(one) else _own(one, other))
        except DataError as error:
            damaged.append(line.damage(f"line {line.number}: {error}"))
        except UsageError as error:
            about = {"episode": number, "task_id": one.task.id, "sample": one.sample}
            unscored.append(Unscored(**about, reason=str(error)))  # type: ignore[arg-type]
    if not tally.episodes:
        reasons = [*(one.reason for one in unscored), *(piece.reason for piece in damaged)]
        why = f": {len(reasons)} cannot be scored; the first: {reasons[0]}" if reasons else "."
        raise UsageError(f"{path} holds no episode to score{why}")
    return RunRescore(
        episodes=tally.episodes,
        equal=tally.equal,
        recorded=tally.mean(tally.recorded),
        rescored=tally.mean(tally.rescored),
        unplayed=unplayed,
        unscored=tuple(unscored),
        damaged=tuple(piece for piece in damaged if not is_torn_tail(piece)),
    )


class _Tally:
    """Sums over the episodes."""

    def __init__(self) -> None:
        self.episodes = self.equal = 0
        self.recorded: Counter[str] = Counter()
        self.rescored: Counter[str] = Counter()

    def add(self, trajectory: Trajectory, settled: list[Settled]) -> None:
        """Count an episode in."""
        self.episodes += 1
        self.equal += _as_recorded(trajectory, settled)
        for step, now in zip(trajectory.steps, settled, strict=True):
            self.recorded.update({"score": step.reward, **step.terms})
            self.rescored.update({"score": now.reward, **now.terms})

    def mean(self, sums: Counter[str]) -> dict[str, float]:
        """Sums as means."""
        return {name: value / self.episodes for name, value in sums.items()}


def _own(trajectory: Trajectory, other: Rubric | None) -> list[Settled]:
    if other is None and trajectory.settings.get("rewards", "") is None:
        raise UsageError(
            f"the rubric of task {trajectory.task.id!r} is not in the record as data: name one."
        )
    return _settled(trajectory, other or make_rubric(trajectory.settings))


def _imported(trajectory: Trajectory, rubric: Rubric | None) -> list[Settled]:
    layout = layout_of(trajectory)
    if rubric is None:
        raise UsageError(f"it was imported ({layout}) and has no rubric of its own: name one.")
    asked = {term.reward for term in rubric.terms if isinstance(term.reward, str)}
    if not trajectory.steps:
        raise UsageError(f"it was imported ({layout}): it has no step.")
    if trajectory.task.database is None and (of_sql := asked & _OF_DATABASES):
        raise UsageError(f"it was imported ({layout}): {min(of_sql)!r} needs a database.")
    try:
        settled = _settled(handed_in(trajectory) if asked & _OF_ANSWERS else trajectory, rubric)
    except DataError:
        raise
    except UsageError as error:
        raise UsageError(f"it was imported ({layout}): {error}") from error
    scores = settled[-1].scores
    for name, masked in settled[-1].masked.items():
        if masked:  # it would count 0, as if the agent had earned nothing
            why = scores[name].reason if name in scores else "a gate cannot be applied"
            raise UsageError(f"it was imported ({layout}): {name!r} cannot be scored: {why}")
    return settled


def _settled(trajectory: Trajectory, rubric: Rubric) -> list[Settled]:
    with as_data_error(usage=False):  # evidence that is missing is no damage
        return rescore(trajectory, rubric)


def _as_recorded(trajectory: Trajectory, settled: list[Settled]) -> bool:
    before = [[step.reward, step.terms] for step in trajectory.steps]
    return exactjson.encode(before) == exactjson.encode(
        [[one.reward, one.terms] for one in settled]
    )
