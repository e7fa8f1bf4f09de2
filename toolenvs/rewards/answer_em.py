"""Is the submitted short answer the gold answer, or one of its aliases?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.grading.citing import without_marks
from toolenvs.grading.qa import grade
from toolenvs.grading.qa_policy import read_policy
from toolenvs.rewards._episode import read_submission, seen_ids
from toolenvs.types import Score, Task, ToolCall, Trajectory


class AnswerEm:
    """1 if the submitted answer equals the gold answer or an alias, else 0.

    Compared by ``toolenvs.grading.qa`` under the task's own policy, with and (but in the compatible
    modes) without its citation marks: brackets of ids that were shown, or of numbers at its end
    (``Lyon [2]``). Only what was handed in counts: not what a document says, nor what the agent
    thought. Scored once, when the episode has ended, for every end; without a
    submission it is 0. A task whose gold answer cannot be graded is masked.
    """

    name: str = "answer_em"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the submitted text and the gold answer suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Grade the submission of the last step."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        if not task.gradable:
            return Score(0.0, "gold not gradable", masked=True)
        submission = read_submission(prefix.steps[-1])
        policy = read_policy(task.grading)
        verdict = grade(task.answer, submission.answer if submission else "", policy=policy)
        if not verdict.gradable:
            return Score(0.0, "gold not gradable", masked=True)
        if submission is None:
            return Score(0.0, f"no submission ({prefix.steps[-1].end_reason or 'ended'})")
        if not verdict.correct and not policy.official:
            bare = without_marks(submission.answer, seen_ids(prefix))
            verdict = grade(task.answer, bare, policy=policy)
        reason = f"{verdict.rule}: {verdict.reason}" if verdict.rule else verdict.reason
        return Score(1.0 if verdict.correct else 0.0, reason)
