"""PostgreSQL against statements and accidents that would reach beyond their own call."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.zoo import SCRIPT, ZOO, ask, rows, script, session, started, task
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure
from toolenvs.postgres import Server
from toolenvs.postgres.connecting import engine_for
from toolenvs.runtimes.postgres import Postgres, PostgresSandbox, PostgresWorker
from toolenvs.types import ToolCall

OWN_ROLES = r"SELECT rolname FROM pg_roles WHERE rolname ~ '^toolenvs_[0-9a-f]{16}$'"


@pytest.fixture
def zoo(postgres: str, tmp_path: Path) -> Iterator[PostgresWorker]:
    """A worker of a runtime with the template ``zoo``."""
    with started(postgres, tmp_path) as worker:
        yield worker


def kind(sandbox: PostgresSandbox, sql: str, **options: Any) -> str:
    """The kind of error that a statement gives, or ``""``."""
    found: str = ask(sandbox, sql, **options).get("error", {}).get("kind", "")
    return found


def admin(worker: PostgresWorker, sql: str) -> list[Any]:
    """First column of a statement of the server's owner."""
    with worker._server.admin() as connection:
        result = connection.exec_driver_sql(sql)
        return list(result.scalars()) if result.returns_rows else []


# -- one statement, which leaves nothing ---------------------------------

SEVERAL = [
    "SELECT 1 -- x\r; COMMIT; SET search_path = pg_catalog",
    "SELECT 1 AS é$$; COMMIT; SET search_path = pg_catalog; SELECT 2 AS é$$",
    "SELECT 1 -- x\r; COPY animal TO STDOUT",
    "SELECT 1 -- x\r; DROP TABLE animal",
]


@pytest.mark.parametrize("sql", SEVERAL)
@pytest.mark.parametrize("writable", [False, True])
def test_a_text_of_several_statements_is_refused(
    zoo: PostgresWorker, sql: str, writable: bool
) -> None:
    """However they are hidden from a reader of the text."""
    with session(zoo) as sandbox:
        assert kind(sandbox, sql, writable=writable) == "bad_arguments"
        found = rows(sandbox, "SHOW search_path", writable=writable)
        assert found == [['"$user", public']]


