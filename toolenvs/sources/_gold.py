"""Whether a task can be played and scored at all: its gold answer is graded against itself."""

from __future__ import annotations

from toolenvs.grading.policy import read_policy
from toolenvs.sources._layout import why_not_laid_out
from toolenvs.types import Task

_MAX_PROMPT = 1_000_000  # characters of an observation; see ``toolenvs.spaces.Unicode``


def why_unusable(task: Task) -> str:
    """Say why a task can never be played and scored fairly; ``""`` when it can.

    A task of another family than ``math_tir`` and ``search`` only needs a prompt and an answer
    here: how its answer is checked is up to its own source.

    Raises:
        UsageError: ``task.grading`` holds a setting that the grader does not have, or a value that
            it refuses.
    """
    if not task.prompt.strip():
        return "the prompt is empty"
    if len(task.prompt) > _MAX_PROMPT:
        size = len(task.prompt)
        return f"the prompt has {size} characters; an observation holds {_MAX_PROMPT} at most"
    if why := why_not_laid_out(task.files):
        return why
    if task.family == "search":
        return _why_no_short_answer(task)
    if not task.answer.strip():
        return "the gold answer is empty"
    return _why_not_mathematics(task) if task.family == "math_tir" else ""


def _why_not_mathematics(task: Task) -> str:
    from toolenvs.grading.math import check_gold

    verdict = check_gold(task.answer, read_policy(task.grading))
    if verdict.correct and verdict.gradable:
        return ""
    reason = "" if verdict.reason == "gold_not_gradable" else f": {verdict.reason}"
    return f"the gold answer {_short(task.answer)} is not gradable{reason}"


def _why_no_short_answer(task: Task) -> str:
    from toolenvs.grading.qa import check_gold, read_policy

    if check_gold(task.answer, read_policy(task.grading)).gradable:
        return ""
    if not task.answer.strip():
        return "the gold answer is empty"
    return f"the gold answer {_short(task.answer)} is not gradable"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
