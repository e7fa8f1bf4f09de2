"""Gold queries of defog's form, and which golds are fit to measure by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.grading.databases import EMP, failed, memory
from toolenvs.errors import UsageError
from toolenvs.grading.sql_determined import scalar_queries
from toolenvs.grading.sql_fitness import (
    examine_gold,
    inner_limits,
    inner_queries,
    why_tied_inside,
    why_undecided,
)
from toolenvs.grading.sql_golds import expand_golds
from toolenvs.grading.sql_policy import Engine


@pytest.mark.parametrize(
    ("text", "golds"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1; SELECT 1", ["SELECT 1"]),
        ("SELECT {a, b} FROM t", ["SELECT a, b FROM t", "SELECT a FROM t", "SELECT b FROM t"]),
        (
            "SELECT {a AS x, b}, sum(c) FROM t GROUP BY {}",
            [
                "SELECT a AS x, b, sum(c) FROM t GROUP BY a, b",
                "SELECT a AS x, sum(c) FROM t GROUP BY a",
                "SELECT b, sum(c) FROM t GROUP BY b",
            ],
        ),
        ("SELECT {f(a, b)} FROM t", ["SELECT f(a, b) FROM t"]),
        ("SELECT {a} FROM t; SELECT {b} FROM u", ["SELECT a FROM t", "SELECT b FROM u"]),
        ("SELECT '{a; b}' FROM t -- {;\n", ["SELECT '{a; b}' FROM t -- {;"]),
        ("SELECT 'it''s; {' FROM t", ["SELECT 'it''s; {' FROM t"]),
        ('SELECT "{" /* ; */ FROM t', ['SELECT "{" /* ; */ FROM t']),
        ("", []),
    ],
)
def test_golds_are_expanded(text: str, golds: list[str]) -> None:
    """Semicolons part golds, braces offer columns; quoted text and comments are left alone."""
    assert expand_golds(text) == golds


def test_the_columns_chosen_are_every_choice_once() -> None:
    """Three columns offered are seven golds, all of them first."""
    golds = expand_golds("SELECT {a, b, c} FROM t")
    assert len(golds) == len(set(golds)) == 7
    assert golds[0] == "SELECT a, b, c FROM t"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {a FROM t",
        "SELECT a} FROM t",
        "SELECT {a, {b}} FROM t",
        "SELECT a FROM t GROUP BY {}",
        "SELECT {a,b,c,d,e,f,g} FROM t",
        "SELECT {a,b,c,d}, {e,f,g,h} FROM t",
    ],
)
def test_what_stands_for_no_or_too_many_golds_is_an_error(text: str) -> None:
    """It is a fault of the data, with its text."""
    with pytest.raises(UsageError, match=r"gold|choose"):
        expand_golds(text)


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("SELECT name FROM emp", ""),
        ("SELECT nme FROM emp", "does not run"),
        ("SELECT name FROM emp WHERE pay > 999", "returns no rows"),
        ("SELECT name FROM emp WHERE 'x' < date('now')", "'now'"),
        ("SELECT name FROM emp ORDER BY random() LIMIT 1", "random()"),
        ("SELECT name FROM emp ORDER BY pay LIMIT (SELECT 1)", "no plain number"),
        ("SELECT DISTINCT city FROM emp ORDER BY pay LIMIT 1", "not in its result"),
        ("SELECT DISTINCT city FROM emp ORDER BY pay LIMIT 2", ""),
        ("SELECT city FROM emp WHERE id = (SELECT id FROM emp ORDER BY pay DESC LIMIT 1)", ""),
        (
            "SELECT name FROM emp WHERE id = (SELECT id FROM emp ORDER BY pay DESC LIMIT 1)",
            "inside the gold",
        ),
        ("SELECT name FROM emp WHERE id IN (SELECT id FROM emp LIMIT 2)", "inside the gold"),
        ("SELECT name FROM emp WHERE pay = (SELECT pay FROM emp ORDER BY pay DESC LIMIT 1)", ""),
        (
            "WITH best AS (SELECT id FROM emp ORDER BY pay DESC LIMIT 1) "
            "SELECT name FROM emp JOIN best USING (id)",
            "inside the gold",
        ),
        ("SELECT name FROM emp WHERE EXISTS (SELECT 1 FROM emp LIMIT 1)", ""),
    ],
)
def test_unfit_golds_are_told(gold: str, why: str) -> None:
    """A gold that fails, says nothing, changes by itself or is decided by a tie is unusable."""
    found = examine_gold(gold, memory(EMP)).unusable
    assert (why in found) if why else found == ""


def test_a_tie_whose_rows_are_known_is_noted() -> None:
    """It is reported, and every result that the gold may have is right; so the task may be kept."""
    finding = examine_gold("SELECT name FROM emp ORDER BY pay DESC LIMIT 1", memory(EMP))
    assert finding.unusable == ""
    assert finding.notes == ("2 rows tie at the LIMIT for 1; any of them is right",)
    same = examine_gold("SELECT city FROM emp ORDER BY pay DESC LIMIT 1", memory(EMP))
    assert same.notes == ()


def test_doubtful_keys_are_noted() -> None:
    """Numbers that sort as texts, and a best row whose value is unknown."""
    text = examine_gold("SELECT name FROM emp ORDER BY code LIMIT 1", memory(EMP))
    assert text.notes == ()  # 00420 writes no number
    setup = "CREATE TABLE t(a TEXT, b INTEGER); INSERT INTO t VALUES ('9',NULL),('10',2),('2',3);"
    stored = examine_gold("SELECT b FROM t ORDER BY a", memory(setup))
    assert stored.notes == ("the gold orders numbers that are stored as text",)
    unknown = examine_gold("SELECT a FROM t ORDER BY b LIMIT 1", memory(setup))
    assert unknown.notes == ("the first row that the gold takes has no value (NULL) in its key",)


def test_too_many_rows_at_a_tie_cannot_be_told() -> None:
    """Where the probe is cut among rows that tie, the gold is not used."""
    run = memory(EMP)

    def cut(sql: str) -> dict[str, object]:
        result = dict(run(sql))
        return {**result, "cut": "toolenvs_key" in sql}

    why = examine_gold("SELECT name FROM emp ORDER BY city LIMIT 3", cut).unusable
    assert why == "more rows tie at the gold's LIMIT than are kept"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_inner_limits_are_queries_of_their_own(engine: Engine) -> None:
    """Each with the shared WITH before it; the outermost and those inside EXISTS are none."""
    gold = (
        "WITH x AS (SELECT a FROM t) SELECT a FROM x WHERE a IN (SELECT a FROM x ORDER BY a LIMIT "
        "2) AND EXISTS (SELECT 1 FROM t LIMIT 1) LIMIT 5"
    )
    (inner,) = inner_limits(gold, engine)
    assert inner.query == "WITH x AS (SELECT a FROM t) SELECT a FROM x ORDER BY a LIMIT 2"
    assert inner.outline.limit == 2
    assert inner_limits("not a query", engine) == []


TURNED = (
    EMP[: EMP.index("INSERT")]
    + """