@pytest.mark.parametrize("sql", SEVERAL)
def test_the_server_itself_takes_one_statement_alone(
    zoo: PostgresWorker, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were our reader of texts wrong, nothing would run."""
    monkeypatch.setattr("toolenvs.database.session.sole_statement", lambda text, _: text)
    with session(zoo) as sandbox:
        error = ask(sandbox, sql)["error"]
        assert (error["kind"], "multiple commands" in error["message"]) == ("raised", True)
        assert rows(sandbox, "SELECT count(*) FROM animal") == [[3]]


LASTING = [
    "SELECT set_config('idle_in_transaction_session_timeout', '1', false)",
    "SELECT set_config('idle_session_timeout', '1', false)",
    "SELECT set_config('statement_timeout', '0', true)",
    "SELECT set_config('extra_float_digits', '-15', false)",
    "SELECT set_config('client_encoding', 'MULE_INTERNAL', false)",
    "UPDATE pg_settings SET setting = '1' WHERE name = 'idle_session_timeout'",
    "ALTER ROLE CURRENT_USER SET statement_timeout = 0",
    "ALTER ROLE CURRENT_USER PASSWORD 'x'",
    "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SET idle_session_timeout = 1'",
    "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "DO $$ BEGIN SET idle_session_timeout = 1; END $$",
    "PREPARE p AS SELECT 1",
    "CREATE TEMP TABLE x (a int)",
    "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000))",
    "SELECT txid_current() FROM pg_advisory_lock(1)",
    "SELECT ts_stat('SELECT 1')",
    "SELECT lo_creat(-1)",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT rolname FROM pg_roles",
    "SELECT datname FROM pg_database",
]


@pytest.mark.parametrize("writable", [False, True])
def test_what_would_last_or_reach_out_is_refused(zoo: PostgresWorker, writable: bool) -> None:
    """Each is a typed error, and the session goes on as it was."""
    with session(zoo) as sandbox:
        before = rows(sandbox, "SELECT name, setting FROM pg_settings", writable=writable)
        session_of = rows(sandbox, "SELECT pg_backend_pid()", writable=writable)
        for sql in LASTING:
            assert kind(sandbox, sql, writable=writable) in ("refused", "raised"), sql
        time.sleep(0.1)
        assert rows(sandbox, "SELECT pg_backend_pid()", writable=writable) == session_of
        assert rows(sandbox, "SELECT name, setting FROM pg_settings", writable=writable) == before


def test_what_a_trusted_script_lets_a_statement_set_ends_with_it(
    postgres: str, tmp_path: Path
) -> None:
    """Even where a setting can be changed, the next statement does not meet it."""
    more = """
    CREATE FUNCTION lax() RETURNS text LANGUAGE sql SECURITY DEFINER
      AS $$ SELECT set_config('statement_timeout', '0', false)
                 || set_config('search_path', 'pg_catalog', false) $$;
    """
    worker = run(Postgres(url=postgres, templates={"zoo": script(tmp_path, more)}).start())
    with session(worker) as sandbox:
        for writable in (False, True):
            rows(sandbox, "SELECT lax()", writable=writable)
            assert rows(sandbox, "SELECT count(*) FROM animal", writable=writable) == [[3]]
            assert kind(sandbox, "SELECT pg_sleep(30)", writable=writable, limit=0.2) == "timeout"
    run(worker.stop())


def test_functions_that_may_be_called_are_those_that_were_looked_at(zoo: PostgresWorker) -> None:
    """No volatile function of the server beyond a short list is open to the episodes' roles."""
    from toolenvs.postgres.rights import _ALLOWED_VOLATILE

    with session(zoo) as sandbox:
        found = rows(
            sandbox,
            "SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'v'"
            " AND pronamespace = 'pg_catalog'::regnamespace"
            " AND prorettype <> ALL ('{trigger,event_trigger,internal}'::regtype[])"
            " AND has_function_privilege(oid, 'execute')",
        )
    assert {name for (name,) in found} <= set(_ALLOWED_VOLATILE)


@pytest.mark.parametrize(
    "sql", ['SELECT U&"\\0072andom"()', "SELECT gen.r FROM random() AS gen(r)"]
)
def test_chance_is_the_statement_s_however_it_is_written(zoo: PostgresWorker, sql: str) -> None:
    """Two sessions see the same."""
    with session(zoo) as one, session(zoo) as other:
        assert rows(one, sql) == rows(other, sql) == rows(one, sql)


# -- limits ---------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE WHEN i % 256 = 0 THEN pg_sleep(0.4)::text END FROM generate_series(1, 9999) i",
        "SELECT pg_sleep(0.3) FROM generate_series(1, 999)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
    ],
)
@pytest.mark.parametrize("writable", [False, True])
def test_one_limit_holds_for_all_rows_of_a_statement(
    zoo: PostgresWorker, sql: str, writable: bool
) -> None:
    """Not for each portion of them."""
    with session(zoo) as sandbox:
        rows(sandbox, "SELECT 1", writable=writable)
        began = time.monotonic()
        assert kind(sandbox, sql, limit=0.8, max_rows=10_000, writable=writable) == "timeout"
        assert time.monotonic() - began < 10
        assert rows(sandbox, "SELECT count(*) FROM animal", writable=writable) == [[3]]


def test_the_limit_of_a_call_holds_for_all_that_it_asks(zoo: PostgresWorker) -> None:
    """Whatever the limit of each statement in it."""
    request = {"op": "query", "database": ZOO, "sql": "SELECT pg_sleep(60)", "timeout_s": 60}
    with session(zoo) as sandbox:
        answer = run(sandbox.execute(json.dumps(request), timeout_s=0.5)).stdout
        assert json.loads(answer)["error"]["kind"] == "timeout"


