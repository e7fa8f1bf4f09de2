"""MATH and MATH-500: ``problem`` and ``answer`` in LaTeX, ``subject``, ``level``, ``unique_id``.

Layout: Hendrycks et al. 2021, arXiv:2103.03874; the 500 of Lightman et al. 2023, arXiv:2305.20050.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.grading.boxed import extract_boxed
from toolenvs.sources._calls import ready_call
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._rowsource import RowSource
from toolenvs.types import Task

_KEPT = ("subject", "type", "level")


class Math(RowSource):
    """The rows of a file in the layout of MATH-500, such as ``math:data/math500_test.jsonl``.

    Rows in the older layout, without ``answer``, are read too: theirs is the last box of
    ``solution``.

    A task's id is the row's ``unique_id``, or ``stem-17`` for the 18th row where there is none.
    Its gold call only shows that Python answers: how to compute the answer is not known, and gold
    answers never enter a sandbox. The worked solution is not kept: it holds the gold.

    Args:
        location: path of the file.
        family: taken by every source; these tasks are always ``math_tir``.

    Raises:
        DataError: As ``RowSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "math_tir") -> None:
        super().__init__("math", location)

    def _task(self, row: Row) -> Task:
        answer = _answer(row)
        return Task(
            id=row.text("unique_id") if "unique_id" in row.fields else row.default_id,
            prompt=row.text("problem"),
            answer=answer,
            gold_calls=(ready_call(),),
            data={name: row.fields[name] for name in _KEPT if name in row.fields},
        )


def _answer(row: Row) -> str:
    if "answer" not in row.fields and "solution" in row.fields:
        row.require("problem")
        return extract_boxed(row.text("solution")) or ""
    row.require("problem", "answer")
    return row.text("answer")
