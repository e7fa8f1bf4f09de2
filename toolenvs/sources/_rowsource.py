"""A JSON Lines file as a sequence of tasks: what the sources that read such files share."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Sequence
from pathlib import Path

from toolenvs.errors import DataError, UsageError
from toolenvs.sources._gold import why_unusable
from toolenvs.sources._jsonlines import Line, Row, decode, read_at, read_lines
from toolenvs.types import Task


class RowSource:
    """The usable rows of one file; a subclass says how a row becomes a task (``_task``).

    The file is read once, line by line; what stays in memory is each usable row's id and place in
    the file, and a task is decoded when it is asked for.

    Args:
        name: the source's name.
        location: path of the file, ``~`` allowed.

    Attributes:
        ids: the id of each usable task, in the file's order.
        rejected: one ``path:line: why`` for each row whose gold answer cannot be graded or whose
            prompt is too long for an observation. These are no tasks: ``len`` does not count them
            and no sampler draws them.

    Raises:
        DataError: The file is missing, a row is no JSON object, lacks a field, holds it in the
            wrong type or holds files that no sandbox can, two rows share an id, or no row is
            usable.
    """

    def __init__(self, name: str, location: str | Path) -> None:
        if not str(location):
            raise UsageError(f"source {name!r} needs a path: write {name}:PATH.")
        self.name = name
        try:
            self.path = Path(location).expanduser()
        except RuntimeError as error:
            raise DataError(f"{location}: no such folder of a user is known: {error}") from None
        self._stem = self.path.name.split(".")[0] or self.path.name
        self._offsets = array("q")
        self._lines = array("q")
        self._numbers = array("q")
        self.ids: Sequence[str] = []
        self.rejected: Sequence[str] = []
        self._load()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Task:
        row = range(len(self.ids))[operator.index(index)]
        line = Line(self._lines[row], self._offsets[row], read_at(self.path, self._offsets[row]))
        place = f"{self.path}:{line.number}"
        try:
            task = self._task(self._row(line, self._numbers[row]))
        except DataError as error:
            raise DataError(f"{place}: the file has changed since it was loaded.") from error
        if task.id != self.ids[row]:
            raise DataError(f"{place}: the file has changed since it was loaded.")
        return task

    def _task(self, row: Row) -> Task:
        raise NotImplementedError

    def _row(self, line: Line, number: int) -> Row:
        place = f"{self.path}:{line.number}"
        return Row(*decode(line.text, place), place, self._stem, number)

    def _load(self) -> None:
        ids: list[str] = []
        rejected: list[str] = []
        lines: dict[str, int] = {}
        for number, line in enumerate(read_lines(self.path)):
            row = self._row(line, number)
            task = self._task(row)
            first_line = lines.setdefault(task.id, line.number)
            if first_line != line.number:
                raise DataError(
                    f"{row.place}: id {task.id!r} is already that of line {first_line}; "
                    "each row needs an id of its own."
                )
            if why := _why_unusable(task, row):
                rejected.append(f"{row.place}: {why}")
                continue
            ids.append(task.id)
            self._offsets.append(line.offset)
            self._lines.append(line.number)
            self._numbers.append(number)
        if not ids:
            first = f" The first of {len(rejected)}: {rejected[0]}" if rejected else ""
            raise DataError(f"{self.path}: no row of the file is usable.{first}")
        self.ids, self.rejected = ids, rejected


def _why_unusable(task: Task, row: Row) -> str:
    try:
        return why_unusable(task)
    except UsageError as error:
        raise DataError(f"{row.place}: {error}") from error
