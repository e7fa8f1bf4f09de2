"""What a SQLite session gives: the database's own rows, as they are."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.database.ground import Ground
from toolenvs.database import Fault, SqliteEngine, Target, decoded, quoting
from toolenvs.database.quoting import opened

# -- names and texts ---------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT "salery" FROM emp',
        "SELECT count(*) FROM emp WHERE \"nmae\" = 'nmae'",
        'SELECT name FROM emp WHERE city = "Bern"',
        'SELECT name FROM emp ORDER BY "nmae"',
        'SELECT "nosuch"',
    ],
)
@pytest.mark.parametrize("writable", [False, True])
def test_S11_a_misspelt_name_in_double_quotes_is_an_error(
    emp: Ground, sql: str, writable: bool
) -> None:
    """S11, calls 1 and 2: it is never taken for a text."""
    kind, message = emp.fault(sql, writable=writable)
    assert kind == "raised"
    assert message.startswith("no such column: ")


def test_S11_a_name_in_double_quotes_is_a_name(emp: Ground) -> None:
    """S11, call 3."""
    assert emp.rows('SELECT "name" FROM emp WHERE id=1') == [["Ann"]]


def test_an_index_on_a_misspelt_name_is_an_error(emp: Ground) -> None:
    """The rule holds in definitions, too."""
    assert emp.fault('CREATE INDEX x ON emp("nmae")', writable=True)[0] == "raised"


def test_old_queries_can_have_their_texts_in_double_quotes(emp: Ground) -> None:
    """Where it is asked for; the strict session of the same file stays strict."""
    lenient = {"database": {"texts_in_double_quotes": True}}
    sql = 'SELECT name FROM emp WHERE city = "Oslo"'
    assert emp.rows(sql, **lenient) == [["Ann"]]
    assert emp.fault(sql)[0] == "raised"
    assert emp.fault("DROP TABLE emp", **lenient)[0] == "refused"


def test_other_connections_of_the_process_are_let_be(emp: Ground) -> None:
    """A trainer's own SQLite is as it was."""
    assert emp.rows("SELECT 1") == [[1]]
    with sqlite3.connect(":memory:") as connection:
        assert connection.execute('SELECT "x"').fetchall() == [("x",)]
    connection.close()


@pytest.mark.skipif(quoting._library is None, reason="Python itself can set it from 3.12 on")
def test_where_strictness_cannot_be_had_nothing_is_opened(
    emp: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe decides, and the message says what to do."""
    monkeypatch.setattr(quoting, "_library", None)
    kind, message = emp.fault("SELECT 1", database={"writable": True})
    assert kind == "unavailable"
    assert "use Python 3.12" in message


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT salery FROM emp", "no such column: salery."),
        ("SELECT nmae FROM emp", "no such column: nmae. Did you mean emp.name?"),
        ("SELECT e.PAYS FROM emp e", "no such column: e.PAYS. Did you mean emp.pay?"),
        ("SELECT * FROM emps", "no such table: emps. Did you mean emp?"),
        ("SELECT * FROM xyz", "no such table: xyz. The tables: emp."),
        ("SELECT nmae FROM (SELECT 1 AS x)", "no such column: nmae."),
        (
            'SELECT * FROM emp WHERE city = "Bern"',
            "no such column: Bern. A text stands in single quotes.",
        ),
        ("SELECT ?", "The statement has a parameter; write the value itself."),
        ("SELECT :name", "The statement has a parameter; write the value itself."),
        ("SELEC 1", 'near "SELEC": syntax error'),
    ],
)
def test_an_error_says_what_may_have_been_meant(emp: Ground, sql: str, message: str) -> None:
    """The nearest names, and how texts are written."""
    assert emp.fault(sql) == ("raised", message)


# -- rows ---------------------------------


def test_rows_come_as_the_database_gives_them(emp: Ground) -> None:
    """Order, duplicates, NULL, and equal column names are kept."""
    answer = emp.ask(sql="SELECT city, pay, city, pay AS city FROM emp ORDER BY id DESC")
    assert answer["columns"] == ["city", "pay", "city", "city"]
    assert answer["rows"] == [
        ["Bern", None, "Bern", None],
        ["Bern", 20.0, "Bern", 20.0],
        ["Oslo", 10.0, "Oslo", 10.0],
    ]
    assert (answer["row_count"], answer["cut"]) == (3, False)


def test_a_name_with_a_dot_is_kept(emp: Ground) -> None:
    """Column names are SQLite's own."""
    assert emp.ask(sql='SELECT 1 AS "a.b", emp.id FROM emp')["columns"] == ["a.b", "id"]


def test_percent_and_colon_mean_nothing(emp: Ground) -> None:
    """No parameter style of a driver gets in the way."""
    sql = "SELECT name FROM emp WHERE name LIKE '%n%' AND ':x' = ':x' AND '%(a)s' = '%(a)s'"
    assert emp.rows(sql) == [["Ann"]]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("NULL", None),
        ("1", 1),
        ("1.0", 1.0),
        ("'1'", "1"),
        ("''", ""),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e999", {"float": "inf"}),
        ("-1e999", {"float": "-inf"}),
        ("0.1 + 0.2", 0.1 + 0.2),
        ("x'00ff'", {"bytes": "00ff"}),
        ("'a' || char(0) || 'b'", "a\0b"),
        ("char(27) || '[31m'", "\x1b[31m"),
        ("'ä☃' || char(128512)", "ä☃\U0001f600"),
        ("floor(2.5)", 2.0),
        ("1 = 1", 1),
    ],
)
def test_each_value_is_what_sqlite_says(emp: Ground, expression: str, value: Any) -> None:
    """Types too: SQLAlchemy's own functions and conversions are not in the way."""
    ((found,),) = emp.rows(f"SELECT {expression}")
    assert found == value
    assert type(found) is type(value)


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=8))
def test_every_value_that_sqlite_stores_is_read_back(
    tmp_path: Path, rows: list[tuple[Any, Any]]
) -> None:
    """For all values of all types: the rows that were put in come out, in order."""
    path = tmp_path / "values.sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t(a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.close()
    with SqliteEngine(str(tmp_path)).open(Target(place="values.sqlite")) as session:
        found = session.run("SELECT * FROM t", max_rows=100, max_bytes=1 << 20, timeout_s=10)
    assert [tuple(map(decoded, row)) for row in json.loads(found.json)] == rows


