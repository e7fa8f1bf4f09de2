"""What can be read from the text of a query, by parsing it (sqlglot); nothing is ever run.

Texts come from agents too: their size and nesting are looked at before they are parsed, the steps
of the parser are counted, and what cannot be read is a value (``None``, ``readable=False``), never
an exception.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolenvs.grading.sql_functions import is_catalogue, pinned_by
from toolenvs.grading.sql_lineage import TangledError, follow, literals_of
from toolenvs.grading.sql_origin import Column
from toolenvs.grading.sql_parser import TooManyStepsError, parse_within
from toolenvs.grading.sql_policy import Engine

MAX_CHARACTERS = 20_000
_MOST_TOKENS = 4_000
_DEEPEST = 24  # nested brackets and CASEs; the parser needs some 20 frames for each
_MOST_PREFIXES = 50  # NOT NOT NOT ...
_MOST_SUBSCRIPTS = 100  # the parser computes each anew for the next: a[1][1]...
_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"))
_STATEMENTS = _CHANGES | {"SELECT", "WITH", "VALUES", "("}
_READS = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "SHOW"))
_MAKE_CHANGES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "INTO"))  # in a WITH, or SELECT


class Token(msgspec.Struct, frozen=True):
    """A word of a statement.

    Attributes:
        kind: ``"string"``, ``"name"`` (quoted), ``"word"`` (also numbers and signs).
        text: without quotes; words in capitals.
    """

    kind: str
    text: str


def tokens(sql: str, engine: Engine = "sqlite") -> tuple[Token, ...] | None:
    """The words of ``sql`` without comments; None if it is too long or has an open quote."""
    text = _tokenized(sql, engine)
    return text.words if text is not None else None


class _Text(NamedTuple):
    """A text and its tokens: ``found`` as the parser has them."""

    sql: str
    found: tuple[Any, ...]
    words: tuple[Token, ...]


@functools.lru_cache(maxsize=16)  # the next reader of the same text; they may be long
def _tokenized(sql: str, engine: Engine) -> _Text | None:
    if len(sql) > MAX_CHARACTERS:
        return None
    import sqlglot
    from sqlglot import TokenType

    kinds = {TokenType.STRING: "string", TokenType.IDENTIFIER: "name"}
    sole = _sole(sql, engine)
    try:
        found = sqlglot.tokenize(sole, read=engine)
    except Exception:  # whatever a hostile text does to the tokenizer: it is not readable
        return None
    if len(found) > _MOST_TOKENS:
        return None
    words = tuple(_token(token, kinds.get(token.token_type, "word")) for token in found)
    return _Text(sole, tuple(found), words)


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
    try:
        return _parsed(sql, engine)
    except TangledError:
        return None


def _parsed(sql: str, engine: Engine) -> Any:
    """As ``parse``.

    Raises:
        TangledError: The text is so long, or nests so deeply, that it is not tried.
    """
    text = _tokenized(sql, engine)
    if text is None:
        if len(sql) > MAX_CHARACTERS:
            raise TangledError("the text is too long")
        return None
    depth = _depth(text.words)
    if not text.words or text.words[0].text not in _STATEMENTS:
        return None
    try:
        trees = parse_within(text.found, text.sql, engine, depth=depth)
    except (TooManyStepsError, RecursionError):
        raise TangledError("the text takes too long to read") from None
    except Exception:  # whatever a hostile text does to the parser: it is not readable
        return None
    return trees[0] if len(trees) == 1 else None


def _depth(words: tuple[Token, ...]) -> int:
    """How deeply brackets nest.

    Raises:
        TangledError: The parser cannot follow, whatever the depth of the stack it is called at.
    """
    depth = deepest = prefixes = subscripts = 0
    for word in words:
        if word.kind != "word":
            prefixes = 0
            continue
        if word.text in ("(", "[", "{", "CASE"):
            depth += 1
        elif word.text in (")", "]", "}", "END"):
            depth -= 1
        prefixes = prefixes + 1 if word.text in ("NOT", "-", "+", "~", "INTERVAL") else 0
        deepest = max(deepest, depth)
        subscripts += word.text == "["
        if deepest > _DEEPEST or prefixes > _MOST_PREFIXES or subscripts > _MOST_SUBSCRIPTS:
            raise TangledError("the text nests too deeply")
    return deepest


def only_reads(sql: str, engine: Engine = "sqlite") -> bool:
    """Tell whether a statement is empty or a pure read: it can change nothing, whatever it says.

    Transactions, and changes of tables and schemas, are no reads. Told by its words, so that the
    parser need not know it: where it is in doubt it is no read.
    """
    words = tokens(sql, engine)
    if words is None:
        return False
    said = [word.text if word.kind == "word" else "" for word in words]
    while said and said[0] in ("(", ";"):
        said.pop(0)
    if not said or (engine == "sqlite" and said[0] in ("EXPLAIN", "PRAGMA")):
        return True
    locks = ("FOR", "KEY")  # SELECT ... FOR NO KEY UPDATE
    pairs = zip(["", *said], said, strict=False)
    changes = any(text in _MAKE_CHANGES and before not in locks for before, text in pairs)
    return said[0] in _READS and not changes


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


class WrittenColumn(msgspec.Struct, frozen=True):
    """A column that depends on no table, if only in some rows.

    Attributes:
        place: which column of the result it is, counted from the end if negative (behind a ``*``);
            None where that cannot be said.
        literals: the written values that it is made of.
        decided: they differ from row to row, and a table decides whether some of these are there.
    """

    place: int | None
    literals: frozenset[str]
    decided: bool = False


class Touched(msgspec.Struct, frozen=True):
    """The names that a statement uses, in lower case, and what its rows are made of.

    Attributes:
        tables: tables of the database, those that the statement defines itself left out.
        columns: columns, without their table; names that the statement gives are left out.
        constant: True when its rows hold nothing of any table.
        written: the columns of its result that depend on no table.
        looks_up: other columns of its result do.
        literals: all values that are written in it.
        pinned: those that it sets something equal to.
        readable: False when it could not be parsed; then ``constant`` only knows of its words.
        tangled: it is so long, or nests so deeply, that it was not tried; then it is ``constant``.
        changes: True when it changes rows.
    """

    tables: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    constant: bool = False
    written: tuple[WrittenColumn, ...] = ()
    looks_up: bool = False
    literals: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    readable: bool = True
    tangled: bool = False
    changes: bool = False


@functools.lru_cache(maxsize=1024)
def touched(sql: str, engine: Engine = "sqlite") -> Touched:
    """What ``sql`` touches. Never raises, whatever the text.

    >>> sorted(touched("SELECT count(*) FROM emp AS e WHERE e.pay > 3").columns)
    ['pay']
    """
    try:
        tree = _parsed(sql, engine)
        return _touched_by(tree) if tree is not None else _told_by_words(sql, engine)
    except TangledError:
        told = _told_by_words(sql, engine)
        return msgspec.structs.replace(told, tangled=True, constant=not told.changes)


def _told_by_words(sql: str, engine: Engine) -> Touched:
    words = [word.text for word in tokens(sql, engine) or () if word.kind == "word"]
    changes = not _CHANGES.isdisjoint(words)
    reads = "FROM" in words or "TABLE" in words
    return Touched(constant=not reads and not changes, readable=False, changes=changes)


def _touched_by(tree: Any) -> Touched:
    from sqlglot import exp

    changes = tree.find(exp.Insert, exp.Update, exp.Delete, exp.Merge) is not None
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = {
        table.name.lower()
        for table in tree.find_all(exp.Table)
        # A function's rows are no table, and the database's own say nothing of its content.
        if isinstance(table.this, exp.Identifier) and not is_catalogue(table)
    } - defined
    columns = () if changes else follow(tree).columns
    return Touched(
        tables=frozenset(tables),
        columns=frozenset(_columns(tree)),
        constant=not changes and not (tables and any(c.origin.partly for c in columns)),
        written=_written(columns),
        looks_up=any(column.origin.depends for column in columns),
        literals=literals_of(tree),
        pinned=pinned_by(tree),
        changes=changes,
    )


def _written(columns: Sequence[Column]) -> tuple[WrittenColumn, ...]:
    """The columns that depend on no table; a ``*`` hides how many are before or behind it."""
    stars = [place for place, column in enumerate(columns) if column.name is None]
    found: list[WrittenColumn] = []
    for number, column in enumerate(columns):
        origin = column.origin
        if origin.depends:
            continue
        place: int | None = number
        if stars and number >= stars[0]:
            place = number - len(columns) if number > stars[-1] else None
        found.append(WrittenColumn(place, origin.literals, origin.several and origin.chosen))
    return tuple(found)


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
