"""A column that a submission writes out itself stands for none that the gold looks up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grading.databases import EMP, memory
from toolenvs.grading.sql import SqlPolicy, Trial, Verdict, grade_alternatives
from toolenvs.grading.sql_overlap import overlap
from toolenvs.grading.sql_written import bars_between

NAME = "SELECT name FROM emp WHERE id = 2"
COUNT = "SELECT count(*) FROM emp"
LABELS = "SELECT name, CASE WHEN pay > 15 THEN 'high' ELSE 'low' END FROM emp"
ANY = "SELECT CASE WHEN count(*) > 0 THEN 'yes' ELSE 'no' END FROM emp"
PINNED = "SELECT city, count(*) FROM emp WHERE city = 'Bern' GROUP BY city"


def judged(submitted: str, *golds: str, **policy: Any) -> Verdict:
    """The verdict on a query whose text is read, too."""
    run = memory(EMP)
    trials = {gold: [Trial(gold=run(gold), submitted=run(submitted))] for gold in golds}
    return grade_alternatives(trials, submitted_sql=submitted, policy=SqlPolicy(**policy))


@pytest.mark.parametrize(
    ("gold", "submitted", "rule"),
    [
        (NAME, "SELECT 'Bob'", "written_out"),
        (NAME, "SELECT coalesce('Bob', name) FROM emp LIMIT 1", "written_out"),
        (COUNT, "SELECT 3", "written_out"),
        (COUNT, "SELECT 4", "rows"),
        ("SELECT 'n', count(*) FROM emp", "SELECT char(110), count(*) FROM emp", "bag"),
        ("SELECT 'n', count(*) FROM emp", "SELECT count(*), 'n' FROM emp", "bag"),
        ("SELECT 'n', count(*) FROM emp", "SELECT 'n', 3 FROM emp LIMIT 1", "written_out"),
        ("SELECT *, 1 FROM emp", "SELECT *, 1 FROM emp", "bag"),
        (PINNED, "SELECT 'Bern', count(*) FROM emp WHERE city = 'Bern'", "bag"),
        (PINNED, "SELECT 'Bern', 2", "written_out"),
        (
            "SELECT name, id FROM emp WHERE id > 2",
            "SELECT name, 3 FROM emp WHERE id = 3",
            "written_out",
        ),
        ("SELECT name, id FROM emp WHERE id = 3", "SELECT name, 3 FROM emp WHERE id = 3", "bag"),
        ("SELECT name, id FROM emp WHERE id > 2", "SELECT 'Cid', 3", "written_out"),
        ("SELECT name, 2 * id FROM emp WHERE id > 2", "SELECT name, 6 FROM emp", "row_count"),
        (
            "SELECT coalesce(city, 'Total'), count(*) FROM emp GROUP BY city",
            "SELECT city, count(*) FROM emp GROUP BY city UNION ALL "
            "SELECT 'Total', count(*) FROM emp WHERE city IS NULL HAVING count(*) > 0",
            "bag",
        ),
        (
            "SELECT city, count(*) FROM emp GROUP BY city",
            "SELECT 'Bern', count(*) FROM emp WHERE city = 'Bern' UNION ALL "
            "SELECT 'Oslo', count(*) FROM emp WHERE city = 'Oslo'",
            "bag",
        ),
        (
            "SELECT EXISTS (SELECT 1 FROM emp WHERE pay > 15)",
            "SELECT coalesce((SELECT true FROM emp WHERE pay > 15 LIMIT 1), false)",
            "bag",
        ),
        (
            "SELECT name, city FROM emp WHERE city LIKE 'Bern'",
            "SELECT name, 'Bern' FROM emp WHERE city = 'Bern'",
            "bag",
        ),
        (
            "SELECT name, -id FROM emp WHERE -id = -3",
            "SELECT name, -3 FROM emp WHERE id = 3",
            "bag",
        ),
        (NAME, "SELECT name FROM emp WHERE 0 UNION SELECT 'Bob'", "written_out"),
        (ANY, "SELECT 'yes'", "written_out"),
        (ANY, "SELECT 'yes' FROM emp WHERE id = 1", "written_out"),
        (ANY, "SELECT 'yes' WHERE (SELECT count(*) FROM emp) > 0", "written_out"),
        (
            ANY,
            "SELECT 'yes' WHERE EXISTS (SELECT 1 FROM emp) UNION ALL "
            "SELECT 'no' WHERE NOT EXISTS (SELECT 1 FROM emp)",
            "bag",
        ),
        (
            NAME,
            "SELECT 'Bob' WHERE EXISTS (SELECT 1 FROM emp) UNION ALL "
            "SELECT 'Ann' WHERE NOT EXISTS (SELECT 1 FROM emp)",
            "written_out",
        ),
        (
            "SELECT DISTINCT city FROM emp WHERE city IN ('Bern', 'Oslo', 'Rome')",
            "WITH w(c) AS (VALUES ('Bern'), ('Oslo'), ('Rome')) "
            "SELECT c FROM w WHERE c IN (SELECT city FROM emp)",
            "bag",
        ),
        (
            LABELS,
            "SELECT name, 'high' FROM emp WHERE pay > 15 UNION ALL "
            "SELECT name, 'low' FROM emp WHERE pay <= 15",
            "bag",
        ),
    ],
)
def test_written_out_columns_stand_for_written_out_columns(
    gold: str, submitted: str, rule: str
) -> None:
    """Else only for values that the question had: those the gold pins, or chooses among."""
    verdict = judged(submitted, gold)
    assert (verdict.rule, verdict.correct) == (rule, rule == "bag")


@pytest.mark.parametrize(
    ("gold", "submitted", "correct"),
    [
        (NAME, "SELECT 'Bob', city FROM emp LIMIT 1", False),
        (NAME, "SELECT 'who', name FROM emp WHERE id = 2", True),
        (NAME, "SELECT 'a', 'b', 'c', 'd', name FROM emp WHERE id = 2", True),
        (NAME, "SELECT 'Bob' UNION ALL SELECT 'Cid'", False),
        (COUNT, "SELECT 2, 3, count(*) + 5 FROM emp", False),
        (COUNT, "SELECT 2, 3, count(*) FROM emp", True),
        (
            "SELECT name, pay FROM emp",
            "SELECT 'Ann', 10.0, (SELECT max(id) FROM emp) UNION ALL "
            "SELECT 'Bob', 20.0, (SELECT max(id) FROM emp) UNION ALL "
            "SELECT 'Cid', 20.0, (SELECT max(id) FROM emp)",
            False,
        ),
        (COUNT, "SELECT count(*), id, name, city FROM emp", False),
    ],
)
def test_with_further_columns_labels_do_no_harm_and_no_good(
    gold: str, submitted: str, *, correct: bool
) -> None:
    """They are passed over: neither paid for nor counted among the further columns."""
    assert judged(submitted, gold, columns="subset").correct is correct


def test_with_further_instances_only_what_reads_no_table_is_barred() -> None:
    """What is written out is wrong on some of them; a right answer is right on all."""
    assert bars_between(ANY, "SELECT 'yes' FROM emp", instances=1).written == ()
    assert bars_between(ANY, "SELECT 'yes'", instances=1).hopeless


def test_one_constant_gold_does_not_open_the_others() -> None:
    """A constant is right only where it is that gold's own value."""
    assert judged("SELECT 3", COUNT, "SELECT 99").correct is False
    assert judged("SELECT 99", COUNT, "SELECT 99").correct
    assert judged("SELECT 9 * 11", COUNT, "SELECT 99").correct
    assert judged("SELECT count(*) FROM emp", COUNT, "SELECT 99").correct


