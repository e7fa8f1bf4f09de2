"""What an agent reads of a statement's result, and what rewards see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.sql_sandbox import EndedSandbox, Episode
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.tools import _sql
from toolenvs.tools.sql_query import SqlQuery
from toolenvs.types import Database, ExecResult, ExecStatus, Task


def test_rows_are_shown_with_names_and_null(episode: Episode) -> None:
    """Names, rows in order, NULL to be seen, and how many there are."""
    result = episode.call(SqlQuery(), sql='SELECT name, "the city", pay FROM emp ORDER BY id')
    assert result.text == (
        "name | the city | pay\nAnn | Oslo | 10.0\nBob | Bern | 20.0\nCid | Bern | NULL\n(3 rows)"
    )
    assert result.error is None
    assert not result.truncated


def test_rewards_see_the_rows_themselves(episode: Episode) -> None:
    """Columns, rows, count and cut, in the JSON form of results."""
    result = episode.call(SqlQuery(), sql="SELECT id, id, x'00' FROM emp WHERE id < 3")
    assert result.data == {
        "columns": ["id", "id", "x'00'"],
        "rows": [[1, 1, {"bytes": "00"}], [2, 2, {"bytes": "00"}]],
        "row_count": 2,
        "cut": False,
    }


@pytest.mark.parametrize(
    ("sql", "last"),
    [
        ("SELECT 1 WHERE 0", "1\n(0 rows)"),
        ("SELECT 1", "1\n1\n(1 row)"),
        ("SELECT NULL AS x, 'NULL' AS y", "x | y\nNULL | NULL\n(1 row)"),
        ("SELECT '' AS x", "x\n\n(1 row)"),
    ],
)
def test_few_rows_are_counted(episode: Episode, sql: str, last: str) -> None:
    """No row is no error, and one is one."""
    assert episode.call(SqlQuery(), sql=sql).text == last


def numbers(count: int) -> str:
    """A query that returns so many rows."""
    rows = f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r LIMIT {count})"
    return f"{rows} SELECT n FROM r"


def test_a_long_result_is_cut_with_a_mark(episode: Episode) -> None:
    """The first rows are whole, and the text says how many there are."""
    result = episode.call(SqlQuery(limit_rows=3), sql=numbers(10))
    assert result.text == "n\n1\n2\n3\n(the first 3 of 10 rows)"
    assert result.truncated
    assert result.data["row_count"] == 10


def test_a_result_larger_than_what_is_kept_says_that_there_is_more(episode: Episode) -> None:
    """What was not fetched is not counted."""
    result = episode.call(SqlQuery(limit_rows=2, keep_rows=5), sql=numbers(10))
    assert result.text == "n\n1\n2\n(the first 2 rows; there are more than 5)"
    assert (result.data["row_count"], result.data["cut"], result.truncated) == (5, True, True)


@given(
    rows=st.lists(st.tuples(st.text(max_size=300), st.none() | st.integers()), max_size=30),
    limit=st.integers(0, 2000),
)
def test_rows_are_shown_whole_or_not_at_all(rows: list[tuple[str, int | None]], limit: int) -> None:
    """For all rows and limits: a line each, as many as fit, none beyond the limit."""
    text, shown = _sql.lines_text(["a", "b"], rows, limit_chars=limit)
    assert len(text) <= limit
    if limit >= 5:
        lines = text.split("\n")
        assert lines == ["a | b", *map(_sql.row_text, rows[:shown])]
        assert shown == len(rows) or len(text) + 1 + len(_sql.row_text(rows[shown])) > limit


@given(sql_text=st.text(max_size=300))
def test_no_value_makes_a_line_of_its_own(sql_text: str) -> None:
    """For all texts: one line without control characters."""
    shown = _sql.cell_text(sql_text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F for char in shown)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31mred\0", "\\u001b[31mred\\u0000"),
        ("\x85\u2028", "\\u0085\\u2028"),
        ("x" * 201, "x" * 200 + "... (201 characters)"),
        ({"bytes": "00ff"}, "x'00ff'"),
        ({"bytes": "ab" * 1000}, f"x'{'ab' * 16}'... (1000 bytes)"),
        ({"float": "inf"}, "inf"),
        ({"decimal": "1.20"}, "1.20"),
        ({"date": "2024-02-29"}, "2024-02-29"),
        ({"interval": 90}, "90"),
        ({"json": {"a": "ä\n"}}, '{"a": "ä\\n"}'),
        ({"array": [1, None]}, "[1, null]"),
        (True, "true"),
        (2**63 - 1, "9223372036854775807"),
        (1.0, "1.0"),
    ],
)
def test_each_value_is_one_cell(value: Any, text: str) -> None:
    """Line ends, tabs and escapes are written out; long values are cut with their size."""
    assert _sql.cell_text(value) == text


def test_bytes_that_are_no_utf8_are_told(episode: Episode) -> None:
    """The agent must not take the stand-in for what is there."""
    result = episode.call(SqlQuery(), sql="SELECT CAST(x'4dff' AS TEXT) AS x")
    assert (
        result.text
        == "x\nM\ufffd\n(1 row)\n(in 1 value, \ufffd stands for bytes that are no UTF-8)"
    )


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        ("SELECT salery FROM emp", "raised", "no such column: salery"),
        ("SELECT * FROM emps", "raised", "Did you mean emp?"),
        ('SELECT "nmae" FROM emp', "raised", "Did you mean emp.name?"),
        ("DELETE FROM emp", "refused", "read-only"),
        ("ATTACH 'x' AS y", "refused", "ATTACH"),
        ("SELECT 1; SELECT 2", "bad_arguments", "One statement per call"),
        ("", "bad_arguments", "empty"),
        ("SELECT zeroblob(1000000000)", "memory", "larger than it may be"),
        ("SELECT '\ud800'", "bad_arguments", "no Unicode"),
        ("SELECT 'a\0'", "bad_arguments", "NUL"),
        ("SHOW TABLES", "raised", "use sql_schema"),
        ("DESCRIBE emp", "raised", "use sql_schema"),
        (".tables", "raised", "use sql_schema"),
        ("\\d emp", "raised", "use sql_schema"),
    ],
)
def test_what_goes_wrong_is_a_typed_error(
    episode: Episode, sql: str, kind: str, words: str
) -> None:
    """Short, of one line, useful, and without a path of the machine."""
    result = episode.call(SqlQuery(), sql=sql)
    assert result.error is not None
    assert result.error.kind == kind
    assert words in result.error.message
    assert result.text == result.error.message
    assert len(result.text) < 200
    assert "/" not in result.text
    assert "rows" not in result.data


def test_S09_a_statement_that_never_ends_is_a_timeout(episode: Episode) -> None:
    """The limit is the statement's own; the sandbox gives a little more."""
    sql = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT max(n) FROM r"
    result = episode.call(SqlQuery(timeout_s=0.1), sql=sql)
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert episode.sandbox.timeouts == [0.1 + _sql.SPARE_S]


