"""Are the model's messages well-formed?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from toolenvs.errors import UsageError
from toolenvs.types import ParsedTurn, Score, Step, Task, ToolCall, Trajectory

Scope = Literal["final", "turn", "trajectory"]


class FormatValid:
    """Well-formedness of the messages, by the format's own strict reading of them.

    A message is *clean* when its format read it without an error, a repair or any problem: tags
    that merely look right do not count. Two kinds of steps are not judged: messages that the token
    limit cut (the model could not end them; they run nothing either), and steps without a message
    (made by ``act`` or ``finish``).

        final       1 if the answer's message is clean, else 0; an episode that ended without an
                    answer is judged by its last judged message
        turn        clean messages / judged messages
        trajectory  1 if every judged message is clean, else 0

    ``turn`` can be diluted: clean messages that do nothing raise the share. ``final`` and
    ``trajectory`` cannot, so a gate of the default rubric uses these two.

    Args:
        scope: what is judged, one of the three above.
        unjudged: the value while no message was judged, in [0, 1]: 0 for a term, 1 for a gate.

    Raises:
        UsageError: No such scope, or ``unjudged`` is out of range.
    """

    name: str = "format_valid"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = False

    def __init__(self, scope: Scope = "trajectory", *, unjudged: float = 0.0) -> None:
        if scope not in get_args(Scope):
            raise UsageError(f"scope {scope!r} is unknown; choose final, turn or trajectory.")
        if not 0.0 <= unjudged <= 1.0:
            raise UsageError(f"unjudged={unjudged} is out of range; it lies in [0, 1].")
        self.scope = scope
        self.unjudged = float(unjudged)

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the messages suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Judge the messages so far; the reason counts them or quotes the first problem."""
        if not prefix.steps:
            return Score(0.0, "no messages yet")
        judged = self._judged(prefix)
        if not judged:
            return Score(self.unjudged, "no message to judge")
        problems = [_problem(message) for message in judged]
        dirty = [problem for problem in problems if problem]
        if not dirty:
            return Score(1.0, f"{len(judged)} of {len(judged)} messages clean")
        share = 1.0 - len(dirty) / len(judged) if self.scope == "turn" else 0.0
        return Score(share, f"{len(dirty)} of {len(judged)} messages not clean: {dirty[0]}")

    def _judged(self, prefix: Trajectory) -> list[ParsedTurn]:
        if self.scope == "final":
            answering = [step for step in prefix.steps[-1:] if _answers(step)]
            if answering:
                return _messages(answering)
            return _messages(prefix.steps)[-1:] if prefix.ended else []
        return _messages(prefix.steps)


def _messages(steps: Sequence[Step]) -> list[ParsedTurn]:
    parsed = [step.parsed for step in steps]
    return [message for message in parsed if message is not None and not message.cut]


def _answers(step: Step) -> bool:
    return any(result.terminal for result in step.results)


def _problem(message: ParsedTurn) -> str:
    """The first thing wrong with a message, ``""`` for a clean one."""
    if message.error is not None:
        return message.error.message or message.error.kind
    if message.problems:
        return message.problems[0]
    return "repaired" if message.repaired else ""