@pytest.mark.parametrize("writable", [False, True])
def test_a_server_that_does_not_stop_a_statement_is_left(
    zoo: PostgresWorker, writable: bool
) -> None:
    """The statement ends at its limit or soon after, and the next one has a session again."""
    with session(zoo) as sandbox:
        ((backend,),) = rows(sandbox, "SELECT pg_backend_pid()", writable=writable)
        stopping = threading.Timer(0.3, os.kill, (backend, signal.SIGSTOP))
        stopping.start()
        try:
            assert kind(sandbox, "SELECT pg_sleep(30)", limit=1.0, writable=writable) == "timeout"
            found = rows(sandbox, "SELECT count(*) FROM animal", writable=writable)
            assert found == [[3]]
        finally:
            stopping.join()
            os.kill(backend, signal.SIGCONT)


def test_a_client_holds_no_more_than_it_was_asked_for(zoo: PostgresWorker) -> None:
    """Wide rows and huge values stop at the limits, whatever the server would send."""
    wide = "SELECT repeat(md5(i::text), 100000) FROM generate_series(1, 256) i"
    huge = "SELECT repeat('x', 300000000)"
    with session(zoo) as sandbox:
        for writable in (False, True):
            rows(sandbox, "SELECT 1", writable=writable)
            Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
            before = _peak_bytes()
            assert ask(sandbox, wide, writable=writable)["cut"]
            assert kind(sandbox, huge, writable=writable, limit=20) == "memory"
            assert kind(sandbox, f"WITH x AS ({huge}) TABLE x", writable=writable) == "memory"
            assert _peak_bytes() - before < 100 << 20
            assert rows(sandbox, "SELECT count(*) FROM animal", writable=writable) == [[3]]


def _peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def test_a_change_is_done_however_few_of_its_rows_are_wanted(zoo: PostgresWorker) -> None:
    """RETURNING and WITH give the first rows, and all is changed."""
    with session(zoo) as sandbox:
        made = "INSERT INTO keeper SELECT i, 'x' FROM generate_series(10, 5009) i RETURNING id"
        answer = ask(sandbox, made, writable=True, max_rows=3)
        assert (answer["rows"], answer["cut"]) == ([[10], [11], [12]], True)
        gone = "WITH gone AS (DELETE FROM keeper WHERE id > 9 RETURNING id) SELECT * FROM gone"
        assert rows(sandbox, "SELECT count(*) FROM keeper", writable=True) == [[5002]]
        assert ask(sandbox, gone, writable=True, max_rows=1)["cut"]
        assert rows(sandbox, "SELECT count(*) FROM keeper", writable=True) == [[2]]
        failing = "UPDATE keeper SET id = 7 / (id - 2) RETURNING id"
        assert kind(sandbox, failing, writable=True, max_rows=1) == "raised"


def test_what_is_checked_at_the_end_is_the_statement_s_own_fault(
    postgres: str, tmp_path: Path
) -> None:
    """A deferred constraint fails with COMMIT; nothing is changed."""
    more = "ALTER TABLE animal ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED;"
    worker = run(Postgres(url=postgres, templates={"zoo": script(tmp_path, more)}).start())
    with session(worker) as sandbox:
        assert kind(sandbox, "UPDATE animal SET name = 'Cat'", writable=True) == "raised"
        assert rows(sandbox, "SELECT count(*) FROM animal WHERE name = 'Cat'", writable=True) == [
            [0]
        ]
    run(worker.stop())


