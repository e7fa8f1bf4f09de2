"""How many words does the submitted short answer share with the gold answer?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.grading.citing import without_marks
from toolenvs.grading.qa import check_gold, overlap
from toolenvs.grading.qa_policy import read_policy
from toolenvs.rewards._episode import read_submission, seen_ids
from toolenvs.types import Score, Task, ToolCall, Trajectory


class AnswerF1:
    """F1 of the words of the submitted answer and of the gold answer or the best alias.

    As ``answer_em`` otherwise, which it is never below: a *yes* or *no* is worth 1 or nothing, and
    citation marks are no words. Hedging costs: more words lower the precision.
    """

    name: str = "answer_f1"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the submitted text and the gold answer suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Compare the submission of the last step."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        policy = read_policy(task.grading)
        if not task.gradable or not check_gold(task.answer, policy).gradable:
            return Score(0.0, "gold not gradable", masked=True)
        submission = read_submission(prefix.steps[-1])
        if submission is None:
            return Score(0.0, f"no submission ({prefix.steps[-1].end_reason or 'ended'})")
        texts = [submission.answer]
        if not policy.official:
            texts.append(without_marks(submission.answer, seen_ids(prefix)))
        found = [overlap(task.answer, text, policy=policy) for text in dict.fromkeys(texts)]
        best = max(found, key=lambda each: each.f1)
        return Score(best.f1, f"precision {best.precision:.3g}, recall {best.recall:.3g}")
