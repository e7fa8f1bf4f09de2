"""A small database on a PostgreSQL server, and what asks about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolenvs.drivers import run
from toolenvs.runtimes.postgres import Postgres, PostgresSandbox, PostgresWorker
from toolenvs.types import Database, Task

SCRIPT = r"""
DROP DATABASE IF EXISTS zoo;
CREATE DATABASE zoo;
\c zoo;
CREATE TABLE keeper (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE animal (
  id int PRIMARY KEY, name text, weight numeric(6, 2), keeper int REFERENCES keeper);
INSERT INTO keeper VALUES (1, 'Ada'), (2, 'Grace');
INSERT INTO animal VALUES (1, 'Lion', 190.5, 1), (2, 'Wren', 0.01, 2), (3, 'Newt', NULL, NULL);
CREATE VIEW heavy AS SELECT name FROM animal WHERE weight > 100;
"""
ZOO = {"engine": "postgres", "place": "zoo"}


@contextmanager
def started(url: str, folder: Path) -> Iterator[PostgresWorker]:
    """A worker of a runtime with the template ``zoo``."""
    worker = run(Postgres(url=url, templates={"zoo": script(folder)}).start())
    try:
        yield worker
    finally:
        run(worker.stop())


def script(folder: Path, more: str = "") -> Path:
    """The zoo's script as a file."""
    path = folder / "zoo.sql"
    path.write_text(SCRIPT + more)
    return path


def task(sql: str, **options: Any) -> Task:
    """A task about the zoo whose gold statement is ``sql``."""
    writable = options.pop("writable", False)
    database = Database(name="zoo", engine="postgres", place="zoo", digest="1", writable=writable)
    return Task(id="t", prompt="?", family="sql", answer=sql, database=database, **options)


@contextmanager
def session(worker: PostgresWorker) -> Iterator[PostgresSandbox]:
    """A sandbox that may use the zoo."""
    sandbox = run(worker.spawn(seed=0, files={}, data=("zoo",)))
    try:
        yield sandbox
    finally:
        run(sandbox.stop())
        worker._server.settle()


def ask(
    sandbox: PostgresSandbox,
    sql: str,
    *,
    writable: bool = False,
    limit: float = 5.0,
    max_rows: int = 1000,
) -> Any:
    """The answer to one query."""
    request = {
        "op": "query",
        "database": {**ZOO, "writable": writable},
        "sql": sql,
        "max_rows": max_rows,
        "timeout_s": limit,
    }
    return json.loads(run(sandbox.execute(json.dumps(request))).stdout)


def rows(sandbox: PostgresSandbox, sql: str, **options: Any) -> Any:
    """The rows of one query."""
    answer = ask(sandbox, sql, **options)
    assert "error" not in answer, answer
    return answer["rows"]
