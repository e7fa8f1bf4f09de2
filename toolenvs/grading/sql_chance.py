"""Whether a query depends on the clock or on chance, read from its tokens."""

from __future__ import annotations

from toolenvs.grading.sql_policy import Engine
from toolenvs.grading.sql_reading import Token, tokens

_CLOCK_WORDS = """
NOW CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_DATETIME LOCALTIME LOCALTIMESTAMP
CLOCK_TIMESTAMP STATEMENT_TIMESTAMP TRANSACTION_TIMESTAMP TIMEOFDAY GETDATE SYSDATE
"""
_CHANCE_WORDS = """
RANDOM RANDOMBLOB RAND GEN_RANDOM_UUID UUID_GENERATE_V4 UUID_GENERATE_V1 UUID SETSEED NEXTVAL
CURRVAL LASTVAL TXID_CURRENT PG_BACKEND_PID LAST_INSERT_ROWID CHANGES TOTAL_CHANGES PG_SLEEP
SQLITE_VERSION VERSION
"""
_SYSTEM_WORDS = """
XMIN XMAX CMIN CMAX CTID TABLEOID CURRENT_USER SESSION_USER CURRENT_ROLE USER CURRENT_CATALOG
"""
_DATE_WORDS = """
DATE TIME DATETIME JULIANDAY STRFTIME UNIXEPOCH TIMEDIFF TIMESTAMP TIMESTAMPTZ TO_DATE
TO_TIMESTAMP DATE_TRUNC DATE_PART EXTRACT CAST AGE
"""
_UNSTEADY = frozenset((_CLOCK_WORDS + _CHANCE_WORDS).split())
_BARE = frozenset(
    ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP")
)
_SYSTEM = frozenset(_SYSTEM_WORDS.split())
"""Of PostgreSQL: where a row lies and who asks."""
_COMPARES = frozenset(("=", "<", ">", "<=", ">=", "<>", "!=", "BETWEEN", "AND", "-", "+"))
_DATE_FUNCTIONS = frozenset(_DATE_WORDS.split())
_NOW_IF_EMPTY = frozenset(("DATE", "TIME", "DATETIME", "JULIANDAY", "UNIXEPOCH"))  # of SQLite
_NOW = frozenset(("now", "today", "tomorrow", "yesterday"))
_NOTHING = Token("", "")


def chancy_words(sql: str, engine: Engine = "sqlite") -> list[str]:
    """The words by which a query depends on the clock or on chance, in order, each once.

    Read from its tokens: functions such as ``random()`` and ``now()``, ``CURRENT_DATE``, a text
    ``'now'`` or ``'today'`` inside a date function, a cast or beside a type, date functions of
    SQLite without a time (``date()``, ``strftime('%Y')``), and ``age(x)`` with one argument. Of
    PostgreSQL also such a text where it is compared, for it may be taken for a date, system columns
    (``ctid``) and the role that asks.
    """
    words = tokens(sql, engine) or ()
    found: list[str] = []
    calls: list[_Call] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else _NOTHING
        after = words[place + 1] if place + 1 < len(words) else _NOTHING
        if word.kind == "string":
            dated = after.text == "::" or before.text in _DATE_FUNCTIONS or _in_date(calls)
            compared = engine == "postgres" and {before.text, after.text} & _COMPARES
            if (dated or compared) and word.text.strip().lower() in _NOW:
                found.append(f"'{word.text}'")
        elif word.kind != "word":
            continue
        elif word.text == "(":
            calls.append(_Call(before.text if before.kind == "word" else ""))
        elif word.text == ")" and calls:
            call = calls.pop()
            if call.is_unsteady(engine, empty=before.text == "("):
                found.append(f"{call.name.lower()}()")
        elif word.text == "," and calls:
            calls[-1].commas += 1
        elif _is_bare(word, before, after, engine):
            found.append(word.text.lower())
        elif word.text == "TABLESAMPLE":
            found.append("tablesample")
    return list(dict.fromkeys(found))


def _is_bare(word: Token, before: Token, after: Token, engine: Engine) -> bool:
    """Tell whether a word without brackets stands for a value that changes."""
    if word.text in _BARE:
        return after.text != "(" and before.text != "."
    return engine == "postgres" and word.text in _SYSTEM and before.text != "AS"


class _Call:
    """An open bracket and the word before it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.commas = 0

    def is_unsteady(self, engine: Engine, *, empty: bool) -> bool:
        """Tell whether the function gives another value each time or day."""
        if self.name in _UNSTEADY:
            return True
        if self.name == "AGE":
            return not self.commas and not empty
        if engine != "sqlite":
            return False
        return (empty and self.name in _NOW_IF_EMPTY) or (
            self.name == "STRFTIME" and not self.commas
        )


def _in_date(calls: list[_Call]) -> bool:
    return any(call.name in _DATE_FUNCTIONS for call in calls)
