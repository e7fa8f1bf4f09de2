"""How a message answers without a call of ``submit``: a box, an ``<answer>`` tag, or either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from toolenvs.errors import UsageError
from toolenvs.formats._tagged import ANSWER, ANSWER_SLOT, Slot
from toolenvs.grading.boxed import extract_boxed

AnswerForm = Literal["any", "boxed", "tag"]


class Answers:
    r"""The option ``answer`` of a format.

    Args:
        form: ``"boxed"``: the last ``\boxed{...}`` outside thoughts, when the message makes no
            call; ``"tag"``: ``<answer>...</answer>``; ``"any"``: both are read.

    Raises:
        UsageError: There is no such form.
    """

    def __init__(self, form: AnswerForm) -> None:
        if form not in get_args(AnswerForm):
            raise UsageError(f"answer={form!r} is not known; choose one of any, boxed, tag.")
        self.form = form
        self.boxed = form != "tag"
        self.slots: Mapping[str, Slot] = {} if form == "boxed" else {ANSWER: ANSWER_SLOT}

    @property
    def hint(self) -> str:
        """``wording`` for an observation: in words, so that nothing of it has to be neutralised."""
        parts = ["in a box (the command boxed of LaTeX)"] * self.boxed
        return " or ".join([*parts, *[f"between tags named {ANSWER!r}"] * bool(self.slots)])

    @property
    def wording(self) -> str:
        """How to answer, for a sentence that begins with "answer"."""
        parts = ["in \\boxed{...}"] * self.boxed + [f"in <{ANSWER}>...</{ANSWER}>"] * bool(
            self.slots
        )
        return " or ".join(parts)

    def write(self, answer: str, *, alone: bool) -> str:
        """Write an answer; ``alone`` when no call stands beside it, so that a box is read."""
        box = f"\\boxed{{{answer}}}"
        if self.boxed and (not self.slots or (alone and extract_boxed(box) == answer.strip())):
            return box
        return f"<{ANSWER}>{answer}</{ANSWER}>"
