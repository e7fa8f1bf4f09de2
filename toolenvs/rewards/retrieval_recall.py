"""Which of the documents that the answer needs has the agent been shown?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.rewards._episode import share_seen
from toolenvs.types import Score, Task, ToolCall, Trajectory


class RetrievalRecall:
    """The share of ``grading["supporting"]`` that stood in a result of this episode, at its end.

    A document counts when it was a hit of a search or was opened. Scored for every end, with or
    without a submission; masked where no supporting document is known.
    """

    name: str = "retrieval_recall"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the results suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Count the supporting documents that were shown."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        return share_seen(task, prefix)
