"""What is submitted, and the private calls that judge it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.sql_sandbox import EMP, Episode
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.tools.sql_after import SqlAfter
from toolenvs.tools.sql_query import SqlQuery
from toolenvs.tools.sql_rows import SqlRows
from toolenvs.tools.submit_sql import SubmitSql
from toolenvs.types import Database, Task

OTHER = EMP.replace("Ann", "Zoe")


def test_a_submission_is_its_statement_and_ends_the_episode(episode: Episode) -> None:
    """Nothing is run."""
    result = episode.call(SubmitSql(), sql="SELECT 1")
    assert result.terminal
    assert result.data == {"sql": "SELECT 1", "answer": "SELECT 1"}
    assert episode.sandbox.codes == []
    assert (SubmitSql.needs, SubmitSql.instant) == ("", True)


def test_rows_are_read_on_each_instance(tmp_path: Path) -> None:
    """0 is the task's database, 1 the first of its instances; there are no others."""
    episode = Episode(tmp_path, instances=(OTHER,))
    sql = "SELECT name FROM emp WHERE id = 1"
    assert episode.call(SqlRows(), sql=sql).data["rows"] == [["Ann"]]
    assert episode.call(SqlRows(), sql=sql, instance=1).data["rows"] == [["Zoe"]]
    for instance in (2, -1):
        with pytest.raises(RuntimeFailure, match=f"no database number {instance}"):
            episode.call(SqlRows(), sql=sql, instance=instance)


def test_rows_for_rewards_are_those_of_the_database_as_it_was_given(tmp_path: Path) -> None:
    """Whatever the episode has done to its copy; and nothing is changed for a reward."""
    episode = Episode(tmp_path, writable=True)
    episode.call(SqlQuery(), sql="DELETE FROM emp")
    assert episode.call(SqlRows(), sql="SELECT count(*) FROM emp").data["rows"] == [[3]]
    refused = episode.call(SqlRows(), sql="DELETE FROM emp")
    assert refused.error is not None
    assert refused.error.kind == "refused"


def test_more_rows_than_are_compared_are_marked(episode: Episode) -> None:
    """So that a result is never taken for another's beginning."""
    data = episode.call(SqlRows(), sql="SELECT id FROM emp", max_rows=2).data
    assert data == {"columns": ["id"], "rows": [[1], [2]], "row_count": 2, "cut": True}


def test_a_submission_that_fails_is_a_typed_error(episode: Episode) -> None:
    """It is evidence, too."""
    result = episode.call(SqlRows(), sql="SELECT nmae FROM emp")
    assert result.error is not None
    assert result.error.kind == "raised"


def test_the_state_is_that_of_a_fresh_copy(tmp_path: Path) -> None:
    """Each call begins with the database as it was given."""
    episode = Episode(tmp_path, writable=True)
    episode.call(SqlQuery(), sql="DELETE FROM emp")
    for _ in range(2):
        data = episode.call(SqlAfter(), statements=["DELETE FROM emp WHERE id = 1"]).data
        (table,) = data["tables"]
        assert (table["name"], [row[0] for row in table["rows"]]) == ("emp", [2, 3])
        assert data["changed"] == [1]


def test_statements_that_fail_have_no_state(episode: Episode) -> None:
    """The first error is the result."""
    result = episode.call(SqlAfter(), statements=["DELETE FROM emp", "DELET"])
    assert result.error is not None
    assert result.error.kind == "raised"
    assert "syntax error" in result.text


def test_private_calls_run_where_the_database_is() -> None:
    """On both engines."""
    task = Task(id="t", prompt="p", database=Database(name="d", engine="postgres"))
    assert SqlRows().bound(task).needs == SqlAfter().bound(task).needs == "service:postgres"
    assert (SqlRows().needs, SqlRows().kind) == ("sandbox:sql", "reads")
    assert (SqlAfter().needs, SqlAfter().kind) == ("sandbox:sql", "pure")


def test_options_out_of_range_are_refused() -> None:
    """When the tool is made."""
    for tool in (SqlRows, SqlAfter):
        with pytest.raises(UsageError, match="timeout_s=0"):
            tool(timeout_s=0)
