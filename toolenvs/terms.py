"""What a rubric is made of: terms and gates, their schedules, and a component in its place."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs import rewards
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import RewardComponent
from toolenvs.rewards.format_valid import Scope
from toolenvs.types import Score, Task, ToolCall, Trajectory

_log = logging.getLogger(__name__)

Schedule = float | tuple[tuple[int, float], ...]
"""A number, or points ``(episode, number)`` with rising episodes, linear between, flat outside."""

_SLACK = 1e-9  # rounding that a mean of floats may show; wider than that is out of range


class RewardTerm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One summand of a rubric.

    Attributes:
        reward: name of a reward, or a ``RewardComponent`` of your own.
        weight: what a full score pays.
        options: keyword options of the named reward.
        rescale: map the component's range to [0, 1], which a negative score needs under a gate.
        key: key of the term in ``info["reward_terms"]``; the component's name if empty.
    """

    reward: Any
    weight: Schedule = 1.0
    options: Mapping[str, Any] = {}
    rescale: bool = False
    key: str = ""


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A factor of a rubric: ``floor + (1 - floor) * score``, 1 on the empty prefix.

    Attributes:
        reward: name of a reward with values in [0, 1] that takes ``scope`` and ``unjudged``, or a
            ``RewardComponent`` of your own, to which ``scope`` is then only a name.
        scope: what is judged: ``"final"`` the answer's message, ``"turn"`` the share of clean
            turns, ``"trajectory"`` whether all turns are clean.
        floor: the factor at score 0, in [0, 1); above 0 it leaves a cold start its signal.
        options: further keyword options of the named reward.
    """

    reward: Any
    scope: Scope = "trajectory"
    floor: Schedule = 0.0
    options: Mapping[str, Any] = {}


class Part(msgspec.Struct, frozen=True):
    """A component in its place: a term (``schedule``: its weight) or a gate (its floor)."""

    key: str
    component: RewardComponent
    schedule: Schedule
    start: float = 0.0
    """The score on the empty prefix: 0 for a term, 1 for a gate."""
    rescale: bool = False
    named: bool = True

    @classmethod
    def of_term(cls, term: RewardTerm) -> Part:
        """The component of a term."""
        component = _resolve(term.reward, term.options)
        return cls(
            term.key or component.name,
            component,
            term.weight,
            rescale=term.rescale,
            named=isinstance(term.reward, str),
        )

    @classmethod
    def of_gate(cls, gate: Gate) -> Part:
        """The component of a gate: 1 where nothing was judged yet."""
        options = {"scope": gate.scope, "unjudged": 1.0, **gate.options}
        component = _resolve(gate.reward, options)
        key = f"{component.name}@{gate.scope}"
        return cls(key, component, gate.floor, start=1.0, named=isinstance(gate.reward, str))

    @property
    def low(self) -> float:
        """Smallest score, after rescaling."""
        return 0.0 if self.rescale else self.component.low

    @property
    def high(self) -> float:
        """Largest score, after rescaling."""
        return 1.0 if self.rescale else self.component.high

    @property
    def number(self) -> float:
        """The weight or floor, once no schedule is left."""
        assert isinstance(self.schedule, float)
        return self.schedule

    @property
    def largest(self) -> float:
        """Largest absolute weight or floor over all episodes."""
        return max(abs(value) for _, value in points_of(self.schedule))

    def at(self, episode: int) -> Part:
        """The same with the number of that episode."""
        return msgspec.structs.replace(self, schedule=value_at(self.schedule, episode))

    def before(self, previous: Mapping[str, Score]) -> float:
        """The value in the scores of a step, or the one on the empty prefix."""
        return previous[self.key].value if self.key in previous else self.start

    def factor(self, scores: Mapping[str, Score]) -> float:
        """What a gate with these scores multiplies by."""
        return self.number + (1.0 - self.number) * self.before(scores)

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """The component's private calls; none where it cannot say."""
        try:
            return self.component.needs(task, prefix)
        except Exception:  # whatever a plugin raises, the other terms are not its victims
            _log.warning("%s could not say what it needs", self.key, exc_info=True)
            return ()

    def score(self, task: Task, prefix: Trajectory, previous: Mapping[str, Score]) -> Score:
        """The score of the steps so far, in range; a masked one keeps the value of before."""
        if prefix.ended and self.component.shaping:
            return Score(0.0, "shaping ends at 0")
        if self.component.when == "end" and not prefix.ended:
            return Score(self.start)
        score = self._attempt(task, prefix)
        if score.masked:
            return Score(self.before(previous), score.reason, masked=True)
        return score

    def _attempt(self, task: Task, prefix: Trajectory) -> Score:
        low, high = self.component.low, self.component.high
        try:
            self.component.needs(task, prefix)  # one that cannot say what it needs has no evidence
            score = self.component.score(task, prefix)
            value = float(score.value)
        except RuntimeFailure:  # the machine's fault is the whole step's, never a zero
            raise
        except Exception as error:
            # Its text may hold an address or a path, which no record may: only the log has it.
            _log.warning("%s could not be scored", self.key, exc_info=True)
            return _masked(f"raised {type(error).__name__}")
        if score.masked:
            return _masked(score.reason)
        if not low - _SLACK <= value <= high + _SLACK:  # a NaN is outside, too
            return _masked(f"{value} is outside [{low}, {high}]")
        return Score((value - low) / (high - low) if self.rescale else value, score.reason)


def _masked(reason: str) -> Score:
    return Score(0.0, reason, masked=True)


def _resolve(reward: Any, options: Mapping[str, Any]) -> RewardComponent:
    component = rewards.make(reward, **options) if isinstance(reward, str) else reward
    if not isinstance(component, RewardComponent):
        raise UsageError(f"{reward!r} is no reward: it lacks a member of RewardComponent.")
    low, high = component.low, component.high
    if not (math.isfinite(low) and math.isfinite(high) and low <= 0.0 <= high and low < high):
        raise UsageError(
            f"reward {component.name!r} has the range [{low}, {high}]; it must be finite and hold "
            "0, where every score starts."
        )
    return component


def checked_schedule(schedule: Schedule, *, name: str) -> Schedule:
    """``schedule`` with floats for its numbers, so that equal rubrics have equal hashes.

    Raises:
        UsageError: A number is not finite, or the episodes do not rise.
    """
    if isinstance(schedule, int | float):
        points: Schedule = float(schedule)
    else:
        points = tuple((int(episode), float(value)) for episode, value in schedule)
    episodes = [episode for episode, _ in points_of(points)]
    rising = bool(episodes) and episodes == sorted(set(episodes))
    if not rising or not all(math.isfinite(value) for _, value in points_of(points)):
        raise UsageError(
            f"{name}={schedule!r} is unusable: a finite number, or points (episode, number) with "
            "rising episodes."
        )
    return points


def points_of(schedule: Schedule) -> tuple[tuple[int, float], ...]:
    """A schedule as points; a number is one point."""
    return ((0, schedule),) if isinstance(schedule, float) else schedule


def value_at(schedule: Schedule, episode: int) -> float:
    """The number that a schedule gives for an episode."""
    points = points_of(schedule)
    if episode <= points[0][0]:
        return points[0][1]
    for (start, low), (end, high) in itertools.pairwise(points):
        if episode <= end:
            return low + (high - low) * (episode - start) / (end - start)
    return points[-1][1]
