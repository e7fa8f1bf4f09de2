"""Gold queries of defog's form, and which golds are fit to measure by."""

from __future__ import annotations

import pytest

from tests.grading.databases import EMP, memory
from toolenvs.errors import UsageError
from toolenvs.grading.sql_fitness import examine_gold, inner_limits, why_unusable
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
    found = why_unusable(gold, memory(EMP))
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

    why = why_unusable("SELECT name FROM emp ORDER BY city LIMIT 3", cut)
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