@pytest.mark.parametrize(
    ("status", "kind"),
    [("timeout", "timeout"), ("memory", "memory"), ("killed", "memory"), ("output", "output")],
)
def test_a_sandbox_that_ends_the_call_is_the_statements_fault(
    episode: Episode, status: ExecStatus, kind: str
) -> None:
    """Where the statement's own limits were not enough."""
    ended = EndedSandbox(ExecResult(status=status, session_lost=True))
    result = episode.call(SqlQuery(), sandbox=ended, sql="SELECT 1")
    assert result.error is not None
    assert result.error.kind == kind
    assert result.data == {"session_lost": True}
    assert (result.text, result.note) == (result.error.message, "")


def test_the_agent_is_told_that_its_changes_are_gone(tmp_path: Path) -> None:
    """Where the sandbox ended with the call, and the database may have been changed before."""
    episode = Episode(tmp_path, writable=True)
    ended = EndedSandbox(ExecResult(status="memory", session_lost=True))
    result = episode.call(SqlQuery(), sandbox=ended, sql="SELECT 1")
    assert result.note == "The database is again as it was given."
    assert result.text.endswith(result.note)
    assert episode.call(SqlQuery(), sql="SELECT x").note == ""


@pytest.mark.parametrize(
    "result",
    [
        ExecResult(status="raised", stderr="ModuleNotFoundError: toolenvs_database"),
        ExecResult(status="ok", stdout="no answer"),
        ExecResult(status="ok", stdout="[]"),
        ExecResult(status="ok", stdout='{"error": {"kind": "unavailable", "message": "gone"}}'),
    ],
)
def test_a_machine_that_fails_is_no_fault_of_the_statement(
    episode: Episode, result: ExecResult
) -> None:
    """It is never shown to the agent."""
    with pytest.raises(RuntimeFailure):
        episode.call(SqlQuery(), sandbox=EndedSandbox(result), sql="SELECT 1")


