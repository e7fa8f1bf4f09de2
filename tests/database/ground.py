"""A database file in a folder of its own, asked as a sandbox asks it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from toolenvs.database import Answerer, SqliteEngine

EMP = """
    CREATE TABLE emp(id INTEGER PRIMARY KEY, name TEXT, city TEXT, pay REAL);
    CREATE INDEX by_city ON emp(city);
    INSERT INTO emp VALUES (1, 'Ann', 'Oslo', 10.0), (2, 'Bob', 'Bern', 20.0),
        (3, 'Cid', 'Bern', NULL);
"""


class Ground:
    """The file and what answers requests about it.

    Args:
        folder: where the file is made.
        setup: statements that fill it.
        options: of ``SqliteEngine``.
    """

    def __init__(self, folder: Path, setup: str = EMP, **options: Any) -> None:
        self.folder = folder
        self.path = folder / "emp.sqlite"
        connection = sqlite3.connect(self.path)
        connection.executescript(setup)
        connection.close()
        self.answerer = Answerer({"sqlite": SqliteEngine(str(folder), **options)})
        self._before = self.content()

    def ask(self, op: str = "query", *, writable: bool = False, **fields: Any) -> dict[str, Any]:
        """The answer to a request about the file; ``database`` may name another place."""
        database = {"place": "emp.sqlite", "writable": writable, **fields.pop("database", {})}
        request = json.dumps({"op": op, "database": database, **fields})
        answer: dict[str, Any] = json.loads(self.answerer.answer(request))
        return answer

    def rows(self, sql: str, **fields: Any) -> list[list[Any]]:
        """The rows of a query that runs."""
        answer = self.ask(sql=sql, **fields)
        assert "error" not in answer, answer
        rows: list[list[Any]] = answer["rows"]
        return rows

    def fault(self, sql: str, **fields: Any) -> tuple[str, str]:
        """Kind and message of a statement's error."""
        answer = self.ask(sql=sql, **fields)
        assert "error" in answer, answer
        return answer["error"]["kind"], answer["error"]["message"]

    def content(self) -> dict[str, str]:
        """The digest of every file in the folder, by name."""
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.folder.iterdir()
        }

    def is_unchanged(self) -> bool:
        """True while no byte of the file differs and no other file is beside it."""
        return self.content() == self._before
