"""The jsonl source for SQL: files, scripts and generated databases named in a row."""

from __future__ import annotations

import json
import pickle
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import EMP, make_database
from toolenvs.errors import DataError, UsageError
from toolenvs.sources.jsonl import Jsonl
from toolenvs.types import Database, Task


def load(tmp_path: Path, *rows: dict[str, Any], options: str = "") -> Jsonl:
    """A source of these rows, beside the databases ``emp`` and ``other``."""
    make_database(tmp_path / "databases" / "emp.sqlite")
    make_database(tmp_path / "databases" / "other.sqlite", EMP + "DELETE FROM emp WHERE id = 3;")
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Jsonl(f"{path}{options}", family="sql")


def row(**fields: Any) -> dict[str, Any]:
    """A row that is fine, with other fields."""
    return {"prompt": "Who?", "answer": "SELECT name FROM emp", "database": "emp.sqlite", **fields}


def database_of(task: Task) -> Database:
    """The task's database."""
    assert task.database is not None
    return task.database


def test_a_row_names_its_database(tmp_path: Path) -> None:
    """A file's name is enough; the prompt stays as it is; other fields join data."""
    source = load(tmp_path, row(level=3))
    task = source[0]
    assert (task.id, task.prompt, task.data) == ("mine-0", "Who?", {"level": 3})
    assert database_of(task).name == "emp"
    assert database_of(task).place == "jsonl/emp.sqlite"
    assert [call["name"] for call in task.gold_calls] == ["sql_schema", "sql_query", "submit_sql"]
    assert source.resources["sandbox:sql"]["data"]["jsonl"] == str(tmp_path / "databases")
    assert pickle.loads(pickle.dumps(source))[0] == task


def test_instances_and_changes_are_told_by_an_object(tmp_path: Path) -> None:
    """Instances are part of the digest; changes are scored by the state."""
    both = {"place": "emp.sqlite", "instances": ["other.sqlite"], "name": "staff"}
    change = row(
        answer="DELETE FROM emp WHERE id = 1", database={"place": "emp.sqlite", "writable": True}
    )
    source = load(tmp_path, row(), row(database=both), change)
    one, two, changed = (source[i] for i in range(3))
    assert database_of(two).instances == ("jsonl/other.sqlite",)
    assert database_of(two).name == "staff"
    assert database_of(two).digest != database_of(one).digest
    assert database_of(changed).writable
    assert changed.grading == {"mode": "state"}


def test_a_script_is_a_template_of_postgres(tmp_path: Path) -> None:
    """Its content is the digest."""
    (tmp_path / "databases").mkdir()
    (tmp_path / "databases" / "shop.sql").write_text(SHOP)
    source = load(tmp_path, row(database={"place": "shop.sql", "engine": "postgres"}))
    database = database_of(source[0])
    assert (database.engine, database.place, len(database.digest)) == ("postgres", "shop", 64)
    script = str(tmp_path / "databases" / "shop.sql")
    assert source.resources["service:postgres"] == {"templates": {"shop": script}}


def test_a_generated_database_needs_no_folder(tmp_path: Path) -> None:
    """It is named by its schema and seed."""
    path = tmp_path / "mine.jsonl"
    fields = {"answer": "SELECT count(*) FROM book", "database": {"generated": "library"}}
    path.write_text(json.dumps(row(**fields)) + "\n")
    task = Jsonl(path, family="sql")[0]
    assert database_of(task).place.endswith("/library.sqlite")
    assert len(database_of(task).instances) == 3


@pytest.mark.parametrize(
    ("database", "says"),
    [
        ("gone.sqlite", "there is no database gone.sqlite in"),
        ("../mine.jsonl", "mine.jsonl:1: '../mine.jsonl' names no file inside"),
        ({"place": "emp.sqlite", "file": "x"}, "field 'database' must be a file's name, or an obj"),
        ({}, "field 'database' is an object; it must be a file's name"),
        (7, "field 'database' must be a file's name"),
        ({"generated": "libary"}, "there is no generated database 'libary'; known are library"),
        ({"place": "emp.sqlite", "engine": "mysql"}, "engine 'mysql' must be"),
        ({"place": "emp.sqlite", "instances": ["x.sqlite"]}, "there is no database x.sqlite in"),
    ],
)
def test_a_database_that_is_not_there_is_named(tmp_path: Path, database: Any, says: str) -> None:
    """With the line and what is possible."""
    with pytest.raises(DataError) as caught:
        load(tmp_path, row(database=database))
    assert says in str(caught.value)


def test_a_row_without_a_database_is_refused(tmp_path: Path) -> None:
    """Also one whose file lies beside no folder of databases."""
    bare = {"prompt": "p", "answer": "SELECT 1"}
    with pytest.raises(DataError, match=r"mine\.jsonl:1: field 'database' is missing"):
        load(tmp_path, bare)
    path = tmp_path / "deeper" / "rows.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(row()))
    with pytest.raises(DataError, match="no folder 'databases' beside the file"):
        Jsonl(path, family="sql")
    assert Jsonl(f"{path},databases={tmp_path / 'databases'}", family="sql").ids == ["rows-0"]


