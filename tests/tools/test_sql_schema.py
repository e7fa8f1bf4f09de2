"""What an agent reads of a database's schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.sql_sandbox import Episode
from toolenvs.errors import UsageError
from toolenvs.tools import _sql
from toolenvs.tools.sql_schema import SqlSchema
from toolenvs.types import Database, Task

SHOP = """
    CREATE TABLE "Order"(id INTEGER PRIMARY KEY, "the day" DATE NOT NULL, "select" TEXT);
    CREATE TABLE item(place INT, "order" REFERENCES "Order"(id), PRIMARY KEY (place, "order"));
    CREATE VIEW late AS SELECT id FROM "Order";
    CREATE VIEW broken AS SELECT * FROM gone;
    INSERT INTO "Order" VALUES (1, '2024-01-01', NULL), (2, 'two' || char(10) || 'lines', 'x');
"""


def test_everything_that_a_query_needs_is_shown(tmp_path: Path) -> None:
    """Names quoted where they must be, types, keys, sizes and rows."""
    result = Episode(tmp_path, SHOP).call(SqlSchema())
    assert result.text == "\n".join(
        (
            '"Order" (table, 2 rows)',
            "  id INTEGER primary key",
            '  "the day" DATE not null',
            '  "select" TEXT',
            "  first 2 rows:",
            "    1 | 2024-01-01 | NULL",
            "    2 | two\\nlines | x",
            "",
            "item (table, 0 rows)",
            "  place INT primary key",
            '  "order" primary key',
            '  foreign key ("order") -> "Order" (id)',
            "",
            "late (view)",
            "  id INTEGER",
            "",
            "broken (view)",
            "  it cannot be read: no such table: main.gone",
        )
    )
    assert result.data == {"tables": ["Order", "item", "late", "broken"]}
    assert not result.truncated


def test_some_tables_can_be_asked_for(tmp_path: Path) -> None:
    """And no rows, where none are wanted."""
    result = Episode(tmp_path, SHOP).call(SqlSchema(sample_rows=0), tables=["LATE", "item"])
    assert result.data == {"tables": ["late", "item"]}
    assert "first" not in result.text


def test_an_unknown_table_is_an_error_with_the_nearest(episode: Episode) -> None:
    """The agent's fault."""
    result = episode.call(SqlSchema(), tables=["emps"])
    assert result.error is not None
    assert result.error.kind == "bad_arguments"
    assert result.text == "There is no table 'emps'. Did you mean emp?"


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
@given(limit=st.integers(100, 2000))
def test_the_text_keeps_within_its_limit(episode: Episode, limit: int) -> None:
    """For all limits, with a mark where it is cut."""
    result = episode.call(SqlSchema(limit_chars=limit))
    assert len(result.text) <= limit
    assert result.truncated == ("left out" in result.text)


def test_a_large_schema_names_what_is_not_shown(tmp_path: Path) -> None:
    """Beyond what is asked of the database, tables are named at the end."""
    wide = ", ".join(f"column_number_{number} TEXT" for number in range(1000))
    setup = "".join(f"CREATE TABLE t{number}({wide});" for number in range(12))
    result = Episode(tmp_path, setup).call(SqlSchema(limit_chars=2000))
    assert result.truncated
    assert result.text.rstrip().endswith("t11.")
    assert "Not shown: " in result.text


def test_an_empty_database_says_so(tmp_path: Path) -> None:
    """Rather than nothing."""
    assert Episode(tmp_path, "").call(SqlSchema()).text == "The database has no tables."


def test_changes_of_the_episode_are_seen(tmp_path: Path) -> None:
    """The schema is that of the copy which the statements changed."""
    from toolenvs.tools.sql_query import SqlQuery

    episode = Episode(tmp_path, writable=True)
    episode.call(SqlQuery(), sql="CREATE TABLE more(a)")
    assert episode.call(SqlSchema()).data == {"tables": ["emp", "more"]}


@pytest.mark.parametrize(
    ("name", "sqlite", "postgres"),
    [
        ("emp", "emp", "emp"),
        ("Emp_1", "Emp_1", '"Emp_1"'),
        ("1a", '"1a"', '"1a"'),
        ("the day", '"the day"', '"the day"'),
        ("order", '"order"', '"order"'),
        ('a"b', '"a""b"', '"a""b"'),
        ("ä", '"ä"', '"ä"'),
        ("a\nb", '"a\\nb"', '"a\\nb"'),
        ("", '""', '""'),
    ],
)
def test_names_are_written_as_a_statement_must(name: str, sqlite: str, postgres: str) -> None:
    """PostgreSQL folds what stands without quotes to lower case."""
    assert _sql.name_text(name, "sqlite") == sqlite
    assert _sql.name_text(name, "postgres") == postgres


def test_it_runs_where_the_database_is() -> None:
    """And leaves nothing behind, also where changes are allowed."""
    task = Task(id="t", prompt="p", database=Database(name="d", engine="postgres", writable=True))
    bound = SqlSchema().bound(task)
    assert (bound.needs, bound.kind) == ("service:postgres", "reads")


@pytest.mark.parametrize("options", [{"sample_rows": -1}, {"limit_chars": 1}, {"timeout_s": 0}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    """When the tool is made, with the values."""
    with pytest.raises(UsageError, match=next(iter(options))):
        SqlSchema(**options)
