"""Is the answer reached within a bounded amount of the model's own text?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.errors import UsageError
from toolenvs.types import Score, Step, Task, ToolCall, Trajectory


class Length:
    """1 for an answer within ``free`` of own text, falling linearly to 0 at ``limit``.

        score = clip((limit - n) / (limit - free), 0, 1)   if an answer was submitted, else 0

    ``n`` counts all that the model wrote in the episode, thoughts included, so writing more never
    earns more; what tools answer is not counted. It is scored when the episode has ended and looks
    at no answer's worth: that is the ``answer`` term's.

    Args:
        free: own text that costs nothing, in ``unit``.
        limit: own text at which nothing is left, in ``unit``; more than ``free``.
        unit: ``"characters"``, or ``"tokens"`` as the sampler reported them (``Step.token_ids``);
            where a message came without its tokens the score is then masked.

    Raises:
        UsageError: Not ``0 < free < limit``, or no such unit.

    Source: the soft overlong punishment of Yu et al. 2025 (DAPO), arXiv:2503.14476, section 3.4,
    moved from [-1, 0] to [0, 1] and from a response to an episode.
    """

    name: str = "length"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def __init__(
        self,
        free: int = 8192,
        limit: int = 16384,
        *,
        unit: Literal["characters", "tokens"] = "characters",
    ) -> None:
        if not 0 < free < limit:
            raise UsageError(f"free={free}, limit={limit}: it must be 0 < free < limit.")
        if unit not in ("characters", "tokens"):
            raise UsageError(f"unit {unit!r} is unknown; choose characters or tokens.")
        self.free = free
        self.limit = limit
        self.unit = unit

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the messages suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Measure the whole episode's own text, once it has ended."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        if not any(result.terminal for result in prefix.steps[-1].results):
            return Score(0.0, "no submission")
        own = [step for step in prefix.steps if step.parsed is not None]
        if self.unit == "tokens" and any(step.action and not step.token_ids for step in own):
            return Score(0.0, "a message came without its tokens", masked=True)
        size = sum(self._size(step) for step in own)
        share = (self.limit - size) / (self.limit - self.free)
        return Score(min(1.0, max(0.0, share)), f"{size} {self.unit}")

    def _size(self, step: Step) -> int:
        return len(step.token_ids) if self.unit == "tokens" else len(step.action)
