"""The defog source: templates for PostgreSQL, files for SQLite, and golds with alternatives."""

from __future__ import annotations

import csv
import pickle
from collections import Counter
from pathlib import Path

import pytest

from tests.sources.databases import rows_of
from toolenvs.errors import DataError, UsageError
from toolenvs.sources._databases import built_folder
from toolenvs.sources._frozen import for_sqlite, without_clock
from toolenvs.sources.defog import Defog
from toolenvs.types import Task

SCRIPT = """
CREATE TABLE public.sale (
  id SERIAL PRIMARY KEY, -- NOW() is no call here
  name VARCHAR(20) DEFAULT ''::text NOT NULL,
  amount NUMERIC(10, 2),
  sold DATE NOT NULL DEFAULT CURRENT_DATE,
  big BOOLEAN
);
INSERT INTO public.sale (id, name, amount, sold, big) VALUES
  (1, 'Ann''s NOW()', 10.5, '2023-01-31', true),
  (2, 'Bob', -2, CURRENT_DATE - INTERVAL '1 month', false),
  (3, 'Cid', NULL, DATE_TRUNC('week', CURRENT_DATE) - INTERVAL '1 week' + INTERVAL '1 day', true);
"""
HEAD = ["question", "query", "db_name", "query_category", "instructions"]


def questions(tmp_path: Path, *queries: str, name: str = "questions_postgres.csv") -> Path:
    """A file of questions beside the script of the database ``shop``."""
    (tmp_path / "shop.postgres.sql").write_text(SCRIPT)
    with (tmp_path / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        writer.writerows(["Who?", query, "shop", "group_by", "Use names."] for query in queries)
    return tmp_path / name


def test_postgres_gets_templates(tmp_path: Path) -> None:
    """The task names the template; the resource says which script makes it."""
    source = Defog(questions(tmp_path, "SELECT name FROM sale"))
    task = source[0]
    assert (task.id, task.answer) == ("defog-questions-postgres-0", "SELECT name FROM sale")
    assert task.prompt == (
        "Write one query for the PostgreSQL database 'shop'.\n\nWho?\n\nHint: Use names."
    )
    assert task.database is not None
    assert (task.database.engine, task.database.place) == ("postgres", "shop")
    templates = source.resources["service:postgres"]["templates"]
    assert list(templates) == ["shop"]
    script = Path(templates["shop"]).read_text()
    assert "CURRENT_DATE" not in script
    assert "DATE '2024-06-15' - INTERVAL '1 month'" in script
    assert "'Ann''s NOW()'" in script
    assert pickle.loads(pickle.dumps(source))[0] == task


def test_sqlite_gets_files_with_the_same_rows(tmp_path: Path) -> None:
    """Schemas are dropped, types kept, and constants written out."""
    source = Defog(questions(tmp_path, "SELECT name FROM sale", name="questions_sqlite.csv"))
    database = source[0].database
    assert database is not None
    assert list(source.resources) == ["sandbox:sql"]
    found = rows_of(built_folder().file(database.place), "SELECT * FROM sale")
    assert found == [
        (1, "Ann's NOW()", 10.5, "2023-01-31", 1),
        (2, "Bob", -2, "2024-05-15", 0),
        (3, "Cid", None, "2024-06-04", 1),
    ]


def test_choices_of_columns_become_alternatives(tmp_path: Path) -> None:
    """Braces and several golds: the first is the answer, any of the others is right, too."""
    query = "SELECT {id, name}, sum(amount) FROM sale GROUP BY {};SELECT name FROM sale;"
    for name in ("questions_postgres.csv", "questions_sqlite.csv"):
        task = Defog(questions(tmp_path, query, name=name))[0]
        assert task.answer == "SELECT id, name, sum(amount) FROM sale GROUP BY id, name"
        assert list(task.grading["alternatives"]) == [
            "SELECT id, sum(amount) FROM sale GROUP BY id",
            "SELECT name, sum(amount) FROM sale GROUP BY name",
            "SELECT name FROM sale",
        ]
        assert (task.grading["columns"], task.grading["order"]) == ("subset", "never")


def test_golds_that_ask_for_the_clock_are_rejected(tmp_path: Path) -> None:
    """On both engines; and a database without a script is named."""
    queries = ("SELECT name FROM sale", "SELECT name FROM sale WHERE sold < CURRENT_DATE")
    source = Defog(questions(tmp_path, *queries))
    assert len(source) == 1
    assert "questions_postgres.csv:3: the gold depends on the clock" in source.rejected[0]
    (tmp_path / "shop.postgres.sql").rename(tmp_path / "other.sql")
    with pytest.raises(DataError, match=r"there is no script .*shop\.postgres\.sql"):
        Defog(tmp_path / "questions_postgres.csv")


def test_wrong_options_and_braces_are_named(tmp_path: Path) -> None:
    """An engine that there is not; a brace that does not close."""
    path = questions(tmp_path, "SELECT {name FROM sale")
    with pytest.raises(UsageError, match="engine='mysql' must be"):
        Defog(f"{path},engine=mysql")
    with pytest.raises(DataError, match=r"questions_postgres\.csv:2: .*brace"):
        Defog(path)


def test_the_clock_stands_still_only_outside_quotes() -> None:
    """Texts, names and comments stay; months keep their last day."""
    script = """SELECT now(), 'now()', "now()", current_timestamp -- now()\n/* now() */"""
    noon = "TIMESTAMP '2024-06-15 12:00:00'"
    assert without_clock(script) == (
        f"""SELECT {noon}, 'now()', "now()", {noon} -- now()\n/* now() */"""
    )
    moved = "INSERT INTO t VALUES (DATE '2024-03-31' - INTERVAL '1 month')"
    assert for_sqlite(moved) == "INSERT INTO t VALUES ('2024-02-29');\n"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "usable", "rejected"),
    [
        ("questions_gen_postgres", 140, 5),
        ("questions_gen_sqlite", 140, 5),
        ("instruct_basic_postgres", 17, 3),
        ("instruct_advanced_sqlite", 20, 12),
    ],
)
def test_real_files_are_loaded(shared: Path, name: str, usable: int, rejected: int) -> None:
    """What is left out depends on the clock, and nothing else is."""
    source = Defog(shared / "data" / "sql" / "defog" / f"{name}.csv")
    assert (len(source), len(source.rejected)) == (usable, rejected)
    reasons = Counter(text.partition(": ")[2].partition(":")[0] for text in source.rejected)
    assert reasons == {"the gold depends on the clock or on chance": rejected}
    tasks: list[Task] = [source[i] for i in range(len(source))]
    assert len({task.id for task in tasks}) == usable
    if "postgres" in name:
        templates = source.resources["service:postgres"]["templates"]
        assert {task.database.place for task in tasks if task.database} <= set(templates)
