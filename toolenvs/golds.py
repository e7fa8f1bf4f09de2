"""Run every gold query of SQL tasks on its database, and list those that are no fit measure.

    report = check_golds("defog:data/sql-eval/questions_gen_postgres.csv")
    report.unusable                        # where each is, and why it cannot be graded

A source looks at the golds of SQLite when it loads, at those of PostgreSQL it only reads the text:
which tasks there are must not depend on a server. Here both are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import TaskSource
from toolenvs.runtimes.postgres import Postgres, PostgresWorker
from toolenvs.sources._databases import DataFolder
from toolenvs.sources._sqlgold import Ask, ask_of
from toolenvs.sources._sqlsource import AskAt, Databases
from toolenvs.tasks import Mixture, load_tasks
from toolenvs.tasks.collected import resources_of
from toolenvs.tasks.spec import TaskSpec
from toolenvs.types import Task


class GoldFault(msgspec.Struct, frozen=True):
    """What was found of one gold.

    Attributes:
        place: ``path:line`` or ``path[row]`` of its row, else ``source[row]``.
        task_id: its task's id, ``""`` where the source left the row out when it loaded.
        reason: why it cannot be graded, or what is to be known of it.
    """

    place: str
    task_id: str
    reason: str


class GoldReport(msgspec.Struct, frozen=True):
    """What examining golds came to.

    Attributes:
        examined: rows whose golds were looked at, those left out at load among them.
        unusable: the golds that cannot be graded.
        notes: what is to be known of others, such as rows that tie at a LIMIT.
    """

    examined: int
    unusable: tuple[GoldFault, ...]
    notes: tuple[GoldFault, ...]


def check_golds(
    tasks: TaskSpec = "", *, url: str = "", progress: Callable[[], None] = lambda: None
) -> GoldReport:
    """Examine the golds of SQL tasks, each on its own engine.

    Args:
        tasks: as for ``load_tasks``.
        url: the PostgreSQL server, as ``Postgres`` reads it; nobody is asked where no task needs
            it.
        progress: called after each task.

    Raises:
        UsageError: The tasks cannot be loaded, or are not about databases.
        RuntimeFailure: ``no_service``: a task needs PostgreSQL, and the server does not answer;
            ``service``: it failed meanwhile.
    """
    source = load_tasks(tasks, family="sql")
    unusable = [_left_out(text) for text in source.rejected]
    notes: list[GoldFault] = []
    resources = resources_of(source)
    databases = _databases(resources)
    templates = resources.get("service:postgres", {}).get("templates", {})
    with _server(url, templates) as ask_at:
        for place, task in _placed(source):
            why, told = _examined(databases, task, ask_at)
            if why:
                unusable.append(GoldFault(place, task.id, why))
            notes += [GoldFault(place, task.id, note) for note in told]
            progress()
    return GoldReport(len(source) + len(source.rejected), tuple(unusable), tuple(notes))


def _examined(databases: Databases, task: Task, ask_at: AskAt) -> tuple[str, tuple[str, ...]]:
    """Why a task cannot be graded, and what is to be known of it."""
    if task.database is None:
        raise UsageError(f"the task {task.id!r} has no database, so there is no gold to run.")
    try:
        found = databases.examine(task, ask_at=ask_at).finding
    except RuntimeFailure as failure:
        if failure.kind != "data":  # a script that fails is the task's fault
            raise
        return str(failure), ()
    return found.unusable, found.notes


def _left_out(text: str) -> GoldFault:
    place, _, why = text.partition(": ")
    return GoldFault(place, "", why)


def _placed(source: TaskSource) -> Iterator[tuple[str, Task]]:
    """Each task with the place of its row."""
    if isinstance(source, Mixture):
        for part in source.parts:
            yield from _placed(part)
        return
    place_of = getattr(source, "place_of", lambda row: f"{source.name}[{row}]")
    for row in range(len(source)):
        yield place_of(row), source[row]


def _databases(resources: dict[str, dict[str, Any]]) -> Databases:
    folders = resources.get("sandbox:sql", {}).get("data", {})
    databases = Databases(*(DataFolder(name, Path(path)) for name, path in folders.items()))
    scripts = resources.get("service:postgres", {}).get("templates", {})
    databases.templates.update({name: Path(script) for name, script in scripts.items()})
    return databases


@contextmanager
def _server(url: str, templates: dict[str, str]) -> Iterator[AskAt]:
    """Sessions of a server, one for each template; it is reached at the first."""
    worker: PostgresWorker | None = None
    asks: dict[str, Ask] = {}

    def ask_at(place: str) -> Ask:
        nonlocal worker
        if worker is None:
            worker = run(Postgres(url=url, templates=templates).start())
        if place not in asks:
            sandbox = run(worker.spawn(seed=0, files={}, data=(place,)))
            target = {"engine": "postgres", "place": place}
            asks[place] = ask_of(lambda text: run(sandbox.execute(text)).stdout, target)
        return asks[place]

    try:
        yield ask_at
    finally:
        if worker is not None:
            run(worker.stop())
