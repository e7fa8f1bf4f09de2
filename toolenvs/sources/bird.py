"""BIRD: questions with evidence and difficulty; ``dev.json``, ``mini_dev``, InterCode's layout.

Layout: Li et al. 2023, arXiv:2305.03111; https://bird-bench.github.io.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.errors import DataError
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._location import split_location
from toolenvs.sources._rowfiles import JsonArray, JsonLines
from toolenvs.sources._sqlsource import (
    Databases,
    SqlSource,
    database_file,
    folder_of,
    number_of_instances,
    rows_in,
)
from toolenvs.sources._sqltask import Question
from toolenvs.types import Database

_OPTIONS = ("databases", "instances")
_FILES = ("dev.json", "mini_dev_sqlite.json", "mini_dev.json", "train.json")
_FOLDERS = ("dev_databases", "train_databases", "database", "databases")


class Bird(SqlSource):
    """The rows of a BIRD folder, such as ``bird:data/bird/dev``.

    Rows are BIRD's own (``db_id``, ``question``, ``evidence``, ``SQL``), or in the layout of
    InterCode (``db``, ``query`` for the question, ``gold``) or of NeMo Gym (``gt_sql``, a line
    each). A task's id is ``bird-`` and its ``question_id``, so that a question has one id in
    ``dev`` and ``mini_dev``; without one, the file's stem and the row's number. The evidence is a
    hint in the prompt; ``data`` has the difficulty.

    Args:
        location: the folder, of which ``dev.json`` or ``mini_dev`` is read, or the file itself,
            and ``,databases=FOLDER`` if the databases are not in ``dev_databases`` beside it.
            ``,instances=3`` gives each task up to three more databases, made so that near misses
            of its gold fail there: a query must be right on all. Without it (0) the data set's own
            database decides alone, as published.
        family: taken by every source; these tasks are always ``sql``.

    Raises:
        DataError: As ``RowSource``; or there is no folder of databases.
        UsageError: ``instances`` is no number from 0 to 8.
    """

    def __init__(self, location: str | Path, *, family: str = "sql") -> None:
        path, options = split_location(str(location), _OPTIONS, source="bird")
        rows = rows_in(path, source="bird", names=_FILES)
        chosen = options.get("databases", "")
        self._folder = folder_of(rows, source="bird", names=_FOLDERS, chosen=chosen)
        databases = Databases(self._folder, instances=number_of_instances(options))
        layout = JsonLines if rows.suffix == ".jsonl" else JsonArray
        super().__init__("bird", rows, databases=databases, layout=layout)

    def _question(self, row: Row) -> Question:
        name = _first(row, "db_id", "db")
        difficulty = row.fields.get("difficulty")
        return Question(
            id=_id(row),
            text=_first(row, "question", "query"),
            hint=row.text("evidence") if row.fields.get("evidence") else "",
            gold=_first(row, "SQL", "gold", "gt_sql"),
            database=Database(name=name, place=self._folder.place(database_file(name))),
            data={"difficulty": difficulty} if difficulty else {},
        )


def _id(row: Row) -> str:
    for name in ("question_id", "id"):
        if name in row.fields:
            return f"bird-{row.text(name)}"
    return f"bird-{row.stem}-{row.number}"


def _first(row: Row, *names: str) -> str:
    """The first of these fields that the row has."""
    for name in names:
        if name in row.fields:
            return row.text(name)
    raise DataError(
        f"{row.place}: field {names[0]!r} is missing; each row needs db_id, question, SQL."
    )
