"""The small tasks that come with the package: ``builtin``, ``builtin:train``, ``builtin:test``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolenvs.corpora import CorpusFile
from toolenvs.data import data_folder
from toolenvs.errors import UnknownNameError
from toolenvs.sources._databaserow import generated_world, sql_task
from toolenvs.sources._databases import built_folder
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._sqlsource import Databases, SqlSource
from toolenvs.sources._taskrow import read_task
from toolenvs.types import Task


class Builtin(SqlSource):
    """A family's own tasks, written for this project; ``tasks/FAMILY/task.toml`` describes them.

    Those of the family ``sql`` are about generated databases, each of which is built when a task
    of it is first drawn. Those of ``search`` have a corpus, ``corpus.jsonl`` beside them.

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
        corpus = folder / family / "corpus.jsonl"
        files = sorted(p.stem for p in (folder / family).glob("*.jsonl") if p != corpus)
        part = location or "train"
        if part not in files:
            raise UnknownNameError(f"a file of {family}'s built-in tasks", part, files)
        self._family = family
        self.corpus = CorpusFile(corpus, name=f"builtin-{family}") if corpus.is_file() else None
        self._loaded = False
        databases = Databases(built_folder()) if family == "sql" else None
        super().__init__("builtin", folder / family / f"{part}.jsonl", databases=databases)
        self._loaded = True

    @property
    def resources(self) -> Mapping[str, Mapping[str, Any]]:
        """Options of the runtimes that the tasks need."""
        return {"index": {"corpus": self.corpus}} if self.corpus else super().resources

    def _written(self, row: Row) -> Task:
        task = read_task(row, self._family)
        if self.databases is None:
            return task
        world = generated_world(row)
        if world and self._loaded:
            world.build()
        return sql_task(task, row, self.databases, folder=None)

    def _why_unusable(self, task: Task) -> str:
        # That every gold is fit is tested, so that no database is built to load them.
        return "" if self.databases else super()._why_unusable(task)