INSERT INTO emp VALUES (3,'Cid','Bern',20.0,'42',1),
(2,'Bob','Bern',20.0,'7',1),(1,'Ann','Oslo',10.0,'00420',NULL);
"""
)
NUMBERED = "SELECT name, row_number() OVER (ORDER BY pay DESC) AS n FROM emp"


@pytest.mark.parametrize(
    "gold",
    [
        f"SELECT name FROM ({NUMBERED}) WHERE n = 1",
        NUMBERED,
        "SELECT DISTINCT first_value(name) OVER (ORDER BY pay DESC) FROM emp",
        "SELECT name, max(pay) FROM emp",
        "SELECT city, name FROM emp GROUP BY city",
        "SELECT city, group_concat(name) FROM emp GROUP BY city",
        "SELECT name, lag(name) OVER (ORDER BY city) FROM emp",
        "SELECT name, sum(id) OVER (ORDER BY pay ROWS UNBOUNDED PRECEDING) FROM emp",
    ],
)
def test_a_gold_that_the_order_of_storage_decides_is_told(gold: str) -> None:
    """Another database with the same rows gives another result, so no result is the right one."""
    finding = examine_gold(gold, memory(EMP), reordered=memory(TURNED))
    assert "do not determine the gold" in finding.unusable
    assert examine_gold(gold, memory(EMP)).unusable == ""


@pytest.mark.parametrize(
    "gold",
    [
        "SELECT name FROM emp",
        "SELECT name FROM emp ORDER BY pay DESC LIMIT 1",
        "SELECT name FROM emp LIMIT 2",
        "SELECT name FROM emp ORDER BY city",
        "SELECT city, group_concat(name) FROM emp GROUP BY name",
        "SELECT name, rank() OVER (ORDER BY pay DESC) FROM emp",
        "SELECT city, pay FROM emp GROUP BY city",
        "SELECT sum(pay), avg(pay * 0.1) FROM emp",
    ],
)
def test_what_the_gold_leaves_open_itself_is_fit(gold: str) -> None:
    """Rows that tie are graded alike, and an order that changes no value does not matter."""
    assert examine_gold(gold, memory(EMP), reordered=memory(TURNED)).unusable == ""


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("SELECT (SELECT name FROM emp WHERE city = 'Bern')", "has 2"),
        ("SELECT name FROM emp WHERE id = (SELECT id FROM emp WHERE city = 'Bern')", "has 2"),
        ("WITH b AS (SELECT * FROM emp) SELECT 1 + (SELECT id FROM b) FROM emp", "has 3"),
        ("SELECT name FROM emp WHERE pay = (SELECT pay FROM emp WHERE city = 'Bern')", ""),
        ("SELECT name FROM emp WHERE pay > (SELECT avg(pay) FROM emp)", ""),
        ("SELECT name FROM emp WHERE id IN (SELECT id FROM emp)", ""),
        ("SELECT (SELECT max(pay) FROM emp AS o WHERE o.boss = e.boss) FROM emp AS e", ""),
    ],
)
def test_a_subquery_of_several_values_is_not_one_value(gold: str, why: str) -> None:
    """The database takes one of them; several rows of one value are one."""
    found = examine_gold(gold, memory(EMP)).unusable
    assert (why in found) if why else found == ""


def test_subqueries_in_the_place_of_rows_are_none() -> None:
    """FROM, IN, EXISTS, set operations and WITH take rows."""
    gold = (
        "WITH w AS (SELECT 1 AS a) SELECT (SELECT a FROM w) FROM (SELECT a FROM w) WHERE a IN "
        "(SELECT a FROM w) AND EXISTS (SELECT a FROM w) UNION SELECT a FROM w"
    )
    assert scalar_queries(gold) == ["WITH w AS (SELECT 1 AS a) SELECT a FROM w"]
    assert scalar_queries("not a query") == []


def test_what_was_not_examined_is_noted() -> None:
    """A database that is too large, or a query that takes too long there."""
    finding = examine_gold("SELECT name FROM emp", memory(EMP), reordered=lambda sql: failed())
    assert finding.unusable == ""
    assert finding.notes == (
        "whether the data determine the gold was not examined: no such column",
    )


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("SELECT name FROM emp ORDER BY pay LIMIT 1 + 1", "no plain number"),
        ("SELECT 1 FROM (SELECT name FROM emp ORDER BY pay LIMIT (SELECT 1)) AS x", "no plain"),
        ("SELECT 1 FROM (SELECT name FROM emp LIMIT 1) AS x", "no ORDER BY"),
        ("SELECT 1 WHERE EXISTS (SELECT name FROM emp LIMIT 1)", ""),
        ("SELECT name FROM emp LIMIT 2", ""),  # any two are right, and the probe shows all
        ("SELECT name FROM emp WHERE id = (SELECT id FROM emp ORDER BY pay LIMIT 1)", ""),
    ],
)
def test_what_a_limit_leaves_open_is_read_in_the_text(gold: str, why: str) -> None:
    """Where no gold is run; what only its rows show is left to whoever runs it."""
    found = why_undecided(gold, "postgres")
    assert (why in found) if why else found == ""


@pytest.mark.parametrize(
    ("gold", "tied"),
    [
        ("SELECT id FROM emp WHERE name = (SELECT name FROM emp ORDER BY city LIMIT 1)", True),
        ("SELECT id FROM emp WHERE name = (SELECT name FROM emp ORDER BY id LIMIT 1)", False),
        ("SELECT name FROM emp ORDER BY city LIMIT 1", False),
    ],
)
def test_ties_at_inner_limits_show_in_the_results_of_a_few_queries(gold: str, tied: bool) -> None:
    """So that whoever has these results need run nothing else."""
    run = memory(EMP)
    results = {query: run(query) for query in inner_queries(gold)}
    assert bool(why_tied_inside(gold, results)) == tied


def test_each_query_is_run_once() -> None:
    """A probe that is looked at twice, too."""
    run, asked = memory(EMP), []

    def counted(sql: str) -> Mapping[str, Any]:
        asked.append(sql)
        return run(sql)

    gold = "SELECT name FROM emp ORDER BY pay DESC LIMIT 1"
    examine_gold(gold, counted, reordered=memory(TURNED))
    assert len(asked) == len(set(asked)) == 2
