"""A sandbox for the SQL tools that runs in this process, on a file of its own."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

from toolenvs.database import Answerer, SqliteEngine
from toolenvs.drivers import run
from toolenvs.protocols import Tool, ToolContext
from toolenvs.types import Database, ExecResult, Task, ToolResult


class SqlSandbox:
    """Runs the programs that the tools write, as the image's interpreter does.

    Args:
        folder: what it sees as ``/data``.
    """

    def __init__(self, folder: Path) -> None:
        self.answerer = Answerer({"sqlite": SqliteEngine(str(folder))})
        self.codes: list[str] = []
        self.timeouts: list[float | None] = []

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run a program with the module ``toolenvs_database`` in reach."""
        self.codes.append(code)
        self.timeouts.append(timeout_s)
        module: Any = types.ModuleType("toolenvs_database")
        module.answer = self.answerer.answer
        stdout = io.StringIO()
        with (
            mock.patch.dict(sys.modules, toolenvs_database=module),
            contextlib.redirect_stdout(stdout),
        ):
            exec(code, {})
        return ExecResult(status="ok", stdout=stdout.getvalue())

    async def stop(self) -> None:
        """End its sessions."""
        self.answerer.close()


class EndedSandbox:
    """A sandbox in which each call ends as it is told."""

    def __init__(self, result: ExecResult) -> None:
        self.result = result

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run nothing."""
        return self.result

    async def stop(self) -> None:
        """Nothing is left."""


EMP = """
    CREATE TABLE emp(id INTEGER PRIMARY KEY, name TEXT, "the city" TEXT, pay REAL);
    INSERT INTO emp VALUES (1, 'Ann', 'Oslo', 10.0), (2, 'Bob', 'Bern', 20.0),
        (3, 'Cid', 'Bern', NULL);
"""


class Episode:
    """Calls of tools on one database file.

    Args:
        folder: where the files are made.
        setup: statements that fill the task's database.
        instances: statements that fill each further one.
        writable: the task asks for changes.
    """

    def __init__(
        self,
        folder: Path,
        setup: str = EMP,
        *,
        instances: tuple[str, ...] = (),
        writable: bool = False,
    ) -> None:
        places = [f"{number}.sqlite" for number in range(1 + len(instances))]
        for place, statements in zip(places, (setup, *instances), strict=True):
            connection = sqlite3.connect(folder / place)
            connection.executescript(statements)
            connection.close()
        database = Database(
            name="emp", place=places[0], instances=tuple(places[1:]), writable=writable
        )
        self.task = Task(id="t", prompt="p", family="sql", database=database)
        self.sandbox = SqlSandbox(folder)

    def call(self, tool: Any, *, sandbox: Any = None, **arguments: Any) -> ToolResult:
        """Run one call, as an episode does: with the tool as it is for the task."""
        bound: Tool = tool.bound(self.task) if hasattr(tool, "bound") else tool
        context = ToolContext(task=self.task, sandbox=sandbox or self.sandbox)
        return run(bound.run(bound.Args(**arguments), context))
