"""GSM8K: ``question`` and ``answer``, a worked solution that ends with ``#### 72``.

Layout: Cobbe et al. 2021, arXiv:2110.14168; https://github.com/openai/grade-school-math.
"""

from __future__ import annotations

import re
from pathlib import Path

from toolenvs.errors import DataError
from toolenvs.sources._arithmetic import read_arithmetic
from toolenvs.sources._calls import python_call, ready_call
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._rowsource import RowSource
from toolenvs.types import Task

_LARGEST = 10**15
_ANNOTATION = re.compile(r"<<([^<>\n]{1,300})>>")
_PROGRAM = """\
from fractions import Fraction as F

def show(value):
    print(value if F(value).denominator == 1 else float(value))

"""


class Gsm8k(RowSource):
    """The rows of a GSM8K file, such as ``gsm8k:data/gsm8k_test.jsonl``.

    A task's id is ``gsm8k-`` and the file's stem and the row's number from 0: ``gsm8k-test-17``
    for the 18th row of ``test.jsonl`` and of ``gsm8k_test.jsonl``. Its answer is what follows the
    last ``####``. Its gold calls compute what the solution's calculator annotations
    (``<<48/2=24>>``) say, from their left sides only; a solution without one that can be read gets
    a call that only shows that Python answers. The solution itself is not kept: it holds the gold.

    Args:
        location: path of the file.
        family: taken by every source; these tasks are always ``math_tir``.

    Raises:
        DataError: As ``RowSource``; or an answer holds no ``####``.
    """

    def __init__(self, location: str | Path, *, family: str = "math_tir") -> None:
        super().__init__("gsm8k", location)

    def _task(self, row: Row) -> Task:
        row.require("question", "answer")
        solution, mark, final = row.text("answer").rpartition("####")
        if not mark:
            raise DataError(
                f"{row.place}: field 'answer' holds no '####'; each row needs a solution that "
                "ends with '#### NUMBER'."
            )
        stem = row.stem.replace("_", "-").removeprefix("gsm8k-")
        return Task(
            id=f"gsm8k-{stem}-{row.number}",
            prompt=row.text("question"),
            answer=final.strip(),
            gold_calls=(_computation(solution),),
        )


def _computation(solution: str) -> dict[str, object]:
    lines = []
    for annotation in _ANNOTATION.findall(solution):
        computed = read_arithmetic(annotation.split("=")[0])
        if computed is not None and computed.operators and abs(computed.value) < _LARGEST:
            lines.append(f"show({computed.python})\n")
    return python_call(_PROGRAM + "".join(lines)) if lines else ready_call()
