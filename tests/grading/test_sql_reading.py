"""What is read from the text of statements, hostile ones among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.sql_chance import chancy_words
from toolenvs.grading.sql_order import read_outline
from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import split_statements, touched


@pytest.mark.parametrize(
    ("sql", "tables", "columns"),
    [
        ("SELECT count(*) FROM emp AS e WHERE e.pay > 3", {"emp"}, {"pay"}),
        ("SELECT A FROM T JOIN u USING (id)", {"t", "u"}, {"a", "id"}),
        ("WITH x AS (SELECT name AS n FROM emp) SELECT n FROM x", {"emp"}, {"name"}),
        ("SELECT count(*) AS n, a FROM t GROUP BY a ORDER BY n", {"t"}, {"a"}),
        ('SELECT "Book Title" FROM "Order Details"', {"order details"}, {"book title"}),
        ("INSERT INTO t (a, b) VALUES (1, 2)", {"t"}, {"a", "b"}),
        ("UPDATE t SET a = 1 WHERE b = 2", {"t"}, {"a", "b"}),
        ("SELECT value FROM json_each('[1]')", set(), {"value"}),
        ("```sql\nSELECT a FROM t;\n```", {"t"}, {"a"}),
        ("-- why\nSELECT a FROM t -- that", {"t"}, {"a"}),
    ],
)
def test_tables_and_columns_are_found(sql: str, tables: set[str], columns: set[str]) -> None:
    """In lower case, without the names that the statement gives itself."""
    names = touched(sql)
    assert (set(names.tables), set(names.columns)) == (tables, columns)


@pytest.mark.parametrize(
    ("sql", "constant"),
    [
        ("SELECT 'Bob'", True),
        ("SELECT 'Bob' FROM emp WHERE id = 1", True),
        ("VALUES (1, 2)", True),
        ("SELECT x FROM (SELECT 'Bob' AS x)", True),
        ("SELECT 'x', 2 UNION ALL SELECT 'y', 1", True),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", True),
        ("SELECT value FROM json_each('[1, 2]')", True),
        ("", True),
        ("SELECT " + "(" * 200 + "1" + ")" * 200, True),
        ("SELECT name FROM emp", False),
        ("SELECT count(*) FROM emp", False),
        ("SELECT count(1) FROM emp", False),
        ("SELECT row_number() OVER () FROM emp", False),
        ("SELECT 'a' UNION ALL SELECT name FROM emp", False),
        ("SELECT CASE WHEN EXISTS (SELECT 1 FROM emp) THEN 'yes' ELSE 'no' END", False),
        ("UPDATE emp SET pay = 0", False),
        ("```sql\nSELECT name FROM emp\n```", False),
        ("SELECT name FROM emp WHERE !!!", False),  # not parsed: read by its words
    ],
)
def test_rows_that_are_written_out_are_seen(sql: str, constant: bool) -> None:
    """A query that reads nothing from any table is constant."""
    assert touched(sql).constant is constant


BOMBS = [
    "SELECT " + "(" * 9000 + "1" + ")" * 9000,
    "SELECT " + "f(" * 900 + "1" + ")" * 900,
    "SELECT " + "CASE WHEN " * 900 + "1" + " THEN 1 END" * 900,
    "SELECT " + "NOT " * 3000 + "1",
    "SELECT " + "-" * 3000 + "1",
    "SELECT " + "- " * 3000 + "1",
    "SELECT " + "1 IN (" * 900 + "1" + ")" * 900,
    "SELECT * FROM " + "(SELECT * FROM " * 900 + "t" + ")" * 900,
    "SELECT * FROM " + "a JOIN (b " * 900 + ")" * 900,
    "SELECT " + "[" * 900 + "1" + "]" * 900,
    "SELECT 1 " + "UNION SELECT 1 " * 900,
    "SELECT 1" + " + 1" * 2000,
    "SELECT 1 WHERE 1" + " AND 1" * 1990,
    "SELECT '" + "a" * 19_000,
    "SELECT " + "a." * 2000 + "b",
    "SELECT a FROM t " + "JOIN u ON 1 " * 900,
    "WITH x AS (" * 900 + "SELECT 1" + ") SELECT 1" * 900,
    "/*" * 5000,
    "SELECT \x00 \ud800",
    "SELECT x" + "::int" * 1500,
    "SELECT CAST(1 AS " + "STRUCT<a " * 900 + "INT" + ">" * 900 + ")",
    "SELECT 1 BETWEEN " * 700 + "1",
]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_a_hostile_text_is_a_value(bomb: str, engine: Engine) -> None:
    """Whatever nests, repeats or stays open: an answer, no exception, and the same one again."""
    first = touched(bomb, engine)
    touched.cache_clear()
    read_outline.cache_clear()
    assert touched(bomb, engine) == first
    read_outline(bomb, engine)
    chancy_words(bomb, engine)
    split_statements(bomb, engine)


WORDS_OF_SQL = (
    "SELECT a FROM ( ) t ' ORDER BY LIMIT 1 , * UNION WITH AS ; -- :: [ CASE END GROUP JOIN ON"
)


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(WORDS_OF_SQL.split()), max_size=14).map(" ".join)
)
def test_no_text_raises(sql: str) -> None:
    """Reading is total."""
    engines: tuple[Engine, ...] = ("sqlite", "postgres")
    for engine in engines:
        touched(sql, engine)
        read_outline(sql, engine)
        chancy_words(sql, engine)


@pytest.mark.parametrize(
    ("sql", "engine", "words"),
    [
        ("SELECT date('now', '-1 day')", "sqlite", ["'now'"]),
        ("SELECT strftime('%Y', 'now')", "sqlite", ["'now'"]),
        ("SELECT strftime('%Y', d) FROM t", "sqlite", []),
        ("SELECT strftime('%Y'), date(), datetime(d) FROM t", "sqlite", ["strftime()", "date()"]),
        ("SELECT * FROM t ORDER BY random()", "sqlite", ["random()"]),
        ("SELECT a FROM t WHERE d < CURRENT_DATE", "sqlite", ["current_date"]),
        ("SELECT t.current_date, random, now FROM t", "sqlite", []),
        ("SELECT 'now', \"now\" FROM t WHERE x IN ('now', 'today')", "sqlite", []),
        ("SELECT now(), clock_timestamp()", "postgres", ["now()", "clock_timestamp()"]),
        ("SELECT 'today'::date, DATE 'tomorrow'", "postgres", ["'today'", "'tomorrow'"]),
        ("SELECT CAST('now' AS timestamp)", "postgres", ["'now'"]),
        ("SELECT age(d), age(d, e) FROM t", "postgres", ["age()"]),
        ("SELECT gen_random_uuid(), nextval('s')", "postgres", ["gen_random_uuid()", "nextval()"]),
        ("SELECT a FROM t TABLESAMPLE bernoulli (10)", "postgres", ["tablesample"]),
        ("SELECT date(d) FROM t WHERE note = 'now()' -- now()", "sqlite", []),
        ("SELECT extract(year FROM now())", "postgres", ["now()"]),
    ],
)
def test_the_clock_and_chance_are_seen(sql: str, engine: Engine, words: list[str]) -> None:
    """Functions and constants, not columns, texts or comments of the same letters."""
    assert chancy_words(sql, engine) == words


def test_statements_are_split_as_the_database_does() -> None:
    """Semicolons in texts and comments part nothing."""
    assert split_statements("DELETE FROM t; INSERT INTO t VALUES (';')\n;") == [
        "DELETE FROM t",
        " INSERT INTO t VALUES (';')\n",
    ]
