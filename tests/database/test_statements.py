"""Statements are found in a text and handed on as they were written."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.database import Fault
from toolenvs.database.statements import MAX_CHARS, Dialect, sole_statement, statements, words

PIECES = [
    *("a", "1", "E", "END", "BEGIN", "CREATE", "TRIGGER", " ", "\n", ";", "'", '"', "`", "[", "]"),
    *(
        "--",
        "/*",
        "*/",
        "$",
        "$$",
        "$a$",
        "\\",
        "\ufeff",
        "é",
        "-",
        "/",
        "''",
        "E'",
        "```",
        "```sql",
    ),
]
DIALECTS: list[Dialect] = ["sqlite", "postgres"]


def found(text: str, dialect: Dialect = "sqlite") -> list[str]:
    """The statements in a text, without the blanks around them."""
    return [statement.strip() for statement in statements(text, dialect)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1;; ;\n", ["SELECT 1"]),
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("-- best; paid\nSELECT 1", ["-- best; paid\nSELECT 1"]),
        ("SELECT 1; -- done; really", ["SELECT 1"]),
        ("SELECT 1 -- done", ["SELECT 1 -- done"]),
        ("/* a; */ SELECT 1 /* ; ", ["/* a; */ SELECT 1 /* ;"]),
        ("SELECT ';', 'it''s;', \"a;\"\"b\"", ["SELECT ';', 'it''s;', \"a;\"\"b\""]),
        ("\ufeffSELECT 1", ["SELECT 1"]),
        ("", []),
        ("-- nothing here", []),
        (" ; ; /* */ ;", []),
        ("SELECT 'no end; x", ["SELECT 'no end; x"]),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_semicolons_in_texts_and_comments_end_nothing(
    text: str, expected: list[str], dialect: Dialect
) -> None:
    """In both dialects."""
    assert found(text, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("sqlite", "SELECT `a;b`, [c;d]; SELECT 2", ["SELECT `a;b`, [c;d]", "SELECT 2"]),
        ("postgres", "SELECT a[1]; SELECT 2", ["SELECT a[1]", "SELECT 2"]),
        (
            "postgres",
            "SELECT $$;$$, $a$;$$;$a$; SELECT 2",
            ["SELECT $$;$$, $a$;$$;$a$", "SELECT 2"],
        ),
        ("postgres", "SELECT E'\\';', 'a\\'; SELECT 2", ["SELECT E'\\';', 'a\\'", "SELECT 2"]),
        ("postgres", "/* a /* b */ ; */ SELECT 1; SELECT 2", 2),
        ("sqlite", "/* a /* b */ SELECT 1; SELECT 2", 2),
        ("postgres", "SELECT a$b$c; SELECT 2", ["SELECT a$b$c", "SELECT 2"]),
        ("postgres", "SELECT $1; SELECT 2", ["SELECT $1", "SELECT 2"]),
        ("postgres", "SELECT 1 -- x\r; COMMIT", ["SELECT 1 -- x", "COMMIT"]),
        ("sqlite", "SELECT 1 -- x\r; COMMIT", ["SELECT 1 -- x\r; COMMIT"]),
        ("postgres", "SELECT é$$; COMMIT; SELECT é$$", 3),
        ("postgres", "SELECT $é$;$é$; SELECT 2", ["SELECT $é$;$é$", "SELECT 2"]),
        ("postgres", "SELECT $é€$;$é€$", 1),
        ("postgres", "SELECT 1$$;$$", 1),
        ("postgres", "SELECT 1\u00a0$$; COMMIT; $$", 3),
    ],
)
def test_each_engine_has_its_own_quotes(
    dialect: Dialect, text: str, expected: list[str] | int
) -> None:
    """Brackets, backticks, dollars, backslashes, and comments inside comments."""
    result = found(text, dialect)
    assert (len(result) if isinstance(expected, int) else result) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a from t", ["SELECT", "A"]),
        ("-- a\r/* b /* c */ */ ((with x", ["WITH", "X"]),
        ("create Or replace view v", ["CREATE", "OR"]),
        ("", []),
    ],
)
def test_the_first_words_are_those_that_the_server_reads(text: str, expected: list[str]) -> None:
    """Comments and brackets come before them."""
    assert words(text, "postgres", most=2) == expected


@pytest.mark.parametrize(
    "head",
    ["CREATE TRIGGER", "create temp trigger", "CREATE TEMPORARY TRIGGER", "EXPLAIN CREATE TRIGGER"],
)
def test_a_trigger_is_one_statement(head: str) -> None:
    """The semicolons of its body are its own."""
    trigger = f"{head} t AFTER INSERT ON a BEGIN UPDATE a SET b=1; SELECT ';'; END"
    assert found(f"{trigger}; SELECT 2") == [trigger, "SELECT 2"]
    assert found("CREATE TABLE trigger(a); SELECT 2") == ["CREATE TABLE trigger(a)", "SELECT 2"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(DIALECTS))
def test_nothing_is_lost_and_nothing_fails(text: str, dialect: Dialect) -> None:
    """For all texts: what is found stands in the text, in order."""
    place = 0
    for statement in statements(text, dialect):
        place = text.index(statement, place) + len(statement)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_sqlite_agrees_on_what_is_one_statement(text: str) -> None:
    """For all texts: where we see one statement, SQLite runs no second one."""
    try:
        sole = sole_statement(text, "sqlite")
    except Fault:
        return
    connection = sqlite3.connect(":memory:")
    problem = ""
    try:
        connection.execute(sole)
    except (sqlite3.Error, sqlite3.Warning) as error:  # from 3.12 on it is an Error
        problem = str(error)
    connection.close()
    assert "one statement at a time" not in problem


@pytest.mark.parametrize(
    "text",
    [
        "```sql\nSELECT 1;\n```",
        "```\nSELECT 1\n```",
        "\n```SQL\r\nSELECT 1;```  \n",
        "```sqlite\nSELECT 1; -- done\n```",
    ],
)
def test_S10_a_fence_around_it_all_is_no_part_of_it(text: str) -> None:
    """S10 b: whatever language it names."""
    assert sole_statement(text, "sqlite").strip() == "SELECT 1"


def test_S10_a_fence_within_is_left_alone() -> None:
    """S10: a text is not rewritten for what stands in it."""
    text = "SELECT '```sql\nx\n```'"
    assert sole_statement(text, "sqlite") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1; SELECT 2", "One statement per call: this holds 2"),
        ("-- nothing", "empty"),
        ("", "empty"),
        (";;", "empty"),
        ("```sql\n```", "empty"),
        ("SELECT 'a\0b'", "NUL"),
        ("SELECT '\ud800'", "no Unicode"),
        ("SELECT " + "1" * MAX_CHARS, "longer than 200,000"),
    ],
)
def test_S10_what_is_not_one_statement_says_so(text: str, words: str) -> None:
    """S10 e, f, g: a clear error of the kind ``bad_arguments``."""
    with pytest.raises(Fault, match=words) as caught:
        sole_statement(text, "sqlite")
    assert caught.value.kind == "bad_arguments"


@pytest.mark.parametrize(
    "piece",
    [
        "create trigger a begin;",
        "/*",
        "'",
        "-",
        "[",
        "$a$",
        "E'\\",
        "\n",
        "```",
        "`",
        "/*--\n",
        ";",
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_text_takes_long_to_look_at(piece: str, dialect: Dialect) -> None:
    """The longest texts of the worst pieces are done before the test's own limit."""
    text = (piece * (MAX_CHARS // len(piece) + 1))[:MAX_CHARS]
    assert sum(1 for _ in statements(text, dialect)) <= MAX_CHARS