def test_bytes_that_are_no_utf8_are_replaced_and_counted(emp: Ground) -> None:
    """A text of another encoding is read all the same, and the answer says so."""
    answer = emp.ask(sql="SELECT CAST(x'4dfcff' AS TEXT), 'ok', '\ufffd', CAST(x'ff' AS TEXT)")
    assert answer["rows"] == [["M\ufffd\ufffd", "ok", "\ufffd", "\ufffd"]]
    assert answer["undecodable"] == 2
    assert "undecodable" not in emp.ask(sql="SELECT '\ufffd'")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(rows=st.integers(0, 200), max_rows=st.integers(0, 220), max_bytes=st.integers(20, 3000))
def test_no_more_rows_than_wanted_and_no_fewer_than_fit(
    emp: Ground, rows: int, max_rows: int, max_bytes: int
) -> None:
    """For all limits: a beginning of the rows, within the limits, ``cut`` exactly when shorter."""
    numbers = f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT {rows})"
    whole = emp.ask(sql=f"{numbers} SELECT n FROM r", max_rows=1000)["rows"] if rows else []
    sql = f"{numbers if rows else 'WITH r(n) AS (SELECT 1 WHERE 0)'} SELECT n FROM r"
    answer = emp.ask(sql=sql, max_rows=max_rows, max_bytes=max_bytes)
    count = answer["row_count"]
    assert answer["rows"] == whole[:count]
    assert answer["cut"] == (count < rows)
    assert count <= max_rows
    sizes = [len(str(row)) + 1 for row in range(1, rows + 1)]
    used = sum(len(f"[{n}]") + 1 for n in range(1, count + 1)) + len('["n"]')
    assert used <= max_bytes
    if answer["cut"] and count < max_rows:
        assert used + sizes[count] + 2 > max_bytes


def test_an_endless_result_is_read_as_far_as_wanted(emp: Ground) -> None:
    """Rows are fetched one after another, not all at first."""
    sql = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n FROM r"
    answer = emp.ask(sql=sql, max_rows=3)
    assert (answer["rows"], answer["cut"]) == ([[1], [2], [3]], True)


def test_a_row_larger_than_all_room_is_left_out(emp: Ground) -> None:
    """The answer says that there are rows."""
    answer = emp.ask(sql="SELECT hex(zeroblob(1000)) AS x", max_bytes=500)
    assert (answer["rows"], answer["row_count"], answer["cut"]) == ([], 0, True)


def test_chance_is_the_same_each_time(emp: Ground) -> None:
    """A read gives the same rows again, so that what was recorded can be served."""
    sql = "SELECT random(), hex(randomblob(8)), random() FROM emp ORDER BY random()"
    first, again = emp.rows(sql), emp.rows(sql)
    assert first == again
    assert len({row[0] for row in first}) == 3
    assert emp.rows(sql.replace("8", "9")) != first


# -- files ---------------------------------


def test_a_file_in_wal_mode_is_read(tmp_path: Path) -> None:
    """No file appears beside it, and a copy of it can be changed."""
    ground = Ground(tmp_path, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)")
    assert ground.rows("SELECT * FROM t") == [[1]]
    assert ground.ask(sql="DELETE FROM t", writable=True)["row_count"] == 1
    assert ground.is_unchanged()


