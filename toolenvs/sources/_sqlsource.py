"""A file of questions about SQLite databases: what the sources of the family ``sql`` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.content import content_digest
from toolenvs.errors import DataError, UsageError
from toolenvs.grading.sql_chance import chancy_words
from toolenvs.grading.sql_fitness import GoldFinding, why_undecided
from toolenvs.grading.sql_policy import read_policy
from toolenvs.grading.sql_reading import touched
from toolenvs.sources._databases import DataFolder, built_folder, folder_name
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._options import whole_number
from toolenvs.sources._rowfiles import JsonLines, RowFile
from toolenvs.sources._rowsource import RowSource, path_of
from toolenvs.sources._sql_instances import MOST_INSTANCES, built_instances
from toolenvs.sources._sqlfindings import KeptFindings
from toolenvs.sources._sqlgold import Ask, examine, examine_asked, rows_of, with_plain_texts
from toolenvs.sources._sqltask import Question, gold_calls
from toolenvs.types import Database, Task

AskAt = Callable[[str], Ask]
"""Requests on the template of that name, on a server."""


class Databases:
    """What one source's tasks read, and what can be said of a task on it.

    Args:
        folders: folders of SQLite files; their names differ.
        instances: how many databases more a query must be right on, at most: neighbours that are
            built for each task when it is drawn (``_sql_instances``). Only for queries on SQLite.

    Attributes:
        templates: scripts that a PostgreSQL server makes databases of, by the template's name.
        kept: findings of golds of SQLite that are known; None: each gold is run.
    """

    def __init__(self, *folders: DataFolder, instances: int = 0) -> None:
        kept = (*folders, built_folder()) if instances else folders
        self._folders = {folder.name: folder for folder in kept}
        self._instances = instances
        self.templates: dict[str, Path] = {}
        self.kept: KeptFindings | None = None

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """What tasks need of runtimes in order to read it."""
        shown = {name: str(folder.path.absolute()) for name, folder in self._folders.items()}
        made = {name: str(script.absolute()) for name, script in self.templates.items()}
        needs = {"sandbox:sql": {"data": shown}, "service:postgres": {"templates": made}}
        return {need: option for need, option in needs.items() if all(option.values())}

    def file(self, database: Database, place: str = "") -> Path:
        """Where the file of a database is, or that of its instance at ``place``."""
        place = place or database.place
        if database.engine == "postgres":
            return self.templates.get(place, Path(place))
        return self._folders[place.partition("/")[0]].file(place)

    def strict(self, task: Task) -> Task:
        """The task with golds that an agent could have written: texts in single quotes.

        Raises:
            UsageError: Its grading is none.
        """
        database = _of(task)
        policy = read_policy(task.grading)
        if database.engine != "sqlite":
            return task
        file = self.file(database)
        grading = dict(task.grading)
        if policy.alternatives:
            grading["alternatives"] = [with_plain_texts(g, file) for g in policy.alternatives]
        gold = with_plain_texts(task.answer, file)
        calls = gold_calls(gold) if gold != task.answer else task.gold_calls
        return msgspec.structs.replace(task, answer=gold, grading=grading, gold_calls=calls)

    def known(self, task: Task) -> Task:
        """The task with its instances, and the digest of its databases' content.

        Raises:
            DataError: A file cannot be read, or an instance not be written.
        """
        database = self._with_instances(task)
        digest = database.digest or content_digest(self._files(database))
        database = msgspec.structs.replace(database, digest=digest)
        return msgspec.structs.replace(task, database=database)

    def _with_instances(self, task: Task) -> Database:
        database = _of(task)
        if not self._instances or database.engine != "sqlite" or database.writable:
            return database
        policy = read_policy(task.grading)
        places = built_instances(
            task.answer, self.file(database), most=self._instances, policy=policy
        )
        return msgspec.structs.replace(database, instances=database.instances + places)

    def examine(self, task: Task, *, ask_at: AskAt | None = None) -> Examined:
        """Say why a task can never be played or must never pay, and what else is to be known.

        That a gold reads no table is noted: then an answer that is written out is paid, too.

        Args:
            task: the task.
            ask_at: a server on which golds of PostgreSQL are run; None: only their text is read.

        Raises:
            RuntimeFailure: The server does not answer.
            UsageError: The task's grading is none.
        """
        policy = read_policy(task.grading)
        found = self._of_gold(task, task.answer, ask_at)
        if found.unusable:
            return Examined(found)
        notes, bad = [*found.notes], []
        for gold in policy.alternatives:
            other = self._of_gold(task, gold, ask_at)
            if other.unusable:
                bad.append(gold)
                notes.append(f"an alternative is left out: {other.unusable}: {gold[:80]!r}")
        golds = (task.answer, *(gold for gold in policy.alternatives if gold not in bad))
        if policy.mode == "rows" and any(touched(g, _of(task).engine).constant for g in golds):
            notes.append("the gold reads no table, so an answer that is written out is paid, too")
        return Examined(GoldFinding("", tuple(notes)), left_out=tuple(bad))

    def _of_gold(self, task: Task, gold: str, ask_at: AskAt | None) -> GoldFinding:
        database = _of(task)
        for file in self._files(database):
            if why := _why_no_file(file):
                return GoldFinding(why)
        if words := chancy_words(gold, database.engine):
            return GoldFinding(f"the gold depends on the clock or on chance: {', '.join(words)}")
        if database.engine != "sqlite":
            if ask_at is None:
                rows = read_policy(task.grading).mode == "rows"
                return GoldFinding(why_undecided(gold, database.engine) if rows else "")
            return _asked(gold, database, ask_at, task.grading)
        first, *others = self._files(database)
        found = (self.kept.examine if self.kept else examine)(gold, first, grading=task.grading)
        for file in others:
            error = rows_of(gold, file).get("error")
            if not found.unusable and error:
                why = f"the gold does not run on the instance {file.name}: {error['message']}"
                return GoldFinding(why)
        return found

    def _files(self, database: Database) -> list[Path]:
        return [self.file(database, place) for place in (database.place, *database.instances)]


class Examined(msgspec.Struct, frozen=True):
    """What was found out of the golds of a task.

    Attributes:
        finding: of its answer.
        left_out: alternatives that must not pay.
    """

    finding: GoldFinding
    left_out: tuple[str, ...] = ()


def _asked(gold: str, database: Database, ask_at: AskAt, grading: Mapping[str, Any]) -> GoldFinding:
    """What is to be said of a gold on the server's templates."""
    ask = ask_at(database.place)
    found = examine_asked(gold, ask, grading=grading, engine=database.engine)
    for place in database.instances:
        if found.unusable:
            break
        if error := ask_at(place)("query", sql=gold).get("error"):
            why = f"the gold does not run on the instance {place}: {error['message']}"
            found = GoldFinding(why)
    return found


