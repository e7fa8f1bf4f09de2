"""What is read from the text of statements, hostile ones among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.sql_chance import chancy_words
from toolenvs.grading.sql_outline import read_outline
from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import only_reads, parse, split_statements, tokens, touched


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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM (SELECT 'Lion' AS x) l, emp LIMIT 1",
        "SELECT column1 FROM (VALUES ('Lion')), emp LIMIT 1",
        "SELECT v.* FROM (VALUES ('Lion')) v, emp LIMIT 1",
        "SELECT a FROM (VALUES ('Lion')) AS v(a), emp",
        "SELECT * FROM (VALUES ('Lion')), (SELECT 1 FROM emp LIMIT 1)",
        "WITH c(x) AS (VALUES ('Lion')) SELECT x FROM c, emp LIMIT 1",
        "WITH c AS (SELECT 'Lion' AS x) SELECT c.x FROM emp JOIN c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c, emp LIMIT 1) SELECT x FROM c",
        "SELECT (SELECT 'Lion' FROM emp LIMIT 1)",
        "SELECT (SELECT 'Lion') FROM emp",
        "SELECT max('Lion') FROM emp",
        "SELECT first_value('Lion') OVER (ORDER BY id) FROM emp",
        "SELECT j.value FROM json_each('[\"Lion\"]') j JOIN emp",
        "SELECT value FROM json_each('[\"Lion\"]'), emp LIMIT 1",
        "SELECT 'Li' || 'on' FROM emp",
        "SELECT CASE WHEN 1 THEN 'Lion' END FROM emp",
        "SELECT x FROM (SELECT y AS x FROM (SELECT 'Lion' AS y), emp)",
        "SELECT coalesce('Lion', name) FROM emp",
        "SELECT ifnull(('Lion'), name) FROM emp",
        "SELECT nullif('Lion', name) FROM emp",
        "SELECT 20 + 0 * count(*) FROM emp",
        "SELECT count(*) * 0.0 + 20 FROM emp",
        "SELECT sum(5) FROM emp",
        "SELECT total(20) FROM emp WHERE id = 1",
        "SELECT group_concat('Lion') FROM emp WHERE id = 1",
        "SELECT CASE WHEN id > 0 THEN 'Lion' ELSE 'Lion' END FROM emp",
        "SELECT iif(max(id) > 0, 20, 20) FROM emp",
        "SELECT name FROM (SELECT 'Lion' AS name) t LEFT JOIN emp USING (name)",
        "SELECT name FROM emp RIGHT JOIN (SELECT 'Lion' AS name) t USING (name)",
        "SELECT name FROM (SELECT 'Lion' AS name) t NATURAL LEFT JOIN emp",
        "SELECT 20 + 0 * count(*) FROM sqlite_master",
        "SELECT count(*) + 16 FROM pragma_table_list",
        "SELECT count(*) + 16 FROM information_schema.tables",
        "SELECT max(oid) FROM pg_catalog.pg_class",
    ],
)
def test_a_table_for_show_does_not_hide_what_is_written_out(sql: str) -> None:
    """Columns are followed through subqueries, CTEs, joins, VALUES and functions."""
    assert touched(sql).constant


@pytest.mark.parametrize(
    ("sql", "hard_coded"),
    [
        ("SELECT name, 'x' FROM emp", {"'x"}),
        ("SELECT name FROM emp WHERE 0 UNION SELECT 'Lion'", {"'Lion"}),
        ("SELECT name, 1 + 2, NULL FROM emp", {"1", "2", "null"}),
        ("SELECT name FROM emp EXCEPT SELECT 'Lion'", set()),
        ("SELECT name FROM emp INTERSECT SELECT 'Lion'", set()),
        ("SELECT name FROM (emp JOIN (SELECT 'Lion' AS name) USING (name))", set()),
        ("SELECT k.n FROM (SELECT name FROM emp) AS k(n)", set()),
        ("SELECT (SELECT max(pay) FROM emp AS o WHERE o.boss = e.id) FROM emp AS e", set()),
        ("SELECT id IN (SELECT boss FROM emp) FROM emp", set()),
        ("SELECT CASE WHEN pay > 3 THEN 'high' ELSE 'low' END FROM emp", set()),
        ("SELECT iif(count(*) > 3, 'yes', 'no') FROM emp", set()),
        ("SELECT (SELECT count(*) FROM emp) - (SELECT count(DISTINCT city) FROM emp)", set()),
        ("SELECT strftime('%Y', day), count(*) FROM emp GROUP BY 1", set()),
        ("SELECT j.value FROM emp, json_each(emp.code) AS j", set()),
        ("SELECT sum(1), sum(pay), coalesce(name, 'x'), 0.5 * pay FROM emp", set()),
        ("SELECT CASE WHEN pay > 3 THEN 'high' END FROM emp", set()),
        ("SELECT name FROM (SELECT 'Lion' AS name) t JOIN emp USING (name)", set()),
        ("SELECT name FROM emp LEFT JOIN (SELECT 'Lion' AS name) t USING (name)", set()),
        ("WITH a AS (SELECT * FROM emp), b AS (SELECT * FROM a) SELECT name FROM b", set()),
    ],
)
def test_columns_that_depend_on_no_table_are_told(sql: str, hard_coded: set[str]) -> None:
    """With the values that are written in them; conditions and numbers of rows depend on tables."""
    found = touched(sql)
    literals = {literal for column in found.written for literal in column.literals}
    assert (found.constant, literals) == (False, hard_coded)


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("SELECT 'x', name, 2 FROM emp", [0, 2]),
        ("SELECT 'x', * FROM emp", [0]),
        ("SELECT *, 'x', name FROM emp", [-2]),
        ("SELECT e.*, 'x', f.* FROM emp e, emp f", [None]),
        ("SELECT *, 'x' FROM (SELECT id, name FROM emp)", [2]),
        ("SELECT *, 'x' FROM (SELECT id, id FROM emp)", [2]),
        ("SELECT *, 'x' FROM (SELECT 1 AS id, name FROM emp)", [0, 2]),
        ("SELECT * FROM (SELECT 'x' AS name) t JOIN emp USING (name)", []),
        ("SELECT count(*), 'x', count(*) FROM emp", [1]),
        ("SELECT id, 'x' AS \"*\" FROM emp", [1]),
        ("SELECT * FROM emp UNION SELECT 1, 2", [None]),
        ("SELECT *, 'x' FROM json_each('[1]')", [None, -1]),
    ],
)
def test_columns_that_are_written_out_have_a_place(sql: str, places: list[int | None]) -> None:
    """From the end behind a ``*``; none between two, nor where USING makes columns one."""
    assert [column.place for column in touched(sql).written] == places


@pytest.mark.parametrize(
    ("sql", "decided"),
    [
        ("SELECT 'a' WHERE EXISTS (SELECT 1 FROM t) UNION SELECT 'b' WHERE 1 > 2", True),
        (
            "SELECT 'a' WHERE EXISTS (SELECT 1 FROM t) UNION ALL "
            "SELECT 'b' WHERE NOT EXISTS (SELECT 1 FROM t)",
            True,
        ),
        ("WITH w(c) AS (VALUES ('a'), ('b')) SELECT c FROM w WHERE c IN ('a')", False),
        ("WITH w(c) AS (VALUES ('a'), ('b')) SELECT c FROM w, t LIMIT 1", False),
        ("SELECT 'a' WHERE (SELECT count(*) FROM t) > 0", False),
        ("SELECT 'a' FROM t WHERE x = 1", False),
        ("SELECT 'a' FROM t WHERE x = 1 UNION ALL SELECT 'a' FROM t WHERE x = 2", False),
    ],
)
def test_written_values_may_be_decided_by_a_table(sql: str, decided: bool) -> None:
    """Where they differ from row to row, and a table decides whether some of these are there."""
    (column,) = touched(sql).written
    assert column.decided is decided


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        (
            "WITH w(c) AS (VALUES ('a'), ('b')) SELECT c FROM w WHERE c IN (SELECT x FROM t)",
            "sqlite",
        ),
        ("WITH w(c) AS (VALUES ('a'), ('b')) SELECT c FROM w JOIN t ON t.x = w.c", "sqlite"),
        ("WITH w(c) AS (VALUES ('a'), ('b')) SELECT c FROM w LEFT JOIN t USING (c)", "sqlite"),
        ("SELECT column1 FROM (VALUES ('a'), ('b')) EXCEPT SELECT x FROM t", "sqlite"),
        (
            "SELECT k FROM (SELECT 'a' k, (SELECT count(*) FROM a) n UNION ALL "
            "SELECT 'b', (SELECT count(*) FROM b)) q ORDER BY n DESC LIMIT 1",
            "sqlite",
        ),
        (
            "WITH q AS (SELECT 'a' k, (SELECT count(*) FROM a) n UNION ALL "
            "SELECT 'b', (SELECT count(*) FROM b)) "
            "SELECT k FROM q WHERE n = (SELECT max(n) FROM q)",
            "sqlite",
        ),
        (
            "WITH RECURSIVE y(n) AS (SELECT 2019 UNION ALL SELECT n + 1 FROM y WHERE n < 2021) "
            "SELECT n, count(s.id) FROM y LEFT JOIN sale s ON s.yr = n GROUP BY n",
            "sqlite",
        ),
        (
            "SELECT y, count(s.id) FROM generate_series(2019, 2021) y "
            "LEFT JOIN s ON extract(year FROM s.d) = y GROUP BY y",
            "postgres",
        ),
        (
            "SELECT city, count(*) FROM t GROUP BY 1 UNION ALL SELECT NULL, count(*) FROM t",
            "sqlite",
        ),
        ("SELECT b, name FROM t UNION ALL SELECT 'none', name FROM t WHERE b IS NULL", "sqlite"),
        ("SELECT cardinality(ARRAY(SELECT 1 FROM t WHERE x > 3))", "postgres"),
        ("SELECT json_array_length(json_agg(1)) FROM t", "postgres"),
        ("SELECT sum(100.0) FROM t", "sqlite"),
        ("SELECT sum(one) FROM (SELECT 1 AS one FROM t)", "sqlite"),
        ("TABLE t", "postgres"),
    ],
)
def test_what_a_table_chooses_or_counts_is_looked_up(sql: str, engine: Engine) -> None:
    """So is a column that is written out in a part of a UNION whose rows a table gives."""
    found = touched(sql, engine)
    assert (found.constant, found.written) == (False, ())


@pytest.mark.parametrize(
    ("value", "engine"),
    [
        ("json_extract(json_group_array('Bob'), '$[0]')", "sqlite"),
        ("json_extract(json_group_object('a', 'Bob'), '$.a')", "sqlite"),
        ("count(*) / count(*) * 20.0", "sqlite"),
        ("sum(-20)", "sqlite"),
        ("CASE WHEN 1 THEN 'Bob' ELSE name END", "sqlite"),
        ("iif(1, 'Bob', name)", "sqlite"),
        ("CASE WHEN 0 THEN name ELSE 'Bob' END", "sqlite"),
        ("iif(0, name, 'Bob')", "sqlite"),
        ("20 + percent_rank() OVER (ORDER BY 1)", "sqlite"),
        ("json_agg('Bob'::text)->>0", "postgres"),
        ("bit_or(20)", "postgres"),
        ("bool_and(true)", "postgres"),
        ("stddev_pop(4) + 4", "postgres"),
        ("mode() WITHIN GROUP (ORDER BY 'Bob')", "postgres"),
        ("percentile_disc(0) WITHIN GROUP (ORDER BY 20)", "postgres"),
    ],
)
def test_a_written_value_in_an_aggregate_is_written_out(value: str, engine: Engine) -> None:
    """Only what counts rows depends on how many there are."""
    found = touched(f"SELECT {value} FROM emp", engine)
    assert found.constant
    assert len(found.written) == 1


@pytest.mark.parametrize(
    ("sql", "engine", "reads"),
    [
        ("", "sqlite", True),
        ("-- nothing", "sqlite", True),
        ("(SELECT 1)", "sqlite", True),
        ("SELECT replace(name, 'INSERT', 'x') FROM emp", "sqlite", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "sqlite", True),
        ("EXPLAIN DELETE FROM emp", "sqlite", True),
        ("EXPLAIN ANALYZE DELETE FROM emp", "postgres", False),
        ("PRAGMA table_info(emp)", "sqlite", True),
        ("SELECT * FROM emp FOR NO KEY UPDATE", "postgres", True),
        ("SELECT * INTO h FROM emp", "postgres", False),
        ("WITH x AS (DELETE FROM emp RETURNING *) SELECT * FROM x", "postgres", False),
        (
            "WITH x AS (SELECT 2 AS i) DELETE FROM emp WHERE id IN (SELECT i FROM x)",
            "sqlite",
            False,
        ),
        ("TRUNCATE emp", "postgres", False),
        ("BEGIN", "sqlite", False),
        ("ROLLBACK", "sqlite", False),
        ("SAVEPOINT a", "sqlite", False),
        ("CREATE TABLE h AS SELECT 1", "sqlite", False),
        ("DROP TABLE h", "sqlite", False),
        ("REPLACE INTO emp SELECT * FROM emp", "sqlite", False),
        ("SELECT 'open", "sqlite", False),
    ],
)
def test_pure_reads_are_told_by_their_words(sql: str, engine: Engine, reads: bool) -> None:
    """What may change anything, or ends a transaction, is no pure read; nor is what is in doubt."""
    assert only_reads(sql, engine) is reads


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


def names_of(engine: Engine) -> list[str]:
    """Every word that the parser has a rule for: types, functions, keywords and their brackets."""
    from sqlglot.dialects.dialect import Dialect

    dialect = Dialect.get_or_raise(engine)
    words = {*dialect.tokenizer_class.KEYWORDS, *dialect.parser_class.FUNCTIONS}
    words |= set(dialect.parser_class.FUNCTION_PARSERS) | set(
        dialect.parser_class.NO_PAREN_FUNCTION_PARSERS
    )
    return sorted(word for word in words if word.replace("_", "a").replace(" ", "a").isalnum())


SHAPES = [
    *(("{}(", ")"), ("{}[", "]"), ("{}<", ">"), ("1::{}(", ")"), ("{}(1, ", ")"), ("a {} (", ")")),
    *(("CAST(1 AS {}(", "))"), ("(SELECT {} ", ")"), ("(a {} 1 AND ", ")"), ("{}(DISTINCT ", ")")),
]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("shape", SHAPES, ids=[left for left, _ in SHAPES])
def test_no_word_of_the_parser_doubles_with_each_level(
    engine: Engine, shape: tuple[str, str]
) -> None:
    """Neither the steps nor the tree: ``date(date(`` is read twice on each level, ``sort_array(1,
    sort_array(`` is copied. Texts of a few levels, since a deep one would never end.
    """
    for word in names_of(engine):
        left, right = shape[0].format(word), shape[1]
        sql = "SELECT " + left * 9 + "1" + right * 9 + " FROM t"
        tree = parse(sql, engine)
        size = len(tokens(sql, engine) or ())
        assert tree is None or len(list(tree.walk())) <= 8 * size, sql


@pytest.mark.parametrize("word", ["date(", "ARRAY[", "char(", "decimal(", "timestamp(", "struct("])
def test_what_takes_too_many_steps_is_tangled(word: str) -> None:
    """And then it is worth nothing, while a few levels are read."""
    closing = "]" if word.endswith("[") else ")"
    deep = touched("SELECT " + word * 20 + "a" + closing * 20 + " FROM t", "postgres")
    assert (deep.readable, deep.tangled, deep.constant) == (False, True, True)
    few = touched("SELECT " + word * 4 + "a" + closing * 4 + " FROM t", "postgres")
    assert (few.readable, few.tangled, few.constant) == (True, False, False)


def test_subscripts_are_few() -> None:
    """Of ``a[1][1]...`` the parser computes each anew for the next one."""
    assert touched("SELECT a" + "[1]" * 1300 + " FROM t", "postgres").tangled
    assert not touched("SELECT a" + "[1]" * 20 + " FROM t", "postgres").tangled


def test_stars_do_not_double_without_bound() -> None:
    """Each CTE has twice the columns of the one before; no database has so many."""
    doubling = ", ".join(f"c{n} AS (SELECT * FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 40))
    assert touched(f"WITH c0 AS (SELECT 'x' AS x), {doubling} SELECT * FROM c39, t").tangled
    few = ", ".join(f"c{n} AS (SELECT * FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 4))
    assert len(touched(f"WITH c0 AS (SELECT 'x' AS x), {few} SELECT * FROM c3, t").written) == 8
    assert not touched(f"WITH c0 AS (SELECT x FROM t), {few} SELECT * FROM c3").written


def test_a_parser_that_cannot_count_is_given_little_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled parser can be neither extended nor watched; deep texts are not tried then."""
    from toolenvs.grading import sql_parser

    class Compiled:
        """Refuses as a compiled parser's subclass does."""

        def __init__(self, **_: object) -> None:
            raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(sql_parser, "_counting", lambda engine: Compiled)
    touched.cache_clear()
    assert touched("SELECT upper(trim(a)) FROM t").columns == {"a"}
    assert touched("SELECT " + "f(" * 9 + "a" + ")" * 9 + " FROM t").tangled
    touched.cache_clear()


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
        ("SELECT xmin, e.ctid FROM e", "postgres", ["xmin", "ctid"]),
        ("SELECT current_user", "postgres", ["current_user"]),
        ("SELECT a FROM t WHERE d < 'yesterday'", "postgres", ["'yesterday'"]),
        ("SELECT a FROM t WHERE d BETWEEN 'today' AND 'x'", "postgres", ["'today'"]),
        ("SELECT 'now' AS ctid, \"user\" FROM t WHERE k IN ('a', 'b')", "postgres", []),
        ("SELECT ctid FROM t WHERE k = 'now'", "sqlite", []),
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
