"""Instances that are made for the tasks of a data set, so that near misses and guesses fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.sources.databases import make_database, rows_of, spider_folder, write_json
from toolenvs.errors import UsageError
from toolenvs.grading.sql import Trial, grade_instances, read_outline
from toolenvs.sources import _sqlgold
from toolenvs.sources._databases import built_folder
from toolenvs.sources._sql_instances import built_instances
from toolenvs.sources.bird import Bird
from toolenvs.sources.spider import Spider
from toolenvs.types import Task

GOLD = "SELECT name FROM emp WHERE pay >= 20"
TWO = """
CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, logo BLOB);
CREATE TABLE "the player" (id INTEGER PRIMARY KEY, "first name" TEXT, team_id INTEGER NOT NULL,
  goals INTEGER, height REAL, FOREIGN KEY (team_id) REFERENCES team);
CREATE VIEW tall AS SELECT * FROM "the player" WHERE height > 1.8;
CREATE INDEX goals_of ON "the player" (goals);
INSERT INTO team VALUES (1, 'O''Reds', x'00ff'), (2, 'Blues', NULL), (3, 'Greens', NULL);
INSERT INTO "the player" VALUES (1, 'Ann', 1, 5, 1.7), (2, 'Bob', 2, 9, 1.8),
  (3, 'Cid', 3, 12, 1.9);
"""


def is_right(task: Task, folder: Path, sql: str) -> bool:
    """Whether a query passes on all databases of the task."""
    assert task.database is not None
    built = [built_folder().file(place) for place in task.database.instances]
    probe = read_outline(task.answer).probe
    trials = [
        Trial(
            gold=_sqlgold.rows_of(task.answer, file),
            submitted=_sqlgold.rows_of(sql, file),
            probe=_sqlgold.rows_of(probe, file) if probe else None,
        )
        for file in (folder / "database" / "emp" / "emp.sqlite", *built)
    ]
    return grade_instances(task.answer, trials).correct


def test_near_misses_and_guesses_fail_on_instances(tmp_path: Path) -> None:
    """On the data set's own database all of them are right."""
    folder = spider_folder(tmp_path, GOLD)
    alone, more = Spider(folder)[0], Spider(f"{folder},instances=3")[0]
    assert (alone.id, alone.answer, alone.prompt) == (more.id, more.answer, more.prompt)
    wrong = [
        "SELECT name FROM emp WHERE pay > 10",
        "SELECT name FROM emp WHERE pay = 20",
        "SELECT name FROM emp WHERE city = 'Bern'",
        "SELECT name FROM emp WHERE name IN ('Bob', 'Cid')",
        "VALUES ('Bob'), ('Cid')",
    ]
    assert [is_right(alone, folder, sql) for sql in wrong] == [True] * 5
    assert [is_right(more, folder, sql) for sql in wrong] == [False] * 5
    assert is_right(more, folder, GOLD)
    assert is_right(more, folder, "SELECT e.name FROM emp AS e WHERE NOT e.pay < 20")


def test_instances_are_the_same_again_and_part_of_the_digest(tmp_path: Path) -> None:
    """Another process, or another day, draws the same task; resources show where they are."""
    folder = spider_folder(tmp_path, GOLD)
    first, again = (Spider(f"{folder},instances=3")[0] for _ in range(2))
    assert first == again
    assert first.database is not None
    alone = Spider(folder)[0].database
    assert alone is not None
    assert first.database.digest != alone.digest
    shown = Spider(f"{folder},instances=3").resources["sandbox:sql"]["data"]
    assert set(shown) == {"spider", "built"}


def test_bird_has_the_option_too(tmp_path: Path) -> None:
    """As the other data set of many databases."""
    make_database(tmp_path / "dev_databases" / "emp" / "emp.sqlite")
    write_json(tmp_path / "dev.json", [{"db_id": "emp", "question": "q?", "SQL": GOLD}])
    task = Bird(f"{tmp_path},instances=2")[0]
    assert task.database is not None
    assert 1 <= len(task.database.instances) <= 2


@pytest.mark.parametrize(
    "gold",
    [
        'SELECT "first name" FROM "the player" WHERE goals > 5',
        'SELECT t.name, count(*) FROM team t JOIN "the player" p ON p.team_id = t.id GROUP BY t.id',
        "SELECT max(height) FROM tall",
        "SELECT name FROM team WHERE logo IS NULL",
        "SELECT count(*) FROM team",
    ],
)
def test_names_keys_views_and_bytes_are_kept(tmp_path: Path, gold: str) -> None:
    """An instance has the schema of the original, its keys hold, and the gold runs on it."""
    file = make_database(tmp_path / "two.sqlite", TWO)
    places = built_instances(gold, file, most=3)
    assert places
    results = [rows_of(file, gold)]
    for place in places:
        path = built_folder().file(place)
        results.append(rows_of(path, gold))
        assert rows_of(path, "PRAGMA foreign_key_check") == []
        assert rows_of(path, "SELECT count(*) FROM tall")
        assert {type(row[0]) for row in rows_of(path, "SELECT logo FROM team")} <= {
            bytes,
            type(None),
        }
    assert any(sorted(map(repr, other)) != sorted(map(repr, results[0])) for other in results[1:])


def test_a_database_that_cannot_be_copied_has_none(tmp_path: Path) -> None:
    """The content of a virtual table is none of rows."""
    try:
        file = make_database(tmp_path / "v.sqlite", "CREATE VIRTUAL TABLE v USING fts5(a);")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no fts5")
    assert built_instances("SELECT a FROM v", file, most=3) == ()


@pytest.mark.parametrize("number", ["-1", "9", "x"])
def test_the_number_of_instances_is_checked(tmp_path: Path, number: str) -> None:
    """The message says what it may be."""
    folder = spider_folder(tmp_path, GOLD)
    with pytest.raises(UsageError, match="must be a whole number from 0 to 8"):
        Spider(f"{folder},instances={number}")
