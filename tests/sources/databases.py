"""Small databases and files of questions for the tests of SQL sources."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

EMP = """
CREATE TABLE emp(id INTEGER, name TEXT, city TEXT, pay REAL, code TEXT, boss INTEGER);
INSERT INTO emp VALUES (1, 'Ann', 'Oslo', 10.0, '00420', NULL), (2, 'Bob', 'Bern', 20.0, '7', 1),
                       (3, 'Cid', 'Bern', 20.0, '42', 1);
"""


def make_database(path: Path, script: str = EMP) -> Path:
    """A SQLite file made by ``script``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def rows_of(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query returns on a file, as Python's own module reads it."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def write_json(path: Path, rows: Any) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def spider_folder(folder: Path, *queries: str, question: str = "q?") -> Path:
    """A Spider folder with the database ``emp`` and one question for each query."""
    make_database(folder / "database" / "emp" / "emp.sqlite")
    rows = [{"db_id": "emp", "question": question, "query": query} for query in queries]
    write_json(folder / "dev.json", rows)
    return folder
