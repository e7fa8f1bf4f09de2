"""Requests and answers: JSON whatever comes, and the state that statements leave."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.database.ground import Ground
from toolenvs import database
from toolenvs.database import Answerer, Session, SqliteEngine, Target

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.fixed_dictionaries(
    {"op": st.sampled_from(["query", "schema", "state", "x"]) | JSON},
    optional={
        "database": st.fixed_dictionaries(
            {},
            optional={
                "place": st.sampled_from(["emp.sqlite", "x"]) | JSON,
                "engine": st.sampled_from(["sqlite", "postgres"]) | JSON,
                "writable": st.booleans() | JSON,
            },
        )
        | JSON,
        "sql": st.text() | JSON,
        "statements": st.lists(st.text(), max_size=2) | JSON,
        "tables": st.lists(st.text(), max_size=2) | JSON,
        **dict.fromkeys(("max_rows", "max_bytes", "timeout_s", "sample_rows"), JSON),
    },
)


@given(FIELDS.map(json.dumps) | st.text() | JSON.map(json.dumps))
def test_whatever_is_asked_the_answer_is_an_object(request: str) -> None:
    """For all texts: JSON, with a known kind of error or none, and nothing is raised."""
    answer = json.loads(Answerer({"sqlite": SqliteEngine("/nowhere")}).answer(request))
    kinds = {"raised", "refused", "timeout", "memory", "bad_arguments", "unavailable"}
    assert answer["error"]["kind"] in kinds


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": 1},
        {"sql": "SELECT 1", "max_rows": -1},
        {"sql": "SELECT 1", "max_rows": True},
        {"sql": "SELECT 1", "max_rows": 1.5},
        {"sql": "SELECT 1", "timeout_s": "1"},
        {"sql": "SELECT 1", "timeout_s": float("nan")},
        {"sql": "SELECT 1", "database": {"engine": "oracle"}},
        {"sql": "SELECT 1", "database": {"writable": "yes"}},
        {"op": "schema", "tables": "emp"},
        {"op": "state", "statements": [1]},
        {"op": "drop"},
    ],
)
def test_a_request_that_is_none_is_the_callers_fault(emp: Ground, fields: dict[str, Any]) -> None:
    """Never the agent's: it wrote none of these fields."""
    assert emp.ask(fields.pop("op", "query"), **fields)["error"]["kind"] == "unavailable"


def test_one_place_is_opened_once(emp: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dear is done at the first request; a private copy must be kept anyway."""
    opened = []
    really_open = SqliteEngine.open

    def count(self: SqliteEngine, target: Target) -> Session:
        opened.append(target)
        return really_open(self, target)

    monkeypatch.setattr(SqliteEngine, "open", count)
    for _ in range(3):
        emp.rows("SELECT 1")
        emp.rows("SELECT 1", writable=True)
    assert len(opened) == 2


def test_many_places_do_not_pile_up(emp: Ground, tmp_path: Path) -> None:
    """Sessions that only read are ended when there are many; a private copy never is."""
    emp.ask(sql="DELETE FROM emp", writable=True)
    for number in range(40):
        copy = tmp_path / f"{number}.sqlite"
        copy.write_bytes(emp.path.read_bytes())
        assert emp.rows("SELECT count(*) FROM emp", database={"place": copy.name}) == [[3]]
    assert _open_files(tmp_path) <= 16
    assert emp.rows("SELECT count(*) FROM emp", writable=True) == [[0]]
    for number in range(40):
        (tmp_path / f"{number}.sqlite").unlink()


def _open_files(folder: Path) -> int:
    """How many files of a folder this process holds open."""
    links = [str(fd.resolve()) for fd in Path("/proc/self/fd").iterdir()]
    return sum(link.startswith(str(folder)) for link in links)


@pytest.mark.parametrize("name", ["x" * 50_000, '"' + "é" * 50_000 + '"'])
def test_a_message_is_short_whatever_the_statement_is(emp: Ground, name: str) -> None:
    """An error that repeats a name of the statement is cut with a mark."""
    for sql in (f"SELECT {name} FROM emp", f"SELECT * FROM {name}", f"SELECT 1 1 {name}"):
        assert len(emp.fault(sql)[1]) <= 301


# -- the state after statements ---------------------------------


def test_the_state_is_what_statements_leave_in_a_fresh_copy(emp: Ground) -> None:
    """All tables with their rows; the file and the episode's own copy are not touched."""
    emp.ask(sql="DELETE FROM emp", writable=True)
    statements = [
        "UPDATE emp SET pay = 1 WHERE id > 1",
        "CREATE TABLE t(a)",
        "INSERT INTO t VALUES (7)",
    ]
    state = emp.ask("state", statements=statements)
    assert (state["ran"], state["changed"]) == (3, [2, 0, 1])
    one, two = state["tables"]
    assert (one["name"], [row[3] for row in one["rows"]]) == ("emp", [10.0, 1.0, 1.0])
    assert (two["name"], two["rows"]) == ("t", [[7]])
    assert "stopped" not in state
    assert emp.rows("SELECT count(*) FROM emp", writable=True) == [[0]]


def test_statements_end_at_the_first_error_and_the_state_is_told(emp: Ground) -> None:
    """Which one it was can be seen from ``ran``."""
    state = emp.ask("state", statements=["DELETE FROM emp WHERE id=1", "DELET", "DROP TABLE emp"])
    assert (state["ran"], state["changed"]) == (1, [1])
    assert state["stopped"]["kind"] == "raised"
    assert state["tables"][0]["row_count"] == 2


def test_what_was_not_committed_does_not_count(emp: Ground) -> None:
    """A transaction that is left open is undone."""
    state = emp.ask("state", statements=["BEGIN", "DELETE FROM emp"])
    assert state["tables"][0]["row_count"] == 3
    state = emp.ask("state", statements=["BEGIN", "DELETE FROM emp", "COMMIT"])
    assert state["tables"][0]["row_count"] == 0


def test_a_state_keeps_within_its_limits(emp: Ground) -> None:
    """Rows beyond the limit are marked; tables that are too large are an error."""
    state = emp.ask("state", statements=[], max_rows=2)
    assert (state["tables"][0]["row_count"], state["tables"][0]["cut"]) == (2, True)
    assert emp.ask("state", statements=[], max_bytes=5)["error"]["kind"] == "memory"


# -- in a sandbox ---------------------------------


def test_the_folder_works_under_another_name_without_the_package(tmp_path: Path) -> None:
    """As in the image: alone but for SQLAlchemy, as ``toolenvs_database``; files are in /data."""
    (tmp_path / "toolenvs_database").symlink_to(Path(str(database.__file__)).parent)
    program = (
        "import sys, toolenvs_database\n"
        'print(toolenvs_database.answer(\'{"op": "query", "database": {"place": "x"}, '
        '"sql": "SELECT 1"}\'))\n'
        "print(sorted(name for name in sys.modules if name.split('.')[0] in "
        "('toolenvs', 'msgspec', 'sqlglot', 'psycopg')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    answer, modules = done.stdout.splitlines()
    error = json.loads(answer)["error"]
    assert error == {
        "kind": "unavailable",
        "message": "the database 'x': unable to open database file.",
    }
    assert modules == "[]"


def test_each_thread_has_sessions_of_its_own() -> None:
    """The one entry may be called from any thread."""
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(database.answer("{}"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all("error" in json.loads(answer) for answer in answers)