def test_a_task_without_a_database_is_a_fault_of_the_task(episode: Episode) -> None:
    """The message says so."""
    episode.task = Task(id="t", prompt="p")
    with pytest.raises(RuntimeFailure, match="no database"):
        episode.call(SqlQuery(), sql="SELECT 1")


def test_a_task_that_asks_for_changes_has_a_copy_of_its_own(tmp_path: Path) -> None:
    """Later calls find what earlier ones did; the file is as it was."""
    episode = Episode(tmp_path, writable=True)
    before = (tmp_path / "0.sqlite").read_bytes()
    assert episode.call(SqlQuery(), sql="UPDATE emp SET pay = 1").text == "Done; 3 rows changed."
    one = episode.call(SqlQuery(), sql="DELETE FROM emp WHERE id = 1")
    assert one.text == "Done; 1 row changed."
    assert one.data == {"columns": [], "rows": [], "row_count": 1, "cut": False}
    assert episode.call(SqlQuery(), sql="SELECT sum(pay) AS s FROM emp").text == "s\n2.0\n(1 row)"
    assert (tmp_path / "0.sqlite").read_bytes() == before


def test_the_tool_is_what_the_task_needs() -> None:
    """Where it runs and what it leaves behind; the tool itself stays as it is."""
    tool = SqlQuery(limit_rows=7)

    def bound(**fields: Any) -> SqlQuery:
        return tool.bound(Task(id="t", prompt="p", database=Database(name="d", **fields)))

    assert (bound().needs, bound().kind) == ("sandbox:sql", "reads")
    assert (bound(writable=True).needs, bound(writable=True).kind) == ("sandbox:sql", "stateful")
    assert bound(engine="postgres").needs == "service:postgres"
    assert bound(writable=True).limit_rows == 7
    assert (tool.needs, tool.kind) == ("sandbox:sql", "reads")


def test_a_change_that_is_stopped_at_its_limit_is_undone_and_says_so(tmp_path: Path) -> None:
    """The session goes on; where the sandbox ended the call, nobody knows what it left."""
    episode = Episode(tmp_path, writable=True)
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n FROM r"
    sql = f"INSERT INTO emp (id) SELECT 100 + n FROM ({endless})"
    stopped = episode.call(SqlQuery(timeout_s=0.1), sql=sql)
    assert stopped.error is not None
    assert (stopped.error.kind, stopped.data) == ("timeout", {"state_kept": True})
    assert episode.call(SqlQuery(), sql="SELECT count(*) AS n FROM emp").text == "n\n3\n(1 row)"
    ended = EndedSandbox(ExecResult(status="timeout"))
    assert episode.call(SqlQuery(), sandbox=ended, sql="SELECT 1").data == {}


def test_nothing_of_the_statement_becomes_a_program(episode: Episode) -> None:
    """Quotes, backslashes and line ends of the agent stay inside one text."""
    sql = "SELECT '\"\"\"'')\nimport os #\\' AS x"
    result = episode.call(SqlQuery(), sql=sql)
    assert result.error is None
    assert len(episode.sandbox.codes[0].splitlines()) == 2


@pytest.mark.parametrize(
    "options",
    [{"limit_rows": 0}, {"limit_rows": 10, "keep_rows": 5}, {"limit_chars": 9}, {"timeout_s": 0}],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    """When the tool is made, with the values."""
    with pytest.raises(UsageError, match=next(iter(options))):
        SqlQuery(**options)


def test_a_row_that_is_too_large_to_be_shown_is_told(episode: Episode) -> None:
    """Not as none of some."""
    result = episode.call(SqlQuery(), sql="SELECT hex(zeroblob(400000)) AS x FROM emp")
    assert result.text.splitlines()[-1] == "(no row is shown: the first one is larger than 512 KB)"
