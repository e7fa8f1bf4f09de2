"""Does the answer cite the documents that it rests on, and no others?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.grading.citing import invented_quotes, marked_ids, split_ids
from toolenvs.rewards._episode import (
    Submission,
    read_submission,
    seen_ids,
    seen_texts,
    supporting_ids,
)
from toolenvs.types import Score, Task, ToolCall, Trajectory

_SHOWN = 5


class Citations:
    """F1 of the cited documents and ``grading["supporting"]``, at the end of the episode.

        precision = right / cited        recall = right / supporting

    Each document counts once, however often it is cited. Cited are the ids in ``citations`` of the
    submission and those in marks ``[...]`` of its answer; of the marks beside ``citations`` only
    those that name a document, since brackets may be part of an answer. Right are those that are
    supporting *and* stood in a result of this episode: an id that was never shown is wrong, be it a
    lucky guess.
    Citing nothing is 0. An answer with a quotation of three words or more that stands neither in
    the question nor in a result, nor across pages of a document that follow each other, is 0
    altogether: it is made up. Masked where no supporting document is known.
    """

    name: str = "citations"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the submission and the results suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Compare the citations of the last step's submission."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        supporting = supporting_ids(task)
        if not supporting:
            return Score(0.0, "no supporting document is known", masked=True)
        submission = read_submission(prefix.steps[-1])
        if submission is None:
            return Score(0.0, f"no submission ({prefix.steps[-1].end_reason or 'ended'})")
        seen = seen_ids(prefix)
        cited = _cited(submission, known=seen | supporting)
        if not cited:
            return Score(0.0, "nothing is cited")
        sources = [task.prompt, *seen_texts(prefix)]
        if invented := invented_quotes(submission.answer, sources, seen):
            return Score(0.0, f"invented quote: {invented[0][:80]!r}")
        right = len(cited & supporting & seen)
        unknown = sorted(cited - seen)
        reason = f"{right} of {len(cited)} cited, of {len(supporting)} supporting"
        if unknown:
            reason += f"; unknown id: {', '.join(unknown[:_SHOWN])[:200]}"
        return Score(2 * right / (len(cited) + len(supporting)), reason)


def _cited(submission: Submission, *, known: frozenset[str]) -> frozenset[str]:
    """The ids that are cited, also several in one text."""
    ids = frozenset(each for text in submission.citations for each in split_ids(text, known))
    marked = frozenset(marked_ids(submission.answer, known))
    return ids | marked & known if ids else marked
