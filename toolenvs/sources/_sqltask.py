"""What every SQL source's row becomes: a question about a database, and the task made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolenvs.types import Database, Task

_ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a data set.

    Attributes:
        id: stable text id, unique in its source.
        text: what is asked.
        gold: the gold query, or the statements that make the changes that are asked for.
        database: what it is asked of; its digest is filled in when the task is drawn.
        hint: what else the data set tells the agent, such as BIRD's evidence.
        grading: settings of ``SqlPolicy``.
        data: whatever else the row held.
        given: ``text`` is the whole prompt; nothing is put around it.
    """

    id: str
    text: str
    gold: str
    database: Database
    hint: str = ""
    grading: Mapping[str, Any] = {}
    data: Mapping[str, Any] = {}
    given: bool = False

    def task(self) -> Task:
        """The task, whose gold calls look at the schema and try the gold before they submit it."""
        changes = self.database.writable
        return Task(
            id=self.id,
            family="sql",
            prompt=self.text if self.given else prompt(self),
            answer=self.gold,
            grading={"mode": "state", **self.grading} if changes else self.grading,
            gold_calls=gold_calls(self.gold),
            data=self.data,
            database=self.database,
        )


def prompt(question: Question) -> str:
    """What the agent reads: what to do on which database, the question, and the hint."""
    database = question.database
    if database.writable:
        head = f"Change the {_ENGINES[database.engine]} database {database.name!r} as asked."
    else:
        head = f"Write one query for the {_ENGINES[database.engine]} database {database.name!r}."
    lines = [head, "", question.text.strip()]
    if question.hint.strip():
        lines += ["", f"Hint: {question.hint.strip()}"]
    return "\n".join(lines)


def gold_calls(gold: str) -> tuple[dict[str, Any], ...]:
    """Look at the schema, run the gold, submit it."""
    return (
        {"name": "sql_schema", "arguments": {}},
        {"name": "sql_query", "arguments": {"sql": gold}},
        {"name": "submit_sql", "arguments": {"sql": gold}},
    )