def test_a_copy_grows_no_further_than_it_may(zoo: PostgresWorker) -> None:
    """What would be too much is undone, and what fits goes on."""
    much = (
        "INSERT INTO keeper SELECT i, repeat(md5(i::text), 60) FROM generate_series(10, 900000) i"
    )
    with session(zoo) as sandbox:
        assert kind(sandbox, much, writable=True, limit=30) == "memory"
        assert rows(sandbox, "SELECT count(*) FROM keeper", writable=True) == [[2]]
        few = "INSERT INTO keeper SELECT i, 'x' FROM generate_series(10, 99) i"
        assert ask(sandbox, few, writable=True)["row_count"] == 90


@pytest.mark.parametrize(
    "grow",
    [
        "SELECT repeat('x', 1000) b INTO big FROM generate_series(1, 200000)",
        "CREATE TABLE big AS SELECT repeat('x', 1000) b FROM generate_series(1, 200000)",
        "WITH x AS (INSERT INTO keeper SELECT i, repeat('x', 1000)"
        " FROM generate_series(10, 200000) i RETURNING 1) SELECT count(*) FROM x",
    ],
)
def test_no_way_of_growing_is_overlooked(zoo: PostgresWorker, grow: str) -> None:
    """Whatever the statement's first word; honest changes go on."""
    with session(zoo) as sandbox:
        assert kind(sandbox, grow, writable=True, limit=30) == "memory"
        assert ask(sandbox, "DELETE FROM animal WHERE id = 1", writable=True)["row_count"] == 1
        few = "SELECT 1 AS a INTO small"
        assert kind(sandbox, few, writable=True) == ""
        assert rows(sandbox, "SELECT a FROM small", writable=True) == [[1]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT translate(repeat('a', 3000000), repeat('b', 3000) || 'a', 'x')",
        "SELECT trim(both repeat('b', 3000) || 'a' from repeat('a', 3000000))",
        "SELECT strpos(repeat('a', 3000000), 'b' || repeat('a', 3000))",
        "SELECT replace(repeat('a', 3000000), 'b' || repeat('a', 3000), 'c')",
        "SELECT ARRAY(SELECT generate_series(1, 60000)) &&"
        " ARRAY(SELECT -generate_series(1, 60001))",
        "SELECT string_to_array(repeat('a', 3000000), 'b' || repeat('a', 2500))",
        "SELECT count(*) FROM string_to_table(repeat('a', 3000000), 'b' || repeat('a', 2500))",
        "SELECT j - k FROM (SELECT jsonb_agg(g::text) j, array_agg('x' || g) k"
        " FROM generate_series(1, 60000) g) x",
        "SELECT j @> j FROM (SELECT jsonb_agg(g::text) j FROM generate_series(1, 60000) g) x",
        "SELECT normalize('a' || repeat(chr(769) || chr(803), 60000), NFD)",
        "SELECT p <-> p FROM (SELECT ('[' || string_agg('(' || g || ',0)', ',') || ']')::path p"
        " FROM generate_series(1, 15000) g) x",
    ],
)
def test_what_takes_the_product_of_two_lengths_is_bounded(zoo: PostgresWorker, sql: str) -> None:
    """Nothing could interrupt it. Arguments of everyday size are as ever."""
    with session(zoo) as sandbox:
        assert kind(sandbox, sql) == "memory"
        found = rows(
            sandbox, "SELECT translate('(1) 2', '() ', ''), ltrim('007', '0'), ARRAY[1] && ARRAY[1]"
        )
        assert found == [["12", "7", True]]
        found = rows(
            sandbox,
            "SELECT string_to_array('ab', NULL)::text, string_to_array('a,b', ',', 'b')::text, "
            """('{"a": 1, "b": 2}'::jsonb - '{a}'::text[])::text, '[1, 2]'::jsonb @> '[1]', """
            "normalize('a'), 'a' IS NORMALIZED, (SELECT count(*) FROM string_to_table('a,b', ','))",
        )
        assert found == [["{a,b}", "{a,NULL}", '{"b": 2}', True, "a", True, 2]]


