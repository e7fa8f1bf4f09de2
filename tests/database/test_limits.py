"""Every statement ends, and none takes more than its share."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.database.ground import Ground
from toolenvs.database.sqlite import MAX_VALUE_BYTES

LONG_S = 60  # none comes near; a statement that is not stopped runs for days

ENDLESS = {
    "recursion": "WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+2 FROM t) "
    "SELECT max(n) FROM t",
    "rows": "WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+1 FROM t) "
    "SELECT n FROM t WHERE n < 0",
    "cross join": "SELECT count(*) FROM emp e0"
    + "".join(f", emp e{i}" for i in range(1, 22))
    + " WHERE e0.id + e21.id < 0",
    "in a subquery": "SELECT (WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+1 FROM t) "
    "SELECT count(*) FROM t) FROM emp",
    "slow function": "WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+1 FROM t) "
    "SELECT sum(instr(hex(zeroblob(49000)), hex(zeroblob(24000)) || n)) FROM t",
    "slow pattern": "WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+1 FROM t) "
    f"SELECT sum(n || hex(zeroblob(400000)) LIKE '%{'_0' * 100}1') FROM t",
    "long texts": "WITH RECURSIVE t(n) AS (VALUES(0) UNION ALL SELECT n+1 FROM t) "
    "SELECT sum(length(upper(n || hex(zeroblob(1000000))))) FROM t",
}


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_S09_a_statement_that_never_yields_stops_at_its_limit(emp: Ground, sql: str) -> None:
    """S09: a typed error that names the limit; the session goes on."""
    start = time.monotonic()
    kind, message = emp.fault(sql, timeout_s=0.2)
    assert kind == "timeout"
    assert "0.2 s" in message
    assert time.monotonic() - start < LONG_S
    assert emp.rows("SELECT count(*) FROM emp") == [[3]]


def test_what_takes_long_to_compile_meets_the_limit_too(tmp_path: Path) -> None:
    """Views of views, each twice the last: described or read, they end near the limit."""
    views = ["CREATE TABLE t(a); CREATE VIEW v0 AS SELECT a FROM t;"]
    views += [f"CREATE VIEW v{n} AS SELECT x.a FROM v{n - 1} x, v{n - 1} y;" for n in range(1, 16)]
    ground = Ground(tmp_path, "".join(views))
    for op in ("schema", "query"):
        start = time.monotonic()
        assert ground.ask(op, sql="SELECT * FROM v14", timeout_s=0.3)["error"]["kind"] == "timeout"
        assert time.monotonic() - start < 2.0  # without it, eight seconds for the last view alone
    assert ground.rows("SELECT count(*) FROM v1") == [[0]]


def test_the_limit_of_a_request_is_that_of_all_its_statements(emp: Ground) -> None:
    """Whatever each of them may take."""
    database = {"place": "emp.sqlite"}
    request = {"op": "query", "database": database, "sql": ENDLESS["recursion"], "timeout_s": 60}
    start = time.monotonic()
    answer = json.loads(emp.answerer.answer(json.dumps(request), timeout_s=0.2))
    assert answer["error"]["kind"] == "timeout"
    assert time.monotonic() - start < 10


def test_S09_recursion_as_such_is_allowed(emp: Ground) -> None:
    """S09, third call."""
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n<5)"
    assert emp.rows(f"{numbers} SELECT sum(n) FROM r") == [[15]]


def test_a_write_that_is_stopped_is_undone(emp: Ground) -> None:
    """Half a statement changes nothing."""
    endless = "WITH RECURSIVE t(n) AS (VALUES(9) UNION ALL SELECT n+1 FROM t)"
    sql = f"INSERT INTO emp(id) {endless} SELECT n FROM t"
    assert emp.fault(sql, writable=True, timeout_s=0.1)[0] == "timeout"
    assert emp.rows("SELECT count(*) FROM emp", writable=True) == [[3]]


def test_waiting_for_a_processor_is_no_fault_of_the_statement(emp: Ground) -> None:
    """The processor's time counts: beside busy processes the same statement still ends."""
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT 300000)"
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(8)]
    try:
        assert emp.rows(f"{numbers} SELECT max(n) FROM r", timeout_s=1.0) == [[300000]]
    finally:
        for process in busy:
            process.kill()
            process.wait()


