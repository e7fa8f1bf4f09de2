"""Is the submitted answer right?"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

from toolenvs import rewards
from toolenvs.grading.policy import MathPolicy
from toolenvs.protocols import RewardComponent
from toolenvs.types import Score, Step, Task, ToolCall, Trajectory

_OF_FAMILY = {"sql": "execution_match", "search": "answer_em"}
"""Families whose answers another component judges, by its name."""


class Answer:
    """1 if the submitted answer equals the gold answer under the task's own grading policy, else 0.

    It judges by the task's family, so a rubric with it serves every family: mathematics by
    ``toolenvs.grading.math``, whose verdict is the reason; ``sql`` as ``execution_match`` does;
    ``search`` as ``answer_em`` does.

    Scored once, when the episode has ended, for every end: without a submission it is 0, so that
    stalling is never better than a wrong answer. A task whose gold answer cannot be graded never
    pays and never punishes: its term is masked.
    """

    name: str = "answer"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """What the family's judge needs; for mathematics nothing."""
        judge = _judge(task.family)
        return judge.needs(task, prefix) if judge is not None else ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Grade the submission of the last step."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        if not task.gradable:
            return Score(0.0, "gold not gradable", masked=True)
        judge = _judge(task.family)
        if judge is not None:
            return judge.score(task, prefix)
        submission = _submission(prefix.steps[-1])
        if submission is None:
            return Score(0.0, f"no submission ({prefix.steps[-1].end_reason or 'ended'})")
        return _grade_math(task, submission)


@functools.cache
def _judge(family: str) -> RewardComponent | None:
    return rewards.make(_OF_FAMILY[family]) if family in _OF_FAMILY else None


def _submission(step: Step) -> str | None:
    """The text that was handed in with this step, None if nothing was."""
    for result in step.results:
        if result.terminal:
            answer: Any = result.data.get("answer")
            return None if answer is None else str(answer)
    return None


def _grade_math(task: Task, submission: str) -> Score:
    from toolenvs.grading.math import grade  # heavy: only where something is graded

    verdict = grade(task.answer, submission, policy=MathPolicy(**task.grading))
    if not verdict.gradable:
        return Score(0.0, "gold not gradable", masked=True)
    reason = f"{verdict.rule}: {verdict.reason}" if verdict.rule else verdict.reason
    return Score(1.0 if verdict.correct else 0.0, reason)
