"""Whatever a statement is, it leaves no trace outside its own episode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.database.ground import Ground

EVERYWHERE = [
    "ATTACH 'other.sqlite' AS other",
    "ATTACH ':memory:' AS other",
    "ATTACH '' AS other",
    "EXPLAIN ATTACH 'other.sqlite' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'copy.sqlite'",
    "VACUUM main INTO 'copy.sqlite'",
    "PRAGMA writable_schema=1",
    "PRAGMA writable_schema=RESET",
    "PRAGMA main.writable_schema(ON)",
    "PRAGMA journal_mode=WAL",
    "PRAGMA query_only=0",
    "PRAGMA user_version=7",
    "PRAGMA temp_store_directory='/tmp'",
    "PRAGMA hard_heap_limit=0",
    "PRAGMA database_list",
    "PRAGMA wal_checkpoint",
    "PRAGMA incremental_vacuum",
    "PRAGMA optimize",
    "PRAGMA trusted_schema=1",
    "PRAGMA nothing_known",
    "SELECT * FROM pragma_database_list",
    "SELECT load_extension('x')",
    "SELECT LOAD_EXTENSION('x', 'y') FROM emp",
    "SELECT fts3_tokenizer('simple')",
    "SELECT * FROM sqlite_stmt",
    "CREATE VIRTUAL TABLE v USING fts5(a)",
    "UPDATE sqlite_master SET sql = 'x'",
    "DELETE FROM sqlite_master",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, '')",
]
WRITES = [
    "DROP TABLE emp",
    "WITH x AS (SELECT 2 AS i) DELETE FROM emp WHERE id IN (SELECT i FROM x)",
    "WITH x AS (SELECT 1) INSERT INTO emp(name) SELECT 'x' FROM x",
    "WITH x AS (SELECT 1) UPDATE emp SET pay = 0",
    "INSERT INTO emp(name) VALUES ('x')",
    "INSERT INTO emp(name) VALUES ('x') RETURNING *",
    "REPLACE INTO emp VALUES (1, 'x', 'x', 0)",
    "UPDATE emp SET pay = 0",
    "/**/ -- \n delete from emp",
    "EXPLAIN DELETE FROM emp",
    "EXPLAIN QUERY PLAN DROP TABLE emp",
    "CREATE TABLE x(a)",
    "CREATE TABLE x AS SELECT * FROM emp",
    "CREATE TEMP TABLE x(a)",
    "CREATE TEMPORARY VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER t AFTER INSERT ON emp BEGIN DELETE FROM emp; END",
    "CREATE TRIGGER t AFTER INSERT ON emp BEGIN DELETE FROM emp; SELECT 1; END;",
    "CREATE VIEW x AS SELECT 1",
    "CREATE INDEX x ON emp(name)",
    "ALTER TABLE emp RENAME TO boss",
    "ALTER TABLE emp ADD COLUMN x",
    "ALTER TABLE emp DROP COLUMN pay",
    "ANALYZE",
    "REINDEX",
    "BEGIN",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT a",
    "RELEASE a",
]


@pytest.mark.parametrize("sql", EVERYWHERE + WRITES)
def test_S07_what_could_change_a_read_only_database_is_refused(emp: Ground, sql: str) -> None:
    """S07: a typed error; the bytes, the folder, the schema and the next query are as before."""
    before = emp.rows("SELECT * FROM sqlite_master")
    assert emp.fault(sql)[0] == "refused"
    assert emp.is_unchanged()
    assert emp.rows("SELECT * FROM sqlite_master") == before
    assert emp.rows("SELECT count(*) FROM emp") == [[3]]
    assert emp.rows("SELECT count(*) FROM sqlite_temp_master") == [[0]]


@pytest.mark.parametrize("sql", EVERYWHERE)
def test_a_private_copy_gives_no_way_out_either(emp: Ground, sql: str) -> None:
    """What reaches beyond the database is refused where changes are allowed, too."""
    assert emp.fault(sql, writable=True)[0] == "refused"
    assert emp.is_unchanged()
    assert emp.rows("SELECT count(*) FROM emp", writable=True) == [[3]]


@pytest.mark.parametrize("sql", WRITES)
def test_a_private_copy_may_be_changed_and_the_file_is_not(emp: Ground, sql: str) -> None:
    """Whether it succeeds there or not, the file and other sessions see nothing of it."""
    emp.ask(sql=sql, writable=True)
    assert emp.is_unchanged()
    assert emp.rows("SELECT count(*), max(pay) FROM emp") == [[3, 20.0]]
    state = emp.ask("state", statements=[])
    assert [table["row_count"] for table in state["tables"]] == [3]


@pytest.mark.parametrize(
    "function", ["writefile('x', 'y')", "readfile('/etc/passwd')", "edit('x')"]
)
def test_functions_of_the_shell_are_not_there(emp: Ground, function: str) -> None:
    """The command line's functions that touch files do not exist."""
    kind, message = emp.fault(f"SELECT {function}")
    assert kind == "raised"
    assert "no such function" in message


def test_sorting_leaves_no_file_anywhere(emp: Ground) -> None:
    """A result larger than the cache is sorted in memory."""
    rows = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 200000)"
    sql = f"{rows} SELECT n, hex(randomblob(20)) AS x FROM r ORDER BY x"
    assert len(emp.rows(sql, max_rows=5)) == 5
    assert emp.is_unchanged()


@pytest.mark.parametrize(
    "place", ["", "/etc/passwd", "../emp.sqlite", "a/../emp.sqlite", "./emp.sqlite", "a//b", "a\0"]
)
def test_no_place_leads_out_of_the_data(emp: Ground, place: str) -> None:
    """The agent cannot choose a place, but nor could a task lead astray."""
    assert emp.fault("SELECT 1", database={"place": place})[0] == "unavailable"


def test_a_place_is_a_name_and_not_a_uri(tmp_path: Path) -> None:
    """Characters that mean something in a URI are characters of the file's name."""
    for name in ("a?mode=rwc", "a#b", "a%2e", "ä b"):
        folder = tmp_path / name.encode().hex()
        folder.mkdir()
        ground = Ground(folder)
        ground.path.rename(folder / name)
        assert ground.rows("SELECT count(*) FROM emp", database={"place": name}) == [[3]]
        assert ground.fault("SELECT 1", database={"place": "nothing"})[0] == "unavailable"
        assert [path.name for path in folder.iterdir()] == [name]


def test_what_has_no_database_says_so_without_a_path(emp: Ground) -> None:
    """A missing file, a folder and a file of something else are the machine's fault, by name."""
    Path("text.sqlite").write_text("no database at all, but long enough to be looked at" * 100)
    Path("folder").mkdir()
    for place in ("missing.sqlite", "text.sqlite", "folder"):
        kind, message = emp.fault("SELECT 1", database={"place": place})
        assert kind == "unavailable"
        assert place in message
        assert str(emp.folder) not in message
    Path("text.sqlite").unlink()
    Path("folder").rmdir()
