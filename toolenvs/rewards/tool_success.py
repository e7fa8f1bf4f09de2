"""Do the calls end without an error?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.types import Score, Task, ToolCall, Trajectory


class ToolSuccess:
    """Calls that ended without an error / all calls so far, ``submit`` left out; 0 without a call.

    It only guides: being ``shaping``, it is paid back when the episode ends, so calls that do
    nothing (``pass``, ``sys.exit(0)``) gain nothing by the end, a right answer without a call
    loses nothing, and the code's own word on whether it raised decides no episode's score.
    """

    name: str = "tool_success"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = True

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the results suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Count the calls so far."""
        # Not strict: an unreadable message has a result but no call; that is the format's matter.
        results = [
            result
            for step in prefix.steps
            for call, result in zip(step.calls, step.results, strict=False)
            if call.name != "submit" and not result.terminal
        ]
        if not results:
            return Score(0.0, "no calls")
        good = sum(result.error is None for result in results)
        return Score(good / len(results), f"{good} of {len(results)} calls without an error")
