"""defog's sql-eval: questions on business databases, for PostgreSQL and for SQLite.

Layout: https://github.com/defog-ai/sql-eval (questions) and defog-data (scripts of databases).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.errors import DataError, UsageError
from toolenvs.grading.sql_golds import expand_golds
from toolenvs.sources._databases import Script, build, built_folder, keep_text
from toolenvs.sources._frozen import for_sqlite, without_clock
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._location import split_location
from toolenvs.sources._rowfiles import CsvRows
from toolenvs.sources._rowsource import path_of
from toolenvs.sources._sqlsource import Databases, SqlSource, number_of_instances, rows_in
from toolenvs.sources._sqltask import Question
from toolenvs.types import Database, Task

_FILES = ("questions_gen_postgres.csv", "questions_gen_sqlite.csv")
_ASKS_FOR_ORDER = re.compile(r"\b(?:order|sort|arrange)", re.IGNORECASE)


class Defog(SqlSource):
    """The rows of a file of questions, such as ``defog:data/sql-eval/questions_gen_postgres.csv``.

    Databases are made from defog's PostgreSQL scripts, ``NAME.postgres.sql`` or ``NAME/NAME.sql``:
    templates of the service ``postgres``, or SQLite files that are built once. Where a script fills
    tables relative to the present, that is 2024-06-15. A gold that itself asks for the present is
    rejected.

    As sql-eval grades: any of several golds, and any choice of columns in braces, is right; up to
    two more columns are allowed; order counts only if the question asks for one. A task's id is
    ``defog-``, the file's stem and the row's number; instructions are a hint in the prompt.

    Args:
        location: the file, or a folder with it; ``,databases=FOLDER`` if the scripts are not
            beside it, and ``,engine=sqlite`` or ``postgres`` where neither the rows nor the file's
            name tell. ``,instances=3`` as for ``spider``, for SQLite.
        family: taken by every source; these tasks are always ``sql``.

    Raises:
        DataError: As ``RowSource``.
    """

    def __init__(self, location: str | Path, *, family: str = "sql") -> None:
        path, options = split_location(
            str(location), ("databases", "engine", "instances"), source="defog"
        )
        rows = rows_in(path, source="defog", names=_FILES)
        self._scripts = path_of(options.get("databases", str(rows.parent)), source="defog")
        self._engine = options.get("engine", "sqlite" if "sqlite" in rows.stem else "postgres")
        if self._engine not in ("sqlite", "postgres"):
            raise UsageError(f"defog: engine={self._engine!r} must be 'sqlite' or 'postgres'.")
        instances = number_of_instances(options)
        if instances and self._engine == "postgres":
            raise UsageError("defog: instances= are made for SQLite alone; add engine=sqlite.")
        self._found: dict[str, tuple[Database, str]] = {}
        folders = [built_folder()] if self._engine == "sqlite" else []
        super().__init__(
            "defog", rows, databases=Databases(*folders, instances=instances), layout=CsvRows
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy builds its databases anew: it may be on another machine."""
        return {**self.__dict__, "_found": {}}

    def _question(self, row: Row) -> Question:
        row.require("question", "query", "db_name")
        category = row.fields.get("query_category", "")
        ordered = category == "order_by" or _ASKS_FOR_ORDER.search(row.text("question"))
        grading: dict[str, Any] = {"columns": "subset", "order": "auto" if ordered else "never"}
        try:
            first, *others = expand_golds(row.text("query")) or [""]
        except UsageError as error:
            raise DataError(f"{row.place}: {error}") from error
        if others:
            grading["alternatives"] = others
        return Question(
            id=f"defog-{row.stem.replace('_', '-')}-{row.number}",
            text=row.text("question"),
            hint=row.fields.get("full_instructions") or row.fields.get("instructions") or "",
            gold=first,
            database=self._database(row.text("db_name"))[0],
            grading=grading,
            data={"category": category},
        )

    def _why_unusable(self, task: Task) -> str:
        assert task.database is not None
        return self._database(task.database.name)[1] or super()._why_unusable(task)

    def _database(self, name: str) -> tuple[Database, str]:
        """A database by its name, and why it cannot be used."""
        if name not in self._found:
            self._found[name] = self._made(name)
        return self._found[name]

    def _made(self, name: str) -> tuple[Database, str]:
        paths = (self._scripts / f"{name}.postgres.sql", self._scripts / name / f"{name}.sql")
        database = Database(name=name, engine="postgres", place=name)
        script = next((path for path in paths if path.is_file()), None)
        if script is None or not re.fullmatch(r"\w+", name):
            return database, f"there is no script {paths[0]} of the database {name!r}"
        text = without_clock(script.read_text(encoding="utf-8"))
        if self._engine == "postgres":
            digest = hashlib.sha256(text.encode()).hexdigest()
            assert self.databases is not None
            self.databases.templates[name] = keep_text(text, name=f"{name}.sql", digest=digest)
            return msgspec.structs.replace(database, digest=digest), ""
        try:
            made = Script(name, for_sqlite(text))
            place = build(made)
        except (ValueError, KeyError, DataError) as error:
            return database, f"no SQLite database can be made of {script.name}: {error}"
        return Database(name=name, place=place, digest=made.digest), ""