def test_statements_that_run_on_are_their_own_fault(zoo: PostgresWorker) -> None:
    """Up to two may, then a call is told so and not begun; once they end, calls go on."""
    with session(zoo) as sandbox:
        stopped = []
        try:
            for _ in range(2):
                ((backend,),) = rows(sandbox, "SELECT pg_backend_pid()", writable=True)
                stopped.append(backend)
                stopping = threading.Timer(0.2, os.kill, (backend, signal.SIGSTOP))
                stopping.start()
                assert kind(sandbox, "SELECT pg_sleep(9)", writable=True, limit=0.5) == "timeout"
                stopping.join()
            for _ in range(3):
                error = ask(sandbox, "SELECT 1", writable=True)["error"]
                assert (error["kind"], "still run" in error["message"]) == ("timeout", True)
        finally:
            for backend in stopped:
                os.kill(backend, signal.SIGCONT)
        assert rows(sandbox, "SELECT count(*) FROM animal", writable=True) == [[3]]


@pytest.mark.parametrize(
    ("sql", "kind_", "words"),
    [
        ("SELECT chr(0)", "raised", "null character"),
        ("SELECT array_fill(1, ARRAY[1000000000])", "memory", "exceeds the maximum"),
        ("SELECT (repeat('[', 6000) || repeat(']', 6000))::json", "raised", ""),
        ("SELECT FROM animal", "raised", "no columns"),
    ],
)
def test_the_server_s_limits_are_told_in_its_words(
    zoo: PostgresWorker, sql: str, kind_: str, words: str
) -> None:
    """One of size is a limit, another is an error in the statement; none is the machine's."""
    with session(zoo) as sandbox:
        error = ask(sandbox, sql)["error"]
        assert (error["kind"], words in error["message"]) == (kind_, True)


def test_a_busy_server_is_no_error_of_the_statement(
    zoo: PostgresWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all connections of ours are in use, the machine failed."""
    server = zoo._server
    with session(zoo) as sandbox:
        rows(sandbox, "SELECT 1", writable=True)
        ours = engine_for(server._url, pool_size=1, max_overflow=0, pool_timeout=0.1)
        with monkeypatch.context() as patch:
            patch.setattr(server, "_admin", ours)
            with server.admin(), pytest.raises(RuntimeFailure) as failure:
                ask(sandbox, "UPDATE animal SET name = 'x'", writable=True)
            assert failure.value.kind == "service"
        ours.dispose()


def test_a_state_s_copy_is_gone_with_the_request(zoo: PostgresWorker) -> None:
    """Not only with the sandbox."""
    sandbox = run(zoo.spawn(seed=0, files={}, data=("zoo",)))
    request = {"op": "state", "database": ZOO, "statements": ["DELETE FROM animal"]}
    assert "error" not in json.loads(run(sandbox.execute(json.dumps(request))).stdout)
    assert zoo._server.settle()
    assert admin(zoo, OWN_ROLES) == []
    run(sandbox.stop())


def test_what_others_do_is_not_told(zoo: PostgresWorker) -> None:
    """Their names, transactions, the server's age; everyday views of the catalog work."""
    hidden = [
        "SELECT pg_describe_object('pg_database'::regclass, 1, 0)",
        "SELECT pg_identify_object('pg_database'::regclass, 1, 0)",
        "SELECT pg_tablespace_databases(1663)",
        "SELECT txid_current()",
        "SELECT pg_current_xact_id()",
        "SELECT pg_current_snapshot()",
        "SELECT pg_postmaster_start_time()",
        "SELECT pg_conf_load_time()",
        "SELECT toolenvs_userbyid(10)",
    ]
    shown = [
        "SELECT * FROM pg_tables",
        "SELECT * FROM pg_views",
        "SELECT * FROM pg_indexes",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM information_schema.key_column_usage",
        "SELECT pg_get_userbyid(relowner) FROM pg_class",
    ]
    with session(zoo) as one, session(zoo) as other:
        ((number, name),) = rows(
            other, "SELECT current_user::regrole::oid::bigint, current_user::text"
        )
        assert rows(other, f"SELECT pg_get_userbyid({number})") == [[name]]
        assert rows(one, f"SELECT pg_get_userbyid({number})") == [[f"unknown (OID={number})"]]
        for sql in hidden:
            assert kind(one, sql) == "refused", sql
        for sql in shown:
            assert "error" not in ask(one, sql), sql


# -- values ---------------------------------


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'infinity'::date", "infinity"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC"),
        ("'24:00'::time", "24:00:00"),
        ("'-infinity'::timestamp", "-infinity"),
        ("'20000-01-01 00:00+00'::timestamptz", "20000-01-01 00:00:00+00"),
        ("'2024-02-29'::date", {"date": "2024-02-29"}),
        ("ARRAY['infinity'::date]", {"array": ["infinity"]}),
        ("'NaN'::numeric", {"decimal": "NaN"}),
        ("'ab'::char(5)", "ab"),
        ("ARRAY[' ab'::char(5)]", {"array": [" ab"]}),
    ],
)
def test_values_are_what_they_mean(zoo: PostgresWorker, sql: str, value: Any) -> None:
    """Times that Python does not know are their texts; blanks that fill a ``char(n)`` are none."""
    with session(zoo) as sandbox:
        assert rows(sandbox, f"SELECT {sql}") == [[value]]


