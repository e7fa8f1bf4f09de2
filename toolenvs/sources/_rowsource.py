"""A file of rows as a sequence of tasks: what the sources that read such files share."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from toolenvs.errors import DataError, UsageError
from toolenvs.sources._gold import why_unusable
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._rowfiles import JsonLines, RowFile
from toolenvs.types import Task


class RowSource:
    """The usable rows of one file; a subclass says how a row becomes a task (``_task``).

    The file is read once, row by row; what stays in memory is each usable row's id and place in
    the file, and a task is decoded when it is asked for.

    Args:
        name: the source's name.
        location: path of the file, ``~`` allowed.
        layout: how rows lie in the file.

    Attributes:
        ids: the id of each usable task, in the file's order.
        rejected: one ``path:line: why``, or ``path[row]: why``, for each row whose gold answer
            cannot be graded or whose prompt is too long for an observation. These are no tasks:
            ``len`` does not count them and no sampler draws them.

    Raises:
        DataError: The file is missing, a row is no JSON object, lacks a field, holds it in the
            wrong type or holds files that no sandbox can, two rows share an id, or no row is
            usable.
    """

    def __init__(
        self,
        name: str,
        location: str | Path,
        *,
        layout: Callable[[Path], RowFile] = JsonLines,
    ) -> None:
        self.name = name
        self.path = path_of(location, source=name)
        self._file = layout(self.path)
        self._numbers = array("q")
        self.ids: Sequence[str] = []
        self.rejected: Sequence[str] = []
        self._loaded_at = self._stamp()
        self._load()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Task:
        row = range(len(self.ids))[operator.index(index)]
        number = self._numbers[row]
        try:
            found = self._file[number]
            task = self._task(found)
        except DataError as error:
            if self._stamp() == self._loaded_at:
                raise
            place = str(error).partition(": ")[0] if str(self.path) in str(error) else self.path
            raise DataError(f"{place}: the file has changed since it was loaded.") from error
        if task.id != self.ids[row]:
            raise DataError(f"{found.place}: the file has changed since it was loaded.")
        return task

    def place_of(self, index: int) -> str:
        """Where the row of a task is: ``path:line``, or ``path[row]``."""
        return self._file[self._numbers[operator.index(index)]].place

    def _task(self, row: Row) -> Task:
        raise NotImplementedError

    def _why_unusable(self, task: Task) -> str:
        """Say why a task is none, ``""`` if it is one; asked once, when the file is loaded."""
        return why_unusable(task)

    def _stamp(self) -> tuple[int, int]:
        """What a change of the file changes."""
        try:
            seen = self.path.stat()
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return 0, 0
        return seen.st_size, seen.st_mtime_ns

    def _row_at(self, place: str) -> str:
        mark, where = place[len(str(self.path))], place[len(str(self.path)) + 1 :]
        return f"line {where}" if mark == ":" else f"row {where.removesuffix(']')}"

    def _load(self) -> None:
        ids: list[str] = []
        rejected: list[str] = []
        places: dict[str, str] = {}
        for row in self._file:
            task = self._task(row)
            first = places.setdefault(task.id, row.place)
            if first != row.place:
                raise DataError(
                    f"{row.place}: id {task.id!r} is already that of {self._row_at(first)}; "
                    "each row needs an id of its own."
                )
            try:
                why = self._why_unusable(task)
            except UsageError as error:
                raise DataError(f"{row.place}: {error}") from error
            if why:
                rejected.append(f"{row.place}: {why}")
                continue
            ids.append(task.id)
            self._numbers.append(row.number)
        if not ids:
            few = f" The first of {len(rejected)}: {rejected[0]}" if rejected else ""
            raise DataError(f"{self.path}: no row of the file is usable.{few}")
        self.ids, self.rejected = ids, rejected


def path_of(location: str | Path, *, source: str) -> Path:
    """The path that a location names.

    Raises:
        UsageError: It is empty.
        DataError: It begins with ``~`` and a user that is not known.
    """
    if not str(location):
        raise UsageError(f"source {source!r} needs a path: write {source}:PATH.")
    try:
        return Path(location).expanduser()
    except RuntimeError as error:
        raise DataError(f"{location}: no such folder of a user is known: {error}") from None
