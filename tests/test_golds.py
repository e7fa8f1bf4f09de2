"""Examining golds: each is run on its own engine, and what cannot be graded is listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import make_database
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.golds import check_golds
from toolenvs.types import Task

SHOP = "CREATE TABLE emp (name text, pay int); INSERT INTO emp VALUES ('Ann', 1), ('Bob', 1);"
TIED = "SELECT name FROM emp WHERE name = (SELECT name FROM emp ORDER BY pay LIMIT 1)"


def rows(tmp_path: Path, *golds: str, **database: Any) -> str:
    """The location of a file of these golds, after one on SQLite that is fit."""
    folder = tmp_path / "databases"
    make_database(folder / "emp.sqlite")
    (folder / "shop.sql").write_text(SHOP)
    (folder / "other.sql").write_text("CREATE TABLE emp (nick text);")
    (folder / "bad.sql").write_text("CREATE TABEL x;")
    fit = {"prompt": "Who?", "answer": "SELECT name FROM emp", "database": "emp.sqlite"}
    there = {"place": "shop.sql", "engine": "postgres", **database}
    lines = [fit, *({"prompt": "Who?", "answer": gold, "database": there} for gold in golds)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"jsonl:{tmp_path / 'mine.jsonl'}"


@pytest.mark.parametrize(
    ("gold", "database", "why"),
    [
        ("SELECT name FROM emp", {}, ""),
        ("SELEC", {}, "does not run"),
        ("SELECT nope FROM emp", {}, "does not run"),
        ("SELECT name FROM emp WHERE name = 'Cid'", {}, "returns no rows"),
        ("SELECT now() FROM emp", {}, "the clock"),
        (TIED, {}, "tie at a LIMIT inside"),
        ("DELETE FROM emp", {"writable": True}, ""),
        ("DELETE FROM emp WHERE false", {"writable": True}, "changes nothing"),
        ("SELECT name FROM emp", {"instances": ["other.sql"]}, "on the instance other"),
        ("SELECT name FROM emp", {"place": "bad.sql"}, "refuses the script"),
    ],
)
def test_golds_of_postgres_are_run(
    postgres: str, tmp_path: Path, gold: str, database: dict[str, Any], why: str
) -> None:
    """One that cannot be graded is named with its row and the reason."""
    report = check_golds(rows(tmp_path, gold, **database), url=postgres)
    assert report.examined == 2
    assert len(report.unusable) == bool(why)
    for found in report.unusable:
        assert found.place == f"{tmp_path / 'mine.jsonl'}:2"
        assert why in found.reason


def test_notes_of_both_engines_are_listed(postgres: str, tmp_path: Path) -> None:
    """What is to be known of golds that are fit; alternatives that may not pay are among them."""
    location = rows(tmp_path, "SELECT name FROM emp ORDER BY pay LIMIT 1", "SELECT 1")
    steps: list[int] = []
    report = check_golds(location, url=postgres, progress=lambda: steps.append(1))
    assert (report.unusable, len(steps)) == ((), 3)
    told = [(found.place[-1], found.reason[:24]) for found in report.notes]
    assert told == [("2", "2 rows tie at the LIMIT "), ("3", "the gold reads no table,")]


def test_a_server_is_asked_for_only_where_a_task_needs_it(tmp_path: Path) -> None:
    """Where it does not answer, nothing is said of the golds."""
    nowhere = "postgresql://postgres@127.0.0.1:1/x"
    assert check_golds(rows(tmp_path), url=nowhere).examined == 1
    with pytest.raises(RuntimeFailure) as failure:
        check_golds(rows(tmp_path, "SELECT name FROM emp"), url=nowhere)
    assert failure.value.kind == "no_service"


def test_golds_are_those_of_databases() -> None:
    """Built-in tasks are about some; a task without one is refused."""
    report = check_golds("sql_generated:n=3+builtin:test")
    assert report.examined == 107
    assert report.unusable == ()
    with pytest.raises(UsageError, match="'t' has no database"):
        check_golds([Task(id="t", prompt="Who?", answer="SELECT 1", family="sql")])