def test_golds_and_settings_are_checked(tmp_path: Path) -> None:
    """A gold that returns nothing is no task; a setting that there is not is an error."""
    source = load(tmp_path, row(), row(answer="SELECT name FROM emp WHERE pay > 99"))
    assert source.rejected == [f"{tmp_path}/mine.jsonl:2: the gold returns no rows"]
    with pytest.raises(DataError, match=r"mine\.jsonl:1: .*'colums'.* Did you mean 'columns'"):
        load(tmp_path, row(grading={"colums": "exact"}))
    with pytest.raises(UsageError, match="once"):
        load(tmp_path, row(), options=",databases=a,databases=b")


def test_other_families_have_no_databases(tmp_path: Path) -> None:
    """There a field of that name is data like any other, and a comma part of the path."""
    path = tmp_path / "a,databases=b.jsonl"
    path.write_text(json.dumps({"prompt": "p", "answer": "1", "database": "x"}))
    source = Jsonl(path)
    assert source[0].data == {"database": "x"}
    assert source[0].database is None
    assert source.resources == {}


# -- golds of PostgreSQL, instances, alternatives ---------------------------------

SHOP = "CREATE TABLE emp (name text); INSERT INTO emp VALUES ('Ann'), ('Bob');"


def _on_postgres(tmp_path: Path, *golds: str, **more: Any) -> Jsonl:
    (tmp_path / "databases").mkdir(exist_ok=True)
    (tmp_path / "databases" / "shop.sql").write_text(SHOP)
    (tmp_path / "databases" / "other.sql").write_text("CREATE TABLE emp (nick text);")
    database = {"place": "shop.sql", "engine": "postgres", **more}
    return load(tmp_path, row(), *(row(answer=gold, database=database) for gold in golds))


def test_golds_of_postgres_are_read_at_load_and_no_server_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which tasks there are depends on the file alone, not on a server that answers or is slow."""
    golds = ["SELECT name FROM emp", "SELECT nope FROM emp", "SELECT now() FROM emp", ""]
    golds.append("SELECT 1 FROM (SELECT name FROM emp LIMIT 1) AS x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        monkeypatch.setenv("TOOLENVS_POSTGRES_URL", f"postgresql://me@127.0.0.1:{port}/x")
        source = _on_postgres(tmp_path, *golds)
        assert [source[n].gradable for n in range(len(source))] == [True] * 3
        with pytest.raises(BlockingIOError):
            server.accept()
    reasons = [text.partition(": ")[2] for text in source.rejected]
    assert [why.partition(":")[0] for why in reasons] == [
        "the gold depends on the clock or on chance",
        "the gold answer is empty",
        "a LIMIT inside the gold has no ORDER BY",
    ]
    assert source.place_of(1) == f"{tmp_path / 'mine.jsonl'}:2"


def test_an_instance_that_is_no_database_is_told(tmp_path: Path) -> None:
    """And a file or folder that is none says what it is."""
    folder = tmp_path / "databases"
    folder.mkdir()
    (folder / "junk.sqlite").write_bytes(b"hello world" * 1000)
    (folder / "empty.sqlite").write_bytes(b"")
    (folder / "folder.sqlite").mkdir()
    junk = {"place": "emp.sqlite", "instances": ["junk.sqlite"]}
    bad = [junk, "empty.sqlite", "folder.sqlite", "none.sqlite"]
    source = load(tmp_path, row(), *(row(database=database) for database in bad))
    for why, words in zip(
        source.rejected,
        ("instance junk.sqlite", "an empty file", "is a folder", "there is no database"),
        strict=True,
    ):
        assert words in why


def test_alternatives_that_may_not_pay_are_left_out(tmp_path: Path) -> None:
    """One that fails or asks for the clock; the note says why."""
    others = ["SELEC", "SELECT name, date('now') FROM emp", "SELECT name FROM emp ORDER BY name"]
    source = load(tmp_path, row(grading={"alternatives": others}))
    assert source[0].grading["alternatives"] == others[2:]
    assert sum("an alternative is left out" in note for note in source.notes) == 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"grading": {"alternatives": "SELECT 1"}}, "alternatives"),
        ({"grading": {"order": "sometimes"}}, "must be one of auto, always, never"),
        ({"database": {"generated": "library", "place": "emp.sqlite"}}, "place beside 'generated'"),
        ({"database": {"generated": "library", "instances": ["a"]}}, "instances beside"),
        ({"database": {"place": "emp.sqlite", "engine": "mysql"}}, "'sqlite' or 'postgres'"),
    ],
)
def test_what_has_no_meaning_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    """Never dropped in silence."""
    with pytest.raises(DataError, match=words):
        load(tmp_path, row(**fields))


def test_instances_are_made_for_one_s_own_tasks(tmp_path: Path) -> None:
    """As for a data set's."""
    source = load(
        tmp_path, row(answer="SELECT name FROM emp WHERE pay > 15"), options=",instances=2"
    )
    assert 1 <= len(database_of(source[0]).instances) <= 2
