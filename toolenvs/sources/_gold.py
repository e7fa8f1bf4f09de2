"""Whether a task's gold answer can be graded at all: it is graded against itself."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from toolenvs.errors import UsageError
from toolenvs.types import Task


def why_unusable(task: Task) -> str:
    """Say why a task can never be scored fairly; ``""`` when it can.

    A task of another family than ``math_tir`` only needs a prompt and an answer here: how its
    answer is checked is up to its own source.

    Raises:
        UsageError: ``task.grading`` holds a setting that the grader does not have, or a value that
            it refuses.
    """
    if not task.prompt.strip():
        return "the prompt is empty"
    if not task.answer.strip():
        return "the gold answer is empty"
    return _why_not_mathematics(task) if task.family == "math_tir" else ""


def _why_not_mathematics(task: Task) -> str:
    from toolenvs.grading.math import check_gold

    verdict = check_gold(task.answer, _policy(task))
    if verdict.correct and verdict.gradable:
        return ""
    reason = "" if verdict.reason == "gold_not_gradable" else f": {verdict.reason}"
    return f"the gold answer {_short(task.answer)} is not gradable{reason}"


def _policy(task: Task) -> Any:
    from toolenvs.grading.math import MathPolicy

    for name in task.grading:
        if name not in MathPolicy.__struct_fields__:
            known = sorted(MathPolicy.__struct_fields__)
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"grading has no setting {name!r}.{hint} Known: {', '.join(known) or 'none'}."
            )
    try:
        return msgspec.convert(dict(task.grading), MathPolicy)
    except msgspec.ValidationError as error:
        raise UsageError(f"grading cannot be {dict(task.grading)!r}: {error}.") from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
