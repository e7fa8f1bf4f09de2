"""What can be read from the text of a query, by parsing it (sqlglot); nothing is ever run.

Texts come from agents too: their size and nesting are looked at before they are parsed, and what
cannot be read is a value (``None``, ``readable=False``), never an exception.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from toolenvs.grading.sql_policy import Engine

MAX_CHARACTERS = 20_000
_MOST_TOKENS = 4_000
_DEEPEST = 24  # nested brackets and CASEs; the parser needs some 20 frames for each
_MOST_PREFIXES = 50  # NOT NOT NOT ...
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"))
_STATEMENTS = _CHANGES | {"SELECT", "WITH", "VALUES", "("}


class Token(msgspec.Struct, frozen=True):
    """A word of a statement.

    Attributes:
        kind: ``"string"``, ``"name"`` (quoted), ``"word"`` (also numbers and signs).
        text: without quotes; words in capitals.
    """

    kind: str
    text: str


@functools.lru_cache(maxsize=16)  # the next reader of the same text; they may be long
def tokens(sql: str, engine: Engine = "sqlite") -> tuple[Token, ...] | None:
    """The words of ``sql`` without comments; None if it is too long or has an open quote."""
    if len(sql) > MAX_CHARACTERS:
        return None
    import sqlglot
    from sqlglot import TokenType

    kinds = {TokenType.STRING: "string", TokenType.IDENTIFIER: "name"}
    try:
        found = sqlglot.tokenize(_sole(sql, engine), read=engine)
    except Exception:  # whatever a hostile text does to the tokenizer: it is not readable
        return None
    if len(found) > _MOST_TOKENS:
        return None
    return tuple(_token(token, kinds.get(token.token_type, "word")) for token in found)


def _token(token: Any, kind: str) -> Token:
    text = token.text if kind != "word" else token.text.upper()
    return Token(kind, text)


def split_statements(text: str, engine: Engine = "sqlite") -> list[str]:
    """The statements of ``text``, as the database would find them."""
    from toolenvs.database.statements import statements

    return list(statements(text, engine))


def _sole(sql: str, engine: Engine) -> str:
    """The text as the database reads it: without a fence around it, for one."""
    from toolenvs.database.faults import Fault
    from toolenvs.database.statements import sole_statement

    try:
        return sole_statement(sql, engine)
    except Fault:
        return sql


def parse(sql: str, engine: Engine = "sqlite") -> Any:
    """A fresh syntax tree of one statement that reads or changes rows, else None.

    Args:
        sql: one statement; a semicolon may end it.
        engine: whose dialect it is written in.
    """
    words = tokens(sql, engine)
    if not words or not _is_small(words) or words[0].text not in _STATEMENTS:
        return None
    import sqlglot

    try:
        trees = sqlglot.parse(_sole(sql, engine), read=engine)
    except Exception:  # whatever a hostile text does to the parser: it is not readable
        return None
    trees = [tree for tree in trees if tree is not None]
    return trees[0] if len(trees) == 1 else None


def _is_small(words: tuple[Token, ...]) -> bool:
    """Tell whether the parser can follow, whatever the depth of the stack that it is called at."""
    depth = prefixes = 0
    for word in words:
        if word.kind != "word":
            prefixes = 0
            continue
        if word.text in ("(", "[", "{", "CASE"):
            depth += 1
        elif word.text in (")", "]", "}", "END"):
            depth -= 1
        prefixes = prefixes + 1 if word.text in ("NOT", "-", "+", "~", "INTERVAL") else 0
        if depth > _DEEPEST or prefixes > _MOST_PREFIXES:
            return False
    return True


def unwrapped(tree: Any) -> Any:
    """The query inside brackets that add nothing to it."""
    from sqlglot import exp

    while isinstance(tree, exp.Subquery) and not any(
        tree.args.get(part) for part in ("order", "limit", "offset", "alias", "with_", "with")
    ):
        tree = tree.this
    return tree


def projections(tree: Any) -> list[Any]:
    """The expressions that the columns of a query's result are, of a compound its first part's."""
    from sqlglot import exp

    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    return list(tree.expressions) if isinstance(tree, exp.Select) else []


class Touched(msgspec.Struct, frozen=True):
    """The names that a statement uses, in lower case.

    Attributes:
        tables: tables of the database, those that the statement defines itself left out.
        columns: columns, without their table; names that the statement gives are left out.
        constant: True when its rows hold nothing of any table: no table is read, or every column is
            written out in the statement.
        readable: False when it could not be parsed; then ``constant`` only knows of its words.
        changes: True when it changes rows.
    """

    tables: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    constant: bool = False
    readable: bool = True
    changes: bool = False


@functools.lru_cache(maxsize=1024)
def touched(sql: str, engine: Engine = "sqlite") -> Touched:
    """What ``sql`` touches. Never raises, whatever the text.

    >>> sorted(touched("SELECT count(*) FROM emp AS e WHERE e.pay > 3").columns)
    ['pay']
    """
    tree = parse(sql, engine)
    if tree is None:
        words = tokens(sql, engine) or ()
        reads = any(word.kind == "word" and word.text == "FROM" for word in words)
        changes = any(word.kind == "word" and word.text in _CHANGES for word in words)
        return Touched(constant=not reads and not changes, readable=False, changes=changes)
    from sqlglot import exp

    changes = tree.find(exp.Insert, exp.Update, exp.Delete, exp.Merge) is not None
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = {
        table.name.lower()
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)  # a function's rows are no table
    } - defined
    return Touched(
        tables=frozenset(tables),
        columns=frozenset(_columns(tree)),
        constant=not changes and (not tables or _is_written_out(unwrapped(tree))),
        changes=changes,
    )


def _columns(tree: Any) -> Iterator[str]:
    from sqlglot import exp

    given = {
        alias.alias.lower()
        for alias in tree.find_all(exp.Alias)
        if alias.alias.lower() != alias.this.name.lower()
    }
    for column in tree.find_all(exp.Column):
        name = column.name.lower()
        if name not in given or column.table:
            yield name
    for join in tree.find_all(exp.Join):
        for identifier in join.args.get("using") or ():
            yield identifier.name.lower()
    for target in tree.find_all(exp.Schema):  # INSERT INTO t (a, b)
        yield from (identifier.name.lower() for identifier in target.expressions)


def _is_written_out(tree: Any) -> bool:
    """Tell whether no column of a query's rows depends on a table."""
    from sqlglot import exp

    if isinstance(tree, exp.SetOperation):
        return _is_written_out(unwrapped(tree.this)) and _is_written_out(unwrapped(tree.expression))
    if not isinstance(tree, exp.Select):
        return False
    reads = (exp.Column, exp.Star, exp.AggFunc, exp.Window, exp.Subquery, exp.Exists, exp.Select)
    return not any(expression.find(*reads) for expression in tree.expressions)
