"""The database that a row of one's own tasks names: a file, a script for a server, a generated one.

"database": "shop.sqlite"
"database": {"place": "shop.sqlite", "instances": ["shop2.sqlite"], "writable": true}
"database": {"place": "shop.sql", "engine": "postgres", "instances": ["shop2.sql"]}
"database": {"generated": "shop", "seed": 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

import msgspec

from toolenvs.errors import DataError
from toolenvs.sources._databases import DataFolder
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._sql_schemas import SCHEMAS
from toolenvs.sources._sql_world import World, world
from toolenvs.sources._sqlsource import Databases
from toolenvs.sources._sqltask import gold_calls
from toolenvs.types import Database, Task

_SHAPE = "a file's name, or an object with place or generated"


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a row may say of its database."""

    place: str = ""
    generated: str = ""
    seed: int = 0
    name: str = ""
    engine: str = "sqlite"
    writable: bool = False
    instances: tuple[str, ...] = ()


def sql_task(task: Task, row: Row, databases: Databases, *, folder: DataFolder | None) -> Task:
    """The task of a row with its database; one without gold calls gets those of its gold query.

    Args:
        task: what the row's other fields say.
        row: the row, whose field ``database`` is read.
        databases: to which the script of a server is added.
        folder: the folder that files are in, None if there is none.

    Raises:
        DataError: The field is missing or names no database that there can be.
    """
    row.require("database")
    named = _named(row)
    database = _generated(named, row) if named.generated else _placed(named, row, databases, folder)
    grading: Mapping[str, Any] = task.grading
    if database.writable:
        grading = {"mode": "state", **grading}
    return msgspec.structs.replace(
        task,
        data={name: value for name, value in task.data.items() if name != "database"},
        database=database,
        grading=grading,
        gold_calls=task.gold_calls or gold_calls(task.answer),
    )


def generated_world(row: Row) -> World | None:
    """The world of a row whose database is a generated one, else None."""
    named = _named(row)
    return world(named.generated, named.seed) if named.generated else None


def _named(row: Row) -> _Named:
    value = row.fields["database"]
    try:
        return msgspec.convert({"place": value} if isinstance(value, str) else value, _Named)
    except msgspec.ValidationError as error:
        raise DataError(f"{row.place}: field 'database' must be {_SHAPE}: {error}.") from error


def _generated(named: _Named, row: Row) -> Database:
    if beside := [n for n in ("place", "instances") if getattr(named, n)]:
        raise DataError(
            f"{row.place}: {' and '.join(beside)} beside 'generated' have no use; a generated "
            "database has instances of its own."
        )
    if named.generated not in SCHEMAS:
        known = ", ".join(SCHEMAS)
        raise DataError(
            f"{row.place}: there is no generated database {named.generated!r}; known are {known}."
        )
    return world(named.generated, named.seed).database(writable=named.writable)


def _placed(named: _Named, row: Row, databases: Databases, folder: DataFolder | None) -> Database:
    if not named.place:
        raise row.wrong_type("database", _SHAPE)
    if folder is None:
        raise DataError(
            f"{row.place}: there is no folder 'databases' beside the file in which to find "
            f"{named.place}; write jsonl:PATH,databases=FOLDER."
        )
    if named.engine not in ("sqlite", "postgres"):
        raise DataError(f"{row.place}: engine {named.engine!r} must be 'sqlite' or 'postgres'.")
    stem = PurePosixPath(named.place).stem
    places = [folder.place(each) for each in (named.place, *named.instances)]
    if named.engine == "postgres":
        places = [_template(folder.file(place), row, databases) for place in places]
    return Database(
        name=named.name or stem,
        engine=cast(Literal["sqlite", "postgres"], named.engine),
        place=places[0],
        writable=named.writable,
        instances=tuple(places[1:]),
    )


def _template(script: Path, row: Row, databases: Databases) -> str:
    """The name of the template that is made of a script."""
    known = databases.templates.setdefault(script.stem, script)
    if known != script:
        raise DataError(
            f"{row.place}: {script} and {known} have one name; a template is named by its script."
        )
    return script.stem
