"""PostgreSQL: nothing leaks between episodes, nothing stays, and a statement always ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtimes.zoo import SCRIPT, ZOO, ask, rows, session, started
from toolenvs.database import Answerer, SqliteEngine
from toolenvs.drivers import Loop, run
from toolenvs.env import ToolEnv
from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.grading.sql import compare
from toolenvs.postgres import Server, read_script
from toolenvs.runtimes.postgres import Postgres, PostgresWorker
from toolenvs.types import Database, Task, ToolCall


@pytest.fixture
def zoo(postgres: str, tmp_path: Path) -> Iterator[PostgresWorker]:
    """A worker of a runtime with the template ``zoo``."""
    with started(postgres, tmp_path) as worker:
        yield worker


def test_rows_come_with_their_types(zoo: PostgresWorker) -> None:
    """Decimals, NULL, truth, dates, arrays and JSON, in the order in which they came."""
    with session(zoo) as sandbox:
        assert rows(sandbox, "SELECT name, weight FROM animal ORDER BY id") == [
            ["Lion", {"decimal": "190.50"}],
            ["Wren", {"decimal": "0.01"}],
            ["Newt", None],
        ]
        found = rows(sandbox, "SELECT true, '2024-02-29'::date, array[1, 2], '{\"a\": 1}'::jsonb")
        assert found == [[True, {"date": "2024-02-29"}, {"array": [1, 2]}, {"json": {"a": 1}}]]
        assert ask(sandbox, "SELECT 1 AS a, 2 AS a")["columns"] == ["a", "a"]
        assert rows(sandbox, "SELECT 'a%' LIKE 'a%'") == [[True]]


REFUSED = [
    "DROP TABLE animal",
    "DELETE FROM animal",
    "WITH gone AS (DELETE FROM animal RETURNING 1) SELECT * FROM gone",
    "CREATE TABLE x (a int)",
    "CREATE TEMP TABLE x (a int)",
    "SELECT 1 INTO x",
    "COPY animal TO '/tmp/x'",
    "COPY animal TO PROGRAM 'id'",
    "COPY animal FROM '/etc/passwd'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_create(0)",
    "CREATE EXTENSION dblink",
    "DO $$ BEGIN PERFORM 1; END $$",
    "SET statement_timeout = 0",
    "SET default_transaction_read_only = off",
    "COMMIT",
    "ROLLBACK",
    "/* /* */ */ COMMIT",
    "LISTEN x",
    "ALTER ROLE CURRENT_USER SET statement_timeout = 0",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT query FROM pg_stat_activity",
    "SELECT pg_advisory_lock(1)",
    "SELECT query_to_xml('DROP TABLE animal', true, true, '')",
]


def test_whatever_would_change_or_reach_out_is_a_typed_error(zoo: PostgresWorker) -> None:
    """Each is refused (or unknown), and the next statement finds everything as it was."""
    with session(zoo) as sandbox:
        before = rows(sandbox, "SELECT * FROM animal ORDER BY id")
        for sql in REFUSED:
            assert ask(sandbox, sql).get("error", {}).get("kind") in ("refused", "raised"), sql
        assert rows(sandbox, "SELECT * FROM animal ORDER BY id") == before
        for unknown in ("SELECT * FROM dblink('x', 'y') AS t(a int)", 'SELECT "Lion" FROM animal'):
            assert ask(sandbox, unknown)["error"]["kind"] == "raised"
        assert ask(sandbox, "SELECT 1; DROP TABLE animal")["error"]["kind"] == "bad_arguments"


def test_a_statement_that_never_ends_is_stopped_and_others_go_on(zoo: PostgresWorker) -> None:
    """The limit holds whatever an earlier statement set; endless rows are fetched no further."""
    with session(zoo) as sandbox, session(zoo) as other:
        ask(sandbox, "SELECT set_config('statement_timeout', '0', false)")
        began = time.monotonic()
        assert ask(sandbox, "SELECT pg_sleep(60)", limit=0.3)["error"]["kind"] == "timeout"
        endless = "SELECT count(*) FROM generate_series(1, 1000000000000) a"
        assert ask(sandbox, endless, limit=0.3)["error"]["kind"] == "timeout"
        assert time.monotonic() - began < 20
        answer = ask(sandbox, "SELECT generate_series(1, 1000000000)")
        assert (answer["row_count"], answer["cut"]) == (1000, True)
        assert rows(other, "SELECT count(*) FROM animal") == [[3]]


def test_an_episode_that_writes_has_a_copy_of_its_own(zoo: PostgresWorker) -> None:
    """What it changes it finds again; nobody else does, and a failed statement changes nothing."""
    with session(zoo) as one, session(zoo) as other:
        rows(one, "UPDATE animal SET name = 'Cat' WHERE id = 1", writable=True)
        rows(other, "DELETE FROM animal", writable=True)
        assert rows(one, "SELECT name FROM animal WHERE id = 1", writable=True) == [["Cat"]]
        assert rows(other, "SELECT count(*) FROM animal", writable=True) == [[0]]
        failed = ask(one, "UPDATE animal SET id = 7 / (id - 2)", writable=True)
        assert failed["error"]["kind"] == "raised"
        assert rows(one, "SELECT count(*) FROM animal WHERE id < 4", writable=True) == [[3]]
        assert ask(one, "COPY animal TO PROGRAM 'id'", writable=True)["error"]["kind"] == "refused"
        assert rows(one, "SELECT name FROM animal WHERE id = 1") == [["Lion"]]


def test_a_state_is_that_of_a_fresh_copy(zoo: PostgresWorker) -> None:
    """Statements of one request do not meet those of another."""
    with session(zoo) as sandbox:
        for _ in range(2):
            request = {
                "op": "state",
                "database": ZOO,
                "statements": ["DELETE FROM animal WHERE id = 1"],
            }
            state = json.loads(run(sandbox.execute(json.dumps(request))).stdout)
            counts = {table["name"]: table["row_count"] for table in state["tables"]}
            assert counts == {"keeper": 2, "animal": 2}


def test_the_schema_tells_keys_views_and_types(zoo: PostgresWorker) -> None:
    """In the order of their creation."""
    with session(zoo) as sandbox:
        request = {"op": "schema", "database": ZOO, "sample_rows": 1}
        tables = json.loads(run(sandbox.execute(json.dumps(request))).stdout)["tables"]
        assert [(table["name"], table["kind"]) for table in tables] == [
            ("keeper", "table"),
            ("animal", "table"),
            ("heavy", "view"),
        ]
        assert tables[1]["foreign_keys"] == [
            {"columns": ["keeper"], "table": "keeper", "to": ["id"]}
        ]
        assert tables[0]["columns"][0] == {
            "name": "id",
            "type": "integer",
            "not_null": True,
            "primary_key": 1,
        }


def test_chance_depends_on_the_statement_alone(zoo: PostgresWorker) -> None:
    """Two sessions see the same, two statements do not."""
    with session(zoo) as one, session(zoo) as other:
        seen = rows(one, "SELECT random()")
        assert seen == rows(other, "SELECT random()")
        assert seen == rows(one, "SELECT random()")
        assert seen != rows(one, "SELECT random() AS x")


def test_many_episodes_start_at_once(zoo: PostgresWorker) -> None:
    """Readers and writers, each its own role; afterwards none is left."""
    loop, answers = Loop(), []
    sandboxes = [run(zoo.spawn(seed=n, files={}, data=("zoo",))) for n in range(12)]
    for number, sandbox in enumerate(sandboxes):
        database = {**ZOO, "writable": number % 3 == 0}
        sql = "SELECT count(*) FROM animal"
        request = {"op": "query", "database": database, "sql": sql}
        loop.spawn(
            sandbox.execute(json.dumps(request)),
            lambda value, error: answers.append((value, error)),
        )
    while len(answers) < len(sandboxes):
        loop.pump(1.0)
    loop.close()
    assert [error for _, error in answers if error] == []
    for sandbox in sandboxes:
        run(sandbox.stop())
        run(sandbox.stop())
    assert zoo._server.settle()
    with zoo._server.admin() as connection:
        left = connection.exec_driver_sql(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'toolenvs\\_%%'"
        ).all()
        copies = connection.exec_driver_sql(
            "SELECT datname FROM pg_database WHERE datname ~ '^toolenvs_[0-9a-f]{16}$'"
        ).all()
    assert (left, copies) == ([], [])


def test_what_a_killed_client_left_is_removed_by_the_next(
    postgres: str, zoo: PostgresWorker
) -> None:
    """Its role and its copy; those of a living client stay."""
    program = (
        "import sys, time\n"
        "from toolenvs.postgres import Server\n"
        "server = Server(sys.argv[1])\n"
        "print(server.open_role(sys.argv[2], writable=True).role, flush=True)\n"
        "time.sleep(60)\n"
    )
    with session(zoo) as alive:
        rows(alive, "SELECT 1")
        command = [sys.executable, "-c", program, postgres, zoo._templates.database("zoo")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            role = client.stdout.readline().strip()
            os.kill(client.pid, signal.SIGKILL)
        server = Server(postgres)
        until = time.monotonic() + 20
        while (
            server.sweep() == 0 and time.monotonic() < until
        ):  # its connection ends a moment later
            time.sleep(0.1)
        with server.admin() as connection:
            roles = set(connection.exec_driver_sql("SELECT rolname FROM pg_roles").scalars())
        server.close()
        assert role not in roles
        assert rows(alive, "SELECT count(*) FROM animal") == [[3]]


def test_bad_settings_and_a_missing_server_are_clear(tmp_path: Path, zoo: PostgresWorker) -> None:
    """Each message says what to do; a template of another task is not given."""
    for sessions in (0, 1001, "8", True, 2.5):
        with pytest.raises(UsageError, match="a whole number from 1 to 1000"):
            Postgres(sessions=sessions)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="postgresql://"):
        Postgres(url="mysql://x/y").fingerprint()
    with pytest.raises(RuntimeFailure, match="docker-compose up") as failure:
        run(Postgres(url="postgresql://me:secret@127.0.0.1:1/x").start())
    assert failure.value.kind == "no_service"
    assert "secret" not in str(failure.value)
    sandbox = run(zoo.spawn(seed=0, files={}, data=()))
    with pytest.raises(RuntimeFailure, match="zoo") as unknown:
        ask(sandbox, "SELECT 1")
    assert unknown.value.kind == "data"
    run(sandbox.stop())
    with pytest.raises(RuntimeFailure, match="stopped"):
        ask(sandbox, "SELECT 1")
    with pytest.raises(DataError, match="cannot be read"):
        read_script(tmp_path / "nothing.sql")


def test_a_script_that_fails_leaves_no_half_template(postgres: str, tmp_path: Path) -> None:
    """The error names the script; when it is mended it is made."""
    script = tmp_path / "zoo.sql"
    script.write_text(SCRIPT + "INSERT INTO nowhere VALUES (1);")
    server = Server(postgres)
    with pytest.raises(DataError, match=r"zoo\.sql.*nowhere"):
        server.ensure_template(script)
    script.write_text(SCRIPT + "-- mended")
    assert server.ensure_template(script) == server.ensure_template(script)
    server.close()


def test_an_episode_is_played_on_a_server(postgres: str, tmp_path: Path) -> None:
    """Agent, referee and rubric: the gold query scores 1, another 0."""
    script = tmp_path / "zoo.sql"
    script.write_text(SCRIPT)
    task = Task(
        id="t",
        prompt="The heaviest?",
        family="sql",
        answer="SELECT name FROM animal ORDER BY weight DESC NULLS LAST LIMIT 1",
        database=Database(name="zoo", engine="postgres", place="zoo", digest="1"),
    )
    runtimes = {"service:postgres": {"url": postgres, "templates": {"zoo": script}}}
    env = ToolEnv("sql", tasks=[task], rewards="outcome", runtimes=runtimes)
    for sql, reward in ((task.answer, 1.0), ("SELECT 'Wren'", 0.0)):
        env.reset(seed=0)
        observation, *_ = env.act([ToolCall("sql_query", {"sql": "SELECT name FROM heavy"})])
        assert "Lion" in observation
        assert env.act([ToolCall("submit_sql", {"sql": sql})])[1:3] == (reward, True)
    env.close()


@pytest.mark.shared
def test_real_scripts_become_templates(postgres: str, shared: Path) -> None:
    """Defog's databases, and Chinook's script for ``psql``."""
    folder = shared / "data" / "sql"
    scripts = [*folder.glob("defog/*.postgres.sql"), folder / "classic" / "chinook_postgres.sql"]
    server = Server(postgres)
    assert len({server.ensure_template(script) for script in scripts}) == 8
    server.close()


CHINOOK = {
    "SELECT title FROM album ORDER BY album_id LIMIT 5": (
        "SELECT Title FROM Album ORDER BY AlbumId LIMIT 5"
    ),
    "SELECT count(*), min(milliseconds), max(bytes) FROM track": (
        "SELECT count(*), min(Milliseconds), max(Bytes) FROM Track"
    ),
    "SELECT g.name, count(*) FROM track t JOIN genre g USING (genre_id) GROUP BY g.name": (
        "SELECT g.Name, count(*) FROM Track t JOIN Genre g USING (GenreId) GROUP BY g.Name"
    ),
    "SELECT billing_country, sum(total) FROM invoice GROUP BY 1 HAVING sum(total) > 100": (
        "SELECT BillingCountry, sum(Total) FROM Invoice GROUP BY 1 HAVING sum(Total) > 100"
    ),
    "SELECT name FROM artist WHERE artist_id NOT IN (SELECT artist_id FROM album)": (
        "SELECT Name FROM Artist WHERE ArtistId NOT IN (SELECT ArtistId FROM Album)"
    ),
    "SELECT first_name, company FROM customer WHERE company IS NULL": (
        "SELECT FirstName, Company FROM Customer WHERE Company IS NULL"
    ),
    "SELECT last_name FROM employee WHERE reports_to = 2 UNION SELECT last_name FROM customer": (
        "SELECT LastName FROM Employee WHERE ReportsTo = 2 UNION SELECT LastName FROM Customer"
    ),
}
"""Queries on Chinook in PostgreSQL's names, and the same in SQLite's."""


@pytest.mark.shared
def test_both_engines_give_the_same_rows_of_the_same_data(postgres: str, shared: Path) -> None:
    """Chinook's script and Chinook's file; and the gold scores 1 on the server."""
    folder = shared / "data" / "sql" / "classic"
    sqlite = Answerer({"sqlite": SqliteEngine({"classic": str(folder)})})
    file = {"engine": "sqlite", "place": "classic/chinook.sqlite"}
    runtimes = {
        "service:postgres": {
            "url": postgres,
            "templates": {"chinook": folder / "chinook_postgres.sql"},
        }
    }
    database = Database(name="chinook", engine="postgres", place="chinook", digest="1")
    for number, (theirs, ours) in enumerate(CHINOOK.items()):
        task = Task(id=f"t{number}", prompt="?", family="sql", answer=theirs, database=database)
        env = ToolEnv("sql", tasks=[task], runtimes=runtimes, tool_options=ALL_ROWS)
        env.reset()
        result = env.act([ToolCall("sql_query", {"sql": theirs})])[4]["results"][0]["data"]
        request = {"op": "query", "database": file, "sql": ours}
        expected = json.loads(sqlite.answer(json.dumps(request)))
        assert len(expected["rows"]) > 0
        assert compare(expected, result).correct, theirs
        *_, info = env.act([ToolCall("submit_sql", {"sql": theirs})])
        assert info["reward_reasons"]["answer"].startswith("equal")
        env.close()


ALL_ROWS = {"sql_query": {"keep_rows": 10_000}}