def _why_no_file(file: Path) -> str:
    """Why there is no database in a file, ``""`` if there may be one."""
    if file.is_dir():
        return f"{file} is a folder; a database is a file"
    if not file.is_file():
        return f"there is no database {file.name} in {file.parent}"
    return "" if file.stat().st_size else f"the database {file} is an empty file"


def _of(task: Task) -> Database:
    assert task.database is not None
    return task.database


class SqlSource(RowSource):
    """The usable rows of a file of questions; a subclass reads a row (``_question``).

    Each gold of SQLite is run once, when the file is loaded: read-only, on this machine. Rows whose
    gold fails, returns nothing, depends on the clock or is decided by a tie are reported, not
    played; what is known of golds that are fit is kept in the user's cache. Of a gold of PostgreSQL
    only the text is read, so that the same rows are played whether a server answers or not:
    ``toolenvs check golds`` runs it.

    Args:
        name: the source's name.
        location: path of the file.
        databases: where the databases are; None where the tasks are of another family.
        layout: how rows lie in the file.

    Attributes:
        notes: one ``id: note`` for what is to be known of a gold that is fit, such as rows that tie
            at its LIMIT, of which any is right.
        resources: what sandboxes need in order to read the databases.

    Raises:
        DataError: As ``RowSource``.
    """

    def __init__(
        self,
        name: str,
        location: str | Path,
        *,
        databases: Databases | None,
        layout: Callable[[Path], RowFile] = JsonLines,
    ) -> None:
        self.databases = databases
        self.notes: list[str] = []
        self._left_out: dict[str, tuple[str, ...]] = {}
        if databases is not None:
            databases.kept = KeptFindings(path_of(location, source=name))
        super().__init__(name, location, layout=layout)
        if databases is not None and databases.kept:
            databases.kept.save()
            databases.kept = None

    @property
    def resources(self) -> Mapping[str, Mapping[str, Any]]:
        """Options of the runtimes that the tasks need."""
        return self.databases.resources if self.databases else {}

    def __getitem__(self, index: int) -> Task:
        task = super().__getitem__(index)
        if self.databases is None:
            return task
        if left_out := self._left_out.get(task.id):
            kept = [gold for gold in task.grading["alternatives"] if gold not in left_out]
            grading = {**task.grading, "alternatives": kept}
            task = msgspec.structs.replace(task, grading=grading)
        return self.databases.known(task)

    def _question(self, row: Row) -> Question:
        raise NotImplementedError

    def _written(self, row: Row) -> Task:
        """The task as the row has it."""
        return self._question(row).task()

    def _task(self, row: Row) -> Task:
        try:
            task = self._written(row)
        except DataError as error:
            if str(error).startswith(row.place):
                raise
            raise DataError(f"{row.place}: {error}") from error
        try:
            return self.databases.strict(task) if self.databases else task
        except UsageError as error:
            raise DataError(f"{row.place}: {error}") from error

    def _why_unusable(self, task: Task) -> str:
        why = super()._why_unusable(task)
        if why or self.databases is None:
            return why
        found = self.databases.examine(task)
        if found.left_out:
            self._left_out[task.id] = found.left_out
        if not found.finding.unusable:
            self.notes += [f"{task.id}: {note}" for note in found.finding.notes]
        return found.finding.unusable


