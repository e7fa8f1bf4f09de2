"""What a gold fixes of the order and the choice of its rows, read from its text."""

from __future__ import annotations

import pytest

from toolenvs.grading.sql_order import NO_LIMIT, UNREAD_LIMIT, Outline, read_outline
from toolenvs.grading.sql_policy import Engine

KEY = "toolenvs_key_0"


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t", False),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("(SELECT a FROM t ORDER BY a)", True),
        ("SELECT a FROM t WHERE a = (SELECT b FROM u ORDER BY b LIMIT 1)", False),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT a FROM x", False),
        ("WITH x AS (SELECT a FROM t) SELECT a FROM x ORDER BY a", True),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1", True),
        ("SELECT a, row_number() OVER (ORDER BY b) FROM t", False),
        ("SELECT 'x ORDER BY y' FROM t -- ORDER BY a", False),
        ("SELECT a FROM t ORDER BY a;", True),
        ("SELECT a FROM t GROUP BY a ORDER BY count(*) DESC LIMIT 3", True),
        ("SELECT a FROM t WHERE !!! ORDER BY a", True),  # not parsed: read by its words
        ("SELECT a FROM t WHERE !!! (ORDER BY a)", False),
        ("", False),
    ],
)
def test_only_the_outermost_order_counts(sql: str, ordered: bool) -> None:
    """Subqueries, windows, texts and comments do not order the result."""
    assert read_outline(sql).ordered is ordered


@pytest.mark.parametrize(
    ("sql", "probe", "keys"),
    [
        ("SELECT a FROM t ORDER BY b", f"SELECT a, b AS {KEY} FROM t ORDER BY b", (-1,)),
        ("SELECT a FROM t ORDER BY a", "", (0,)),
        ("SELECT T1.a FROM t AS T1 ORDER BY T1.a", "", (0,)),
        ("SELECT a AS x FROM t ORDER BY x DESC", "", (0,)),
        ("SELECT a, b FROM t ORDER BY 2, a", "", (1, 0)),
        ("SELECT * FROM t ORDER BY 2", "", (1,)),
        ("SELECT * FROM t ORDER BY b", f"SELECT *, b AS {KEY} FROM t ORDER BY b", (-1,)),
        (
            "SELECT a, b + 1 AS x FROM t ORDER BY x * 2",
            f"SELECT a, b + 1 AS x, (b + 1) * 2 AS {KEY} FROM t ORDER BY x * 2",
            (-1,),
        ),
        ("SELECT DISTINCT a FROM t ORDER BY b", "", None),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a", "", (0,)),
        ("SELECT a FROM t ORDER BY a LIMIT 2", "SELECT a FROM t ORDER BY a", (0,)),
        ("SELECT a FROM t LIMIT 2", "SELECT a FROM t", ()),
        ("SELECT a FROM t", "", ()),
    ],
)
def test_the_probe_shows_the_keys(sql: str, probe: str, keys: tuple[int, ...] | None) -> None:
    """Keys are found among the columns, or appended where the query allows it."""
    outline = read_outline(sql)
    assert (outline.probe, outline.keys) == (probe, keys)


def test_several_keys_are_appended_in_their_order() -> None:
    """``keys`` counts appended columns from the end, since ``*`` hides how many come before."""
    outline = read_outline("SELECT * FROM t ORDER BY b, c DESC")
    assert outline.keys == (-2, -1)
    assert outline.appended == 2


@pytest.mark.parametrize(
    ("sql", "engine", "limit", "offset"),
    [
        ("SELECT a FROM t LIMIT 3", "sqlite", 3, 0),
        ("SELECT a FROM t LIMIT 5, 3", "sqlite", 3, 5),
        ("SELECT a FROM t LIMIT 3 OFFSET 5", "sqlite", 3, 5),
        ("SELECT a FROM t LIMIT -1", "sqlite", 1 << 62, 0),
        ("SELECT a FROM t LIMIT (SELECT 3)", "sqlite", UNREAD_LIMIT, 0),
        ("SELECT a FROM t OFFSET 2", "postgres", 1 << 62, 2),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS ONLY", "postgres", 3, 0),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES", "postgres", NO_LIMIT, 0),
        ("SELECT a FROM t", "sqlite", NO_LIMIT, 0),
    ],
)
def test_limits_are_read(sql: str, engine: Engine, limit: int, offset: int) -> None:
    """Also those of other forms; one that takes all that ties leaves no choice, so it is none."""
    outline = read_outline(sql, engine)
    assert (outline.limit, outline.offset) == (limit, offset)


def test_a_key_without_case_ties_without_case() -> None:
    """NOCASE makes ``a`` and ``A`` tie, which the bare column would not show."""
    probe = read_outline("SELECT a FROM t ORDER BY a COLLATE NOCASE").probe
    assert f"LOWER(a) AS {KEY}" in probe


@pytest.mark.parametrize("sql", ["DROP TABLE t", "x" * 30_000, "SELECT 'a", "SELECT " + "(" * 500])
def test_what_cannot_be_read_has_no_probe(sql: str) -> None:
    """It never raises, and nothing is said of its keys."""
    assert read_outline(sql) == Outline(keys=None)
