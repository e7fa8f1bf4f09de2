"""Small databases in memory and their results in JSON form, for tests of comparing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolenvs.grading.sql import SqlPolicy, Trial, Verdict, grade, read_outline

EMP = """
CREATE TABLE emp(id INTEGER,name TEXT,city TEXT,pay REAL,code TEXT,boss INTEGER);
INSERT INTO emp VALUES (1,'Ann','Oslo',10.0,'00420',NULL),
(2,'Bob','Bern',20.0,'7',1),(3,'Cid','Bern',20.0,'42',1);
"""
M = "CREATE TABLE m(home INTEGER,away INTEGER,who TEXT); INSERT INTO m VALUES (1,2,'x'),(2,1,'y');"

Run = Callable[[str], Mapping[str, Any]]


def table(rows: Sequence[Sequence[Any]], *, columns: Sequence[str] = ()) -> dict[str, Any]:
    """A result with these rows."""
    width = len(rows[0]) if rows else len(columns)
    names = list(columns) or [f"c{number}" for number in range(width)]
    return {
        "columns": names,
        "rows": [list(row) for row in rows],
        "row_count": len(rows),
        "cut": False,
    }


def failed(kind: str = "raised") -> dict[str, Any]:
    """The result of a query that did not run."""
    return {"error": {"kind": kind, "message": "no such column"}}


def memory(setup: str) -> Run:
    """Runs queries on a database in memory; one that fails gives its error."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(setup)
    return _runner(connection)


def file(path: Path) -> Run:
    """Runs queries on a file, which stays as it is; bytes that are no text become U+FFFD."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return _runner(connection)


def _runner(connection: sqlite3.Connection) -> Run:
    def run(sql: str) -> Mapping[str, Any]:
        try:
            cursor = connection.execute(sql)
            rows = [list(row) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            return {"error": {"kind": "raised", "message": str(error)}}
        columns = [each[0] for each in cursor.description or ()]
        return {"columns": columns, "rows": rows, "row_count": len(rows), "cut": False}

    return run


def judge(run: Run, gold: str, pred: str, **policy: Any) -> Verdict:
    """The verdict on a query, with the gold's probe run as a reward would."""
    probe = read_outline(gold).probe
    trial = Trial(gold=run(gold), submitted=run(pred), probe=run(probe) if probe else None)
    return grade(gold, trial, policy=SqlPolicy(**policy))
