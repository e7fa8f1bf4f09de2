"""Gold SQL on its database: read as strictly as an agent's, run, and judged at load.

Golds are trusted texts of a data set; they run on this machine, read-only, by the same code that
runs statements in a sandbox.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolenvs.errors import DataError
from toolenvs.grading.sql import grade_state
from toolenvs.grading.sql_fitness import GoldFinding, examine_gold
from toolenvs.grading.sql_policy import Engine, SqlPolicy, read_policy
from toolenvs.grading.sql_reading import split_statements
from toolenvs.sources._sql_reordered import asks_for_places, reordered

Ask = Callable[..., Mapping[str, Any]]

_MOST_ROWS = 10_000  # what the reward compares at most
_MOST_BYTES = 8 << 20
_TIMEOUT_S = 10.0
_REORDERED_TIMEOUT_S = 3.0
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | (?P<name>"(?:[^"]|"")*") | `(?:[^`]|``)*` | \[[^\]]*\]
    | --[^\n]* | /\*.*?\*/ | .""",
    re.VERBOSE | re.DOTALL,
)


def with_plain_texts(sql: str, database: Path) -> str:
    """Write the texts that a query has in double quotes in single ones.

    SQLite takes ``WHERE city = "Oslo"`` for a text where no column has that name. Agents' queries
    are read strictly, and so are golds. Which of the two a word is, SQLite itself says: in
    backquotes it can only be a name.

    Args:
        sql: statements for SQLite.
        database: the file that they are for. Where it is missing nothing is rewritten.
    """
    if '"' not in sql or not database.is_file():
        return sql
    pieces = [(m[0], m.lastgroup == "name") for m in _TOKEN.finditer(sql)]
    with contextlib.closing(sqlite3.connect(_read_only(database), uri=True)) as connection:
        for place, (piece, quoted) in enumerate(pieces):
            if not quoted:
                continue
            word = piece[1:-1].replace('""', '"')
            as_name = _joined(pieces, place, f"`{word.replace('`', '``')}`")
            if _is_unknown_column(connection, as_name, word):
                pieces[place] = (f"'{word.replace(chr(39), chr(39) * 2)}'", False)
    return _joined(pieces)


def _joined(pieces: Sequence[tuple[str, bool]], place: int = -1, other: str = "") -> str:
    return "".join(other if n == place else piece for n, (piece, _) in enumerate(pieces))


def _is_unknown_column(connection: sqlite3.Connection, sql: str, word: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {sql}").close()
    except sqlite3.Error as error:
        return str(error) == f"no such column: {word}"
    return False


def _read_only(database: Path) -> str:
    return f"file:{quote(str(database.absolute()))}?mode=ro&immutable=1"


def examine(gold: str, database: Path, *, grading: Mapping[str, Any]) -> GoldFinding:
    """Say why the task of a gold must never pay, if so, and what else is to be known of it.

    A gold is fit if it runs, returns rows, depends neither on the clock nor on chance, and neither
    a tie at a LIMIT nor the order in which rows lie decides its result (see ``examine_gold``); one
    that changes the database, if it does change it.

    Args:
        gold: one query, or the statements that change the database.
        database: a SQLite file.
        grading: the task's settings of ``SqlPolicy``.
    """
    policy = read_policy(grading)
    with _asking(database) as ask:
        if policy.mode == "state":
            return GoldFinding(_why_no_change(gold, ask, policy))
        return examine_gold(
            gold,
            lambda sql: ask("query", sql=sql),
            reordered=lambda sql: _on_other_order(sql, database),
            policy=policy,
        )


def _on_other_order(sql: str, database: Path) -> Mapping[str, Any]:
    """The result of a query on the same rows in another order; an error says why there is none."""
    why = "it reads where its rows lie" if asks_for_places(sql) else ""
    try:
        if not why:
            with reordered(database) as copy, _asking(copy) as ask:
                return ask("query", sql=sql, timeout_s=_REORDERED_TIMEOUT_S)
    except DataError as error:
        why = str(error)
    return {"error": {"kind": "unavailable", "message": why}}


def rows_of(sql: str, database: Path) -> Mapping[str, Any]:
    """The result of one query in the JSON form of results; a failure is one, too."""
    with _asking(database) as ask:
        return ask("query", sql=sql)


def examine_asked(
    gold: str, ask: Ask, *, grading: Mapping[str, Any], engine: Engine
) -> GoldFinding:
    """The same by requests on a database of any engine, whose rows lie in one order alone."""
    policy = read_policy(grading)
    if policy.mode == "state":
        return GoldFinding(_why_no_change(gold, ask, policy, engine))
    return examine_gold(gold, lambda sql: ask("query", sql=sql), policy=policy, engine=engine)


def _why_no_change(gold: str, ask: Ask, policy: SqlPolicy, engine: Engine = "sqlite") -> str:
    before, after = (
        ask("state", statements=statements) for statements in ([], split_statements(gold, engine))
    )
    if "stopped" in after or "error" in after:
        error = after.get("stopped") or after["error"]
        return f"the gold does not run: {error['message']}"
    verdict = grade_state(before, after, after, policy=policy)
    if verdict.gradable:
        return ""
    unchanged = verdict.rule == "gold_unchanged"
    return "the gold changes nothing" if unchanged else f"the gold is not gradable: {verdict.rule}"


@contextlib.contextmanager
def _asking(database: Path) -> Iterator[Ask]:
    """Requests on one database, see ``toolenvs.database.answers``."""
    from toolenvs.database import Answerer, SqliteEngine

    answerer = Answerer({"sqlite": SqliteEngine({"here": str(database.parent.absolute())})})
    try:
        yield ask_of(answerer.answer, {"place": f"here/{database.name}"})
    finally:
        answerer.close()


def ask_of(answer: Callable[[str], str], database: Mapping[str, Any]) -> Ask:
    """Requests on a database, with the limits of golds.

    Args:
        answer: answers a request of ``toolenvs.database`` as JSON.
        database: which database, as a request names it.
    """

    def ask(operation: str, **wanted: Any) -> Mapping[str, Any]:
        request = {
            "op": operation,
            "database": database,
            "max_rows": _MOST_ROWS,
            "max_bytes": _MOST_BYTES,
            "timeout_s": _TIMEOUT_S,
            **wanted,
        }
        found: Mapping[str, Any] = json.loads(answer(json.dumps(request)))
        return found

    return ask