# -- accidents ---------------------------------


@pytest.mark.parametrize("writable", [False, True])
def test_an_episode_whose_session_was_ended_goes_on(
    postgres: str, tmp_path: Path, writable: bool
) -> None:
    """In a fresh session, where a task that writes finds what it did."""
    runtimes = {"service:postgres": {"url": postgres, "templates": {"zoo": script(tmp_path)}}}
    name = "UPDATE animal SET name = 'Cat' WHERE id = 1" if writable else "SELECT 1"
    gold = task(name, writable=writable, grading={"mode": "state"} if writable else {})
    env = ToolEnv("sql", tasks=[gold], rewards="outcome", runtimes=runtimes)
    env.reset(seed=0)
    env.act([ToolCall("sql_query", {"sql": name})])
    server = Server(postgres)
    for _ in range(2):
        with server.admin() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE usename ~ '^toolenvs_[0-9a-f]{16}$'"
            )
        query = ToolCall("sql_query", {"sql": "SELECT name FROM animal WHERE id = 1"})
        observation, _, _, _, info = env.act([query])
        assert ("Cat" if writable else "Lion") in observation
        assert not info["failure"]
    env.close()
    server.close()


def test_closing_a_session_that_was_lost_is_quiet_and_removes_its_role(
    zoo: PostgresWorker,
) -> None:
    """The call that meets it is the machine's failure."""
    with session(zoo) as sandbox:
        rows(sandbox, "SELECT 1")
        rows(sandbox, "SELECT 1", writable=True)
        admin(
            zoo,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename ~ '^toolenvs_[0-9a-f]{16}$'",
        )
        with pytest.raises(RuntimeFailure) as failure:
            ask(sandbox, "SELECT 1")
        assert failure.value.kind == "service"
    assert admin(zoo, OWN_ROLES) == []


def test_a_failure_keeps_its_kind(postgres: str, tmp_path: Path) -> None:
    """A script that fails is the data's fault, a server that is gone is no service."""
    broken = script(tmp_path, "INSERT INTO nowhere VALUES (1);")
    worker = run(Postgres(url=postgres, templates={"zoo": broken}).start())
    with session(worker) as sandbox, pytest.raises(RuntimeFailure, match="nowhere") as failure:
        ask(sandbox, "SELECT 1")
    assert failure.value.kind == "data"
    server = worker._server
    server._admin.dispose()
    server._admin = engine_for(server._url.set(query={"host": str(tmp_path)}))
    broken.write_text(SCRIPT)
    with session(worker) as sandbox:
        with pytest.raises(RuntimeFailure, match="does not answer") as failure:
            ask(sandbox, "SELECT 1")
        assert failure.value.kind == "no_service"
        sandbox._rooms._roles.clear()
    run(worker.stop())


