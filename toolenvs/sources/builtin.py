"""The small tasks that come with the package: ``builtin``, ``builtin:train``, ``builtin:test``."""

from __future__ import annotations

from toolenvs.data import data_folder
from toolenvs.errors import UnknownNameError
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._rowsource import RowSource
from toolenvs.sources._taskrow import read_task
from toolenvs.types import Task


class Builtin(RowSource):
    """A family's own tasks, written for this project; ``tasks/FAMILY/task.toml`` describes them.

    Args:
        location: ``"train"`` (also ``""``) or ``"test"``.
        family: whose tasks.

    Raises:
        UnknownNameError: The family has no tasks of its own, or no file of that name.
    """

    def __init__(self, location: str = "", *, family: str = "math_tir") -> None:
        folder = data_folder("tasks")
        families = sorted(path.parent.name for path in folder.glob("*/task.toml"))
        if family not in families:
            raise UnknownNameError("a family with built-in tasks", family, families)
        files = sorted(path.stem for path in (folder / family).glob("*.jsonl"))
        part = location or "train"
        if part not in files:
            raise UnknownNameError(f"a file of {family}'s built-in tasks", part, files)
        self._family = family
        super().__init__("builtin", folder / family / f"{part}.jsonl")

    def _task(self, row: Row) -> Task:
        return read_task(row, self._family)
