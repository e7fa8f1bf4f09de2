"""Does a result show a document that the answer needs and that was not shown before?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.rewards._episode import share_seen
from toolenvs.types import Score, Task, ToolCall, Trajectory


class NewEvidence:
    """The share of ``grading["supporting"]`` shown so far, paid at the step that shows more.

    It never falls, so exploring costs nothing, and showing a document again pays nothing; over an
    episode it pays at most 1, however much is searched. Masked where no supporting document is
    known.
    """

    name: str = "new_evidence"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the results suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Count the supporting documents that were shown."""
        return share_seen(task, prefix)