def test_a_role_is_not_left_where_its_copy_fails(zoo: PostgresWorker) -> None:
    """The error tells of the copy."""
    with pytest.raises(RuntimeFailure, match="nothing_original") as failure:
        zoo._server.open_role("nothing", writable=True)
    assert failure.value.kind == "service"
    assert zoo._server.settle()
    assert admin(zoo, OWN_ROLES) == []


def test_a_sweep_leaves_what_others_use(postgres: str, zoo: PostgresWorker) -> None:
    """A role of nobody of ours, and those of a client that lives but has not asked for a while."""
    admin(zoo, "CREATE ROLE toolenvs_0123456789abcdef")
    other = Server(postgres)
    mine = zoo._server.open_role("nothing", writable=False)
    try:
        zoo._server._admin.dispose()
        assert other.sweep() == 0
        assert set(admin(zoo, OWN_ROLES)) == {mine.role, "toolenvs_0123456789abcdef"}
    finally:
        admin(zoo, "DROP ROLE toolenvs_0123456789abcdef")
        zoo._server.close_role(mine)
        other.close()


def test_a_worker_that_stops_ends_its_sessions(postgres: str, tmp_path: Path) -> None:
    """Their roles are gone, and nothing of it connects again."""
    server = Server(postgres)
    with started(postgres, tmp_path) as worker:
        sandbox = run(worker.spawn(seed=0, files={}, data=("zoo",)))
        rows(sandbox, "SELECT 1")
        rows(sandbox, "SELECT 1", writable=True)
        run(worker.stop())
        with server.admin() as connection:
            assert connection.exec_driver_sql(OWN_ROLES).all() == []
        with pytest.raises(RuntimeFailure) as failure, worker._server.admin():
            pass
        assert failure.value.kind == "closed"
        for again in (
            lambda: ask(sandbox, "SELECT 1"),
            lambda: run(worker.spawn(seed=0, files={})),
        ):
            with pytest.raises(RuntimeFailure):
                again()
        run(sandbox.stop())
    server.close()


def test_a_fork_touches_nothing_of_its_parent(zoo: PostgresWorker) -> None:
    """Its calls fail, its end is silent, and the parent's session is the same as before."""
    with session(zoo) as sandbox:
        before = [
            rows(sandbox, "SELECT pg_backend_pid()", writable=writable)
            for writable in (False, True)
        ]
        child = os.fork()
        if child == 0:  # pragma: no cover - in another process
            os._exit(_as_a_child(zoo, sandbox))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        after = [
            rows(sandbox, "SELECT pg_backend_pid()", writable=writable)
            for writable in (False, True)
        ]
        assert before == after
        assert zoo.healthy()


def _as_a_child(worker: PostgresWorker, sandbox: PostgresSandbox) -> int:
    """All that a child could do to its parent; 0 if it was told that it may not."""
    told = 0
    for call in (
        lambda: run(sandbox.execute("{}")),
        lambda: run(worker.spawn(seed=0, files={})),
        lambda: worker._server.version(),
    ):
        try:
            call()
        except RuntimeFailure as failure:
            told += failure.kind == "forked"
    run(sandbox.stop())
    run(worker.stop())
    worker._server.close()
    assert sandbox._answerer is not None
    sandbox._answerer.close()  # what the end of the process may do
    worker._server._admin.dispose()
    gc.collect()
    return 0 if told == 3 else 1


def test_the_fingerprint_tells_what_rows_depend_on(postgres: str) -> None:
    """The server's version, how it sorts, and our reader of it."""
    runtime = Postgres(url=postgres)
    name, version, locale, reader = runtime.fingerprint().split(":")
    assert (name, locale.endswith(",UTF8")) == ("postgres", True)
    assert version[0].isdigit()
    assert len(reader) == 16
