"""What a gold fixes of the order and the choice of its rows, read from its text."""

from __future__ import annotations

import pytest

from tests.grading.databases import failed, memory, table
from toolenvs.grading.sql import compare
from toolenvs.grading.sql_outline import NO_LIMIT, UNREAD_LIMIT, Outline, read_outline
from toolenvs.grading.sql_policy import Engine

KEY = "toolenvs_key_0"
ROWS, FIRST = "toolenvs_rows", "toolenvs_column_0"


def rank(*terms: str) -> str:
    """The column that numbers the groups of rows that tie."""
    return f"DENSE_RANK() OVER (ORDER BY {', '.join(terms)}) AS toolenvs_rank"


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
        (
            "SELECT a FROM t ORDER BY b",
            f"SELECT a, b AS {KEY}, {rank('b')} FROM t ORDER BY b",
            (-2,),
        ),
        ("SELECT a FROM t ORDER BY a", f"SELECT a, {rank('a')} FROM t ORDER BY a", (0,)),
        (
            "SELECT T1.a FROM t AS T1 ORDER BY T1.a",
            f"SELECT T1.a, {rank('T1.a')} FROM t AS T1 ORDER BY T1.a",
            (0,),
        ),
        (
            "SELECT a AS x FROM t ORDER BY x DESC",
            f"SELECT a AS x, {rank('a DESC')} FROM t ORDER BY x DESC",
            (0,),
        ),
        (
            "SELECT a, b FROM t ORDER BY 2, a",
            f"SELECT a, b, {rank('b', 'a')} FROM t ORDER BY 2, a",
            (1, 0),
        ),
        ("SELECT * FROM t ORDER BY 2", "", (1,)),
        (
            "SELECT * FROM t ORDER BY b",
            f"SELECT *, b AS {KEY}, {rank('b')} FROM t ORDER BY b",
            (-2,),
        ),
        (
            "SELECT a, b + 1 AS x FROM t ORDER BY x * 2",
            f"SELECT a, b + 1 AS x, (b + 1) * 2 AS {KEY} FROM t ORDER BY x * 2",
            (-1,),
        ),
        ("SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY n DESC", "", (1,)),
        ("SELECT a, row_number() OVER (ORDER BY b) AS r FROM t ORDER BY r", "", (1,)),
        ("SELECT DISTINCT a FROM t ORDER BY b", "", None),
        ("SELECT DISTINCT * FROM t ORDER BY 1", "", (0,)),
        (
            "SELECT a FROM t UNION SELECT b FROM u ORDER BY a",
            f"WITH {ROWS}({FIRST}) AS (SELECT a FROM t UNION SELECT b FROM u) "
            f"SELECT {FIRST}, {rank(FIRST)} FROM {ROWS} ORDER BY {FIRST}",
            (0,),
        ),
        (
            "SELECT DISTINCT a FROM t ORDER BY a COLLATE NOCASE DESC LIMIT 3",
            f"WITH {ROWS}({FIRST}) AS (SELECT DISTINCT a FROM t) "
            f"SELECT {FIRST}, {rank(f'{FIRST} COLLATE NOCASE DESC')} FROM {ROWS} "
            f"ORDER BY {FIRST} COLLATE NOCASE DESC",
            (0,),
        ),
        ("SELECT a FROM t ORDER BY a LIMIT 2", f"SELECT a, {rank('a')} FROM t ORDER BY a", (0,)),
        ("SELECT a FROM t LIMIT 2", "SELECT a FROM t", ()),
        ("SELECT a FROM t", "", ()),
    ],
)
def test_the_probe_shows_the_keys(sql: str, probe: str, keys: tuple[int, ...] | None) -> None:
    """Keys are found among the columns, or appended where the query allows it.

    Texts, or what may be one, are numbered besides, as the database itself tells which are one.
    """
    outline = read_outline(sql)
    assert (outline.probe, outline.keys) == (probe, keys)


def test_several_keys_are_appended_in_their_order() -> None:
    """``keys`` counts appended columns from the end, since ``*`` hides how many come before."""
    outline = read_outline("SELECT * FROM t ORDER BY b, c DESC")
    assert outline.keys == (-3, -2)
    assert (outline.appended, outline.ranked) == (3, True)


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


ORDERS = ["name", "name DESC LIMIT 4", "2 NULLS LAST", "name COLLATE NOCASE"]
COMPUTED = ["(name)", "lower(name)", "name || '' COLLATE NOCASE"]
PLAIN = [
    "SELECT id, name FROM t ORDER BY {}",
    "WITH u AS (SELECT * FROM t) SELECT id, name FROM u ORDER BY {}",
    "SELECT id, name FROM t GROUP BY id, name ORDER BY {}",
]
MADE_ONE = [
    "SELECT DISTINCT id, name FROM t ORDER BY {}",
    "SELECT id, name FROM t WHERE id < 3 UNION SELECT id, name FROM t WHERE id > 2 ORDER BY {}",
]


@pytest.mark.parametrize(
    "gold",
    [
        *(query.format(order) for query in PLAIN for order in ORDERS + COMPUTED),
        *(query.format(order) for query in MADE_ONE for order in ORDERS),
    ],
)
def test_what_the_database_takes_for_one_ties(gold: str) -> None:
    """By the collation of a column or of a key, whether or not the values show it."""
    run = memory(
        "CREATE TABLE t(id INTEGER, name TEXT COLLATE NOCASE);"
        "INSERT INTO t VALUES (1, 'ann'), (2, 'Ann'), (3, 'Bob'), (4, 'bob');"
    )
    rows = run(gold)["rows"]
    swapped = table([rows[1], rows[0], rows[3], rows[2]])
    outline = read_outline(gold)
    probe = run(outline.probe)
    assert compare(run(gold), swapped, outline=outline, probe=probe).correct
    wrong = table([rows[0], rows[2], rows[1], rows[3]])
    assert compare(run(gold), wrong, outline=outline, probe=probe).rule == "order"


def test_a_probe_that_does_not_run_costs_nothing_that_the_result_shows() -> None:
    """Keys in the result tell the ties that they show."""
    outline = read_outline("SELECT a, b FROM t ORDER BY b")
    gold, turned = table([[1, "x"], [2, "x"]]), table([[2, "x"], [1, "x"]])
    assert compare(gold, turned, outline=outline).correct
    assert compare(gold, turned, outline=outline, probe=failed()).correct


@pytest.mark.parametrize("sql", ["DROP TABLE t", "x" * 30_000, "SELECT 'a", "SELECT " + "(" * 500])
def test_what_cannot_be_read_has_no_probe(sql: str) -> None:
    """It never raises, and nothing is said of its keys."""
    assert read_outline(sql) == Outline(keys=None)