LARGE = {
    "zeroblob": "SELECT zeroblob(1000000000)",
    "hex": "SELECT hex(zeroblob(3000000))",
    "doubling": "WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r) "
    "SELECT length(x) FROM r",
    "replace": "SELECT replace(hex(zeroblob(40000)), '0', 'xxxxxxxxxx')",
    "json_patch": "SELECT json_patch('{\"a\":\"' || hex(zeroblob(60000)) || '\"}', '{}')",
    "group_concat": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT 3000000) "
    "SELECT group_concat(n) FROM r",
    "json": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT 3000000) "
    "SELECT json_group_array(n) FROM r",
    "randomblob": "SELECT randomblob(1000000000000)",
    "column names": "SELECT 1 AS '" + "x" * 100_000 + "', 2 AS '" + "y" * 50_000 + "'",
}


@pytest.mark.parametrize("sql", LARGE.values(), ids=LARGE)
def test_a_value_that_grows_without_bound_is_an_error(emp: Ground, sql: str) -> None:
    """Text, blobs and names: kind ``memory``, and the session goes on."""
    assert emp.fault(sql, max_bytes=100_000)[0] == "memory"
    assert emp.rows("SELECT 1") == [[1]]


def test_a_function_is_bounded_behind_a_view_too(emp: Ground) -> None:
    """What a statement calls is what SQLite compiles, not what its text says."""
    view = "CREATE VIEW v AS SELECT replace(hex(zeroblob(x)), '0', 'x') AS y FROM (SELECT 60000 x)"
    assert "error" not in emp.ask(sql=view, writable=True)
    for _ in range(2):
        answer = emp.ask(sql="SELECT length(y) FROM v", writable=True)
        assert answer["error"]["kind"] == "memory"
    assert emp.rows("SELECT length(hex(zeroblob(60000)))", writable=True) == [[120000]]


def test_a_printed_value_that_is_too_large_is_none(emp: Ground) -> None:
    """SQLite's own answer to ``printf`` beyond the limit is NULL or an error, never the text."""
    answer = emp.ask(sql="SELECT printf('%.*c', 100000000, 'x')")
    assert answer.get("rows") in (None, [[None]])


def test_a_statement_that_explodes_while_it_is_compiled_meets_the_limit_of_memory(
    tmp_path: Path,
) -> None:
    """No clock is looked at while SQLite compiles; memory bounds it."""
    parts = ["c0 AS (SELECT 1 AS x)"]
    parts += [f"c{i} AS (SELECT a.x FROM c{i - 1} a, c{i - 1} b)" for i in range(1, 30)]
    sql = f"WITH {', '.join(parts)} SELECT * FROM c29"
    program = _IN_A_PROCESS.format(folder=str(tmp_path), sql=sql)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout)["error"]["kind"] == "memory"


# The limit holds for a whole process, so it is not set in this one.
_IN_A_PROCESS = """
import json, sqlite3
from toolenvs.database import Answerer, SqliteEngine
sqlite3.connect({folder!r} + "/a.sqlite").execute("CREATE TABLE t(a)")
answerer = Answerer({{"sqlite": SqliteEngine({folder!r}, heap_bytes=64 << 20)}})
request = {{"op": "query", "database": {{"place": "a.sqlite"}}, "sql": {sql!r}}}
print(answerer.answer(json.dumps(request)))
"""


def test_a_copy_does_not_grow_without_bound(emp: Ground) -> None:
    """Filling a private copy ends with an error before the memory does, and is undone."""
    numbers = "WITH RECURSIVE r(n) AS (SELECT 9 UNION ALL SELECT n+1 FROM r LIMIT 500)"
    sql = f"INSERT INTO emp(id, name) {numbers} SELECT n, zeroblob(1000000) FROM r"
    assert emp.fault(sql, writable=True)[0] == "memory"
    assert emp.rows("SELECT count(*) FROM emp", writable=True) == [[3]]


def test_values_as_large_as_data_have_them_can_be_read(emp: Ground) -> None:
    """A picture of a megabyte is read like any other value."""
    size = 1_000_000
    assert size < MAX_VALUE_BYTES
    assert emp.rows(f"SELECT zeroblob({size})", max_bytes=3_000_000) == [[{"bytes": "00" * size}]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "+".join(["1"] * 50_000),
        " UNION ".join(["SELECT 1"] * 5000),
        "SELECT " + ", ".join(["*"] * 1000) + " FROM emp",
        "SELECT 'a' LIKE '" + "%a" * 500 + "'",
    ],
    ids=["brackets", "sum", "union", "columns", "pattern"],
)
def test_a_statement_beyond_sqlites_own_limits_is_an_error_in_it(emp: Ground, sql: str) -> None:
    """Nesting, terms, columns and patterns: kind ``raised``."""
    assert emp.fault(sql)[0] == "raised"