def test_a_gold_that_reads_the_clock_never_pays() -> None:
    """Nor does one that does not run: of several golds the others decide."""
    clock = "SELECT date('now') FROM emp LIMIT 1"
    assert not judged(clock, clock).gradable
    assert not judged(clock, NAME, clock).correct
    assert not judged("SELECT nme FROM emp", NAME, "SELECT nme FROM emp").correct


@pytest.mark.parametrize("sql", ["SELECT 1 +", "(" * 300, "SELECT name FROM emp WHERE !!!", ""])
def test_what_cannot_be_read_is_a_value(sql: str) -> None:
    """Never an exception; what reads no table by its words stands for nothing."""
    bars_between(sql, "SELECT 1")
    bars_between(NAME, sql)
    assert bars_between("SELECT name FROM emp WHERE !!!", "SELECT 1").hopeless
    assert bars_between(NAME, "SELECT name FROM emp WHERE !!!").written == ()


def test_a_written_out_column_is_paired_with_none() -> None:
    """A share of the gold's result is no share for what was guessed."""
    run = memory(EMP)
    guess = "SELECT 'Bob', max(id) FROM emp"
    assert overlap(run(NAME), run(guess), bars=bars_between(NAME, guess)) == 0.0
    assert overlap(run(NAME), run(guess)) == 0.5


def test_a_written_out_column_whose_place_is_unknown_gets_nothing() -> None:
    """Beside a ``*`` none can be barred, so the whole result is."""
    run = memory(EMP)
    guess = "SELECT e.*, 'Bob', e.* FROM emp AS e LIMIT 1"
    bars = bars_between(NAME, guess)
    assert bars.misplaced
    assert overlap(run(NAME), run(guess), bars=bars) == 0.0
