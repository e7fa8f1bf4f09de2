"""Spider: questions over many databases, ``dev.json``, ``tables.json`` and ``database/``.

Layout: Yu et al. 2018, arXiv:1809.08887; https://yale-lily.github.io/spider.
"""

from __future__ import annotations

from pathlib import Path

from toolenvs.sources._jsonlines import Row
from toolenvs.sources._location import split_location
from toolenvs.sources._rowfiles import JsonArray
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
_FILES = ("dev.json", "train_spider.json", "test.json")
_FOLDERS = ("database", "test_database")


class Spider(SqlSource):
    """The rows of a Spider folder, such as ``spider:data/spider``.

    A task's id is ``spider-`` and the file's stem and the row's number from 0: ``spider-dev-17``.
    Its prompt is the question; schemas are what the tool ``sql_schema`` shows, so ``tables.json``
    is not read.

    Args:
        location: the folder, of which ``dev.json`` is read, or the file itself
            (``spider:data/spider/train_others.json``), and ``,databases=FOLDER`` if the databases
            are not in ``database`` beside it. ``,instances=3`` gives each task up to three more
            databases, made so that near misses of its gold fail there: a query must be right on
            all. Without it (0) the data set's own database decides alone, as published.
        family: taken by every source; these tasks are always ``sql``.

    Raises:
        DataError: As ``RowSource``; or there is no folder of databases.
        UsageError: ``instances`` is no number from 0 to 8.
    """

    def __init__(self, location: str | Path, *, family: str = "sql") -> None:
        path, options = split_location(str(location), _OPTIONS, source="spider")
        rows = rows_in(path, source="spider", names=_FILES)
        chosen = options.get("databases", "")
        self._folder = folder_of(rows, source="spider", names=_FOLDERS, chosen=chosen)
        databases = Databases(self._folder, instances=number_of_instances(options))
        super().__init__("spider", rows, databases=databases, layout=JsonArray)

    def _question(self, row: Row) -> Question:
        row.require("db_id", "question", "query")
        name = row.text("db_id")
        place = self._folder.place(database_file(name))
        return Question(
            id=f"spider-{row.stem.replace('_', '-').removesuffix('-spider')}-{row.number}",
            text=row.text("question"),
            gold=row.text("query"),
            database=Database(name=name, place=place),
        )
