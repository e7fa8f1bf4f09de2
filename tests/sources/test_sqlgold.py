"""Golds at load: read as strictly as an agent's queries, run, and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.databases import make_database, rows_of
from toolenvs.sources._sqlgold import examine, with_plain_texts
from toolenvs.sources._sqlgold import rows_of as strict_rows_of

UNCHANGED = [
    'SELECT "name" FROM emp',
    'SELECT e."name" FROM emp AS e WHERE e."city" = \'Bern\'',
    'SELECT name AS "full name" FROM emp ORDER BY "full name"',
    "SELECT name FROM emp WHERE city = 'say \"Bern\"'",
    'SELECT name FROM emp -- WHERE city = "Bern"',
    "SELECT name FROM emp WHERE city = 'Bern'",
]
REWRITTEN = {
    'SELECT name FROM emp WHERE city = "Bern"': "SELECT name FROM emp WHERE city = 'Bern'",
    'SELECT "name", "O\'Hara", """x" FROM emp': "SELECT \"name\", 'O''Hara', '\"x' FROM emp",
    'SELECT "name" FROM emp WHERE "city" = "name" OR city = "Oslo"': (
        'SELECT "name" FROM emp WHERE "city" = "name" OR city = \'Oslo\''
    ),
    'SELECT count(*) FROM emp WHERE name LIKE "%b%"': (
        "SELECT count(*) FROM emp WHERE name LIKE '%b%'"
    ),
    'UPDATE emp SET city = "Rome" WHERE "id" = 1': "UPDATE emp SET city = 'Rome' WHERE \"id\" = 1",
}


@pytest.fixture
def emp(tmp_path: Path) -> Path:
    """The database ``emp``."""
    return make_database(tmp_path / "emp.sqlite")


@pytest.mark.parametrize("sql", UNCHANGED)
def test_names_in_double_quotes_stay(emp: Path, sql: str) -> None:
    """Columns, new names, quoted text and comments are not touched."""
    assert with_plain_texts(sql, emp) == sql


@pytest.mark.parametrize("sql", REWRITTEN)
def test_s11_texts_in_double_quotes_are_written_as_texts(emp: Path, sql: str) -> None:
    """S11: where no column has the name, SQLite reads a text; so it is written as one."""
    strict = with_plain_texts(sql, emp)
    assert strict == REWRITTEN[sql]
    if sql.startswith("SELECT"):
        assert rows_of(emp, strict) == rows_of(emp, sql)
        assert [tuple(row) for row in strict_rows_of(strict, emp)["rows"]] == rows_of(emp, sql)


def test_s11_a_gold_is_run_strictly(emp: Path) -> None:
    """S11: a misspelt name that is left in double quotes is an error."""
    assert "no such column" in strict_rows_of('SELECT "salery" FROM emp', emp)["error"]["message"]


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("SELECT name FROM emp WHERE pay > 999", "the gold returns no rows"),  # S04
        ("SELECT nam FROM emp", "the gold does not run: no such column"),
        ("SELECT name FROM emp; SELECT 1", "the gold does not run"),
        ("", "the gold does not run"),
        ("SELECT name FROM emp WHERE pay = (SELECT pay FROM emp ORDER BY city LIMIT 1)", ""),
        ("SELECT boss FROM emp WHERE name = (SELECT name FROM emp ORDER BY city LIMIT 1)", ""),
        ("SELECT id FROM emp WHERE name = (SELECT name FROM emp ORDER BY city LIMIT 1)", "tie"),
        ("SELECT name FROM emp", ""),
        ("DROP TABLE emp", "the gold does not run"),
    ],
)
def test_s04_s06_golds_that_decide_nothing_are_found(emp: Path, gold: str, why: str) -> None:
    """S04, S06: no rows, an error, or a tie further in: the task must never pay."""
    before = emp.read_bytes()
    found = examine(gold, emp, grading={}).unusable
    assert why in found if why else found == ""
    assert emp.read_bytes() == before


def test_s06_a_tie_at_the_outer_limit_is_noted(emp: Path) -> None:
    """S06: all admissible results are known, so the task is fit, and a reader is told."""
    found = examine("SELECT name FROM emp ORDER BY pay DESC LIMIT 1", emp, grading={})
    assert found.unusable == ""
    assert found.notes == ("2 rows tie at the LIMIT for 1; any of them is right",)


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("UPDATE emp SET pay = 1 WHERE id = 1", ""),
        ("DELETE FROM emp WHERE id = 1; INSERT INTO emp (id) VALUES (9)", ""),
        ("UPDATE emp SET pay = 10.0 WHERE id = 1", "the gold changes nothing"),
        ("DELETE FROM emp WHERE id = 99", "the gold changes nothing"),
        ("SELECT 1", "the gold changes nothing"),
        ("DELETE FROM nobody", "the gold does not run: no such table: nobody"),
    ],
)
def test_a_gold_that_should_change_something_does(emp: Path, gold: str, why: str) -> None:
    """It is run on a copy: the file stays as it is."""
    before = emp.read_bytes()
    assert examine(gold, emp, grading={"mode": "state"}).unusable.startswith(why)
    assert bool(examine(gold, emp, grading={"mode": "state"}).unusable) == bool(why)
    assert emp.read_bytes() == before