def test_full_text_indexes_and_virtual_tables_can_be_read(tmp_path: Path) -> None:
    """They ask for more than a table does, and none of it is a change."""
    setup = """
        CREATE VIRTUAL TABLE five USING fts5(body); INSERT INTO five VALUES ('hello world');
        CREATE VIRTUAL TABLE four USING fts4(body); INSERT INTO four VALUES ('hello world');
        CREATE VIRTUAL TABLE box USING rtree(id, low, high); INSERT INTO box VALUES (1, 2, 3);
    """
    ground = Ground(tmp_path, setup)
    for table in ("five", "four"):
        sql = f"SELECT body FROM {table} WHERE {table} MATCH 'hello'"
        assert ground.rows(sql) == [["hello world"]]
    assert ground.rows("SELECT low FROM box WHERE id = 1") == [[2.0]]
    assert ground.rows("SELECT value FROM json_each('[7]')") == [[7]]
    names = ground.rows("SELECT name FROM pragma_table_info('five')")
    assert names == [["body"]]
    for sql in ("DELETE FROM box", "DELETE FROM box_node", "INSERT INTO five_data VALUES (9, 9)"):
        assert ground.fault(sql)[0] == "refused"
    assert ground.fault("DELETE FROM box_node", writable=True)[0] == "refused"
    told = [table["name"] for table in ground.ask("schema")["tables"]]
    assert told == ["five", "four", "box"]
    assert ground.is_unchanged()


def test_a_schema_written_in_the_old_way_still_opens(tmp_path: Path) -> None:
    """Texts in double quotes inside a database's own definitions are its affair."""
    setup = 'CREATE TABLE t(a DEFAULT "x", CHECK (a <> "y")); INSERT INTO t DEFAULT VALUES'
    assert Ground(tmp_path, setup).rows("SELECT a FROM t") == [["x"]]


# -- private copies ---------------------------------


def test_a_private_copy_keeps_what_was_done(emp: Ground) -> None:
    """Later statements find it, transactions work, and rows are counted."""
    assert emp.ask(sql="DELETE FROM emp WHERE id > 1", writable=True)["row_count"] == 2
    assert emp.rows("SELECT name FROM emp", writable=True) == [["Ann"]]
    for sql in ("BEGIN", "DELETE FROM emp", "ROLLBACK"):
        assert "error" not in emp.ask(sql=sql, writable=True)
    assert emp.rows("SELECT name FROM emp", writable=True) == [["Ann"]]
    assert emp.rows("SELECT count(*) FROM emp") == [[3]]


def test_what_a_statement_returns_and_does_both_count(emp: Ground) -> None:
    """RETURNING: all changes are made, however many rows are read."""
    answer = emp.ask(sql="UPDATE emp SET pay = 1 RETURNING id", writable=True, max_rows=1)
    assert (answer["rows"], answer["cut"]) == ([[1]], True)
    assert emp.rows("SELECT sum(pay) FROM emp", writable=True) == [[3.0]]


def test_each_session_has_a_copy_of_its_own(emp: Ground) -> None:
    """Two episodes on one file do not meet."""
    engine = SqliteEngine(str(emp.folder))
    target = Target(place="emp.sqlite", writable=True)
    limits: dict[str, Any] = {"max_rows": 9, "max_bytes": 999, "timeout_s": 9.0}
    with engine.open(target) as one, engine.open(target) as two:
        one.run("DELETE FROM emp", **limits)
        assert two.run("SELECT count(*) FROM emp", **limits).json == "[[3]]"


def test_data_folders_have_names(tmp_path: Path) -> None:
    """On a host the first part of a place is the name of a folder anywhere."""
    Ground(tmp_path)
    engine = SqliteEngine({"d": str(tmp_path)})
    with engine.open(Target(place="d/emp.sqlite")) as session:
        found = session.run("SELECT count(*) FROM emp", max_rows=9, max_bytes=99, timeout_s=9)
        assert found.json == "[[3]]"
    with pytest.raises(Fault, match="no data folder 'x'"):
        engine.open(Target(place="x/emp.sqlite"))


def test_a_fork_opens_databases_while_another_thread_did(tmp_path: Path) -> None:
    """What that thread held is free in the child."""
    entered, go_on = threading.Event(), threading.Event()

    def connect() -> sqlite3.Connection:
        entered.set()
        go_on.wait(30)
        return sqlite3.connect(":memory:")

    opening = threading.Thread(target=lambda: opened(connect).close())
    opening.start()
    entered.wait(30)
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        signal.alarm(20)
        opened(lambda: sqlite3.connect(":memory:")).close()
        os._exit(0)
    go_on.set()
    opening.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