def database_file(name: str) -> str:
    """Where Spider, BIRD and SynSQL keep a database: ``NAME/NAME.sqlite``."""
    return f"{name}/{name}.sqlite"


def rows_in(location: str | Path, *, source: str, names: Sequence[str]) -> Path:
    """The file of rows that a location names: itself, or the first of ``names`` in the folder.

    Raises:
        DataError: The folder holds none of them.
    """
    path = path_of(location, source=source)
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return path
    for name in names:
        if (path / name).is_file():
            return path / name
    raise DataError(f"{path}: the folder holds none of {', '.join(names)}; name the file itself.")


def folder_of(rows: Path, *, source: str, names: Sequence[str], chosen: str = "") -> DataFolder:
    """The folder of databases that belongs to a file of rows.

    Args:
        rows: the file.
        source: the source's name, with which the folder's begins.
        names: what it may be called, beside the file.
        chosen: its path, if the user names it.

    Raises:
        DataError: There is no such folder, or the file of rows lies in it.
    """
    paths = [path_of(chosen, source=source)] if chosen else [rows.parent / name for name in names]
    for path in paths:
        if not path.is_dir():
            continue
        if rows.absolute().is_relative_to(path.absolute()):
            raise DataError(
                f"{path}: sandboxes are shown this folder, but {rows.name} in it holds the gold "
                "answers: keep the databases in a folder of their own."
            )
        # A second folder of the same data set has another name, so that both can be shown at once.
        own = source if path.name in names[:1] else f"{source}-{path.name}"
        return DataFolder(folder_name(own), path)
    tried = " or ".join(map(str, paths))
    raise DataError(
        f"{rows}: there is no folder of databases {tried}; write {source}:PATH,databases=FOLDER."
    )


def number_of_instances(options: Mapping[str, str]) -> int:
    """The option ``instances`` of a location.

    Raises:
        UsageError: It is no number from 0 to 8.
    """
    return whole_number(options, "instances", default=0, low=0, high=MOST_INSTANCES)
