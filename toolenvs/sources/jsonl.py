"""Your own tasks, one JSON object a line: ``prompt`` and ``answer``, and what else a task has."""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._jsonlines import Row
from toolenvs.sources._rowsource import RowSource
from toolenvs.sources._taskrow import read_task
from toolenvs.types import Task


class Jsonl(RowSource):
    """The rows of a file such as ``jsonl:my/tasks.jsonl``.

    Each row needs ``prompt`` (text) and ``answer`` (text; a number is taken as written in plain
    digits). It may have ``id`` (else ``stem-17`` for the 18th row), ``files`` (name to text, laid
    into the sandbox), ``grading`` (settings of the grader), ``gold_calls`` (a list of
    ``{"name": ..., "arguments": {...}}``) and ``data``. Every other field joins ``data``.

    Args:
        location: path of the file.
        family: the family of its tasks.

    Raises:
        DataError: As ``RowSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "math_tir") -> None:
        self._family = family
        super().__init__("jsonl", location)

    def _task(self, row: Row) -> Task:
        return read_task(row, self._family)
