"""Your own tasks, one JSON object a line: ``prompt`` and ``answer``, and what else a task has."""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._databaserow import generated_world, sql_task
from toolenvs.sources._databases import built_folder
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._location import split_location
from toolenvs.sources._rowsource import path_of
from toolenvs.sources._sqlsource import Databases, SqlSource, folder_of, number_of_instances
from toolenvs.sources._taskrow import read_task
from toolenvs.types import Task

_FOLDERS = ("databases", "database")


class Jsonl(SqlSource):
    """The rows of a file such as ``jsonl:my/tasks.jsonl``.

    Each row needs ``prompt`` (text) and ``answer`` (text; a number is taken as written in plain
    digits). It may have ``id`` (else ``stem-17`` for the 18th row), ``files`` (name to text, laid
    into the sandbox), ``grading`` (settings of the grader), ``gold_calls`` (a list of
    ``{"name": ..., "arguments": {...}}``), ``now`` (see ``Task``) and ``data``. Every other field
    joins ``data``.

    For the family ``sql`` the answer is the gold query, or the gold statements of a task that asks
    for a change, and each row needs ``database``: a SQLite file in the folder ``databases`` beside
    the file, or ``{"place": FILE, "instances": [FILE], "writable": true}``, or
    ``{"place": SCRIPT, "engine": "postgres"}``, or ``{"generated": "library", "seed": 0}``.

    Args:
        location: path of the file; for ``sql`` also ``,databases=FOLDER``, and ``,instances=3`` as
            for ``spider`` (tasks on SQLite that read).
        family: the family of its tasks.

    Raises:
        DataError: As ``RowSource``; or a database is not there.
    """

    def __init__(self, location: str | Path, *, family: str = "math_tir") -> None:
        self._family = family
        self._folder = None
        if family != "sql":
            super().__init__("jsonl", location, databases=None)
            return
        path, options = split_location(str(location), ("databases", "instances"), source="jsonl")
        rows, chosen = path_of(path, source="jsonl"), options.get("databases", "")
        if chosen or any((rows.parent / name).is_dir() for name in _FOLDERS):
            self._folder = folder_of(rows, source="jsonl", names=_FOLDERS, chosen=chosen)
        folders = [built_folder(), *([self._folder] if self._folder else [])]
        super().__init__(
            "jsonl", rows, databases=Databases(*folders, instances=number_of_instances(options))
        )

    def _written(self, row: Row) -> Task:
        task = read_task(row, self._family)
        if self.databases is None:
            return task
        task = sql_task(task, row, self.databases, folder=self._folder)
        if world := generated_world(row):
            world.build()
        return task
