"""Do the agent's calls touch the tables and columns that the gold query uses?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolenvs.grading.sql_policy import Engine, read_policy
from toolenvs.grading.sql_reading import split_statements, touched
from toolenvs.rewards._sql_evidence import QUERY, SCHEMA, calls_of
from toolenvs.types import Score, Task, ToolCall, ToolResult, Trajectory

Names = frozenset[tuple[str, str]]
_SPREAD, _FREE = 4, 12


class SchemaRecall:
    """The share of the gold query's tables and columns that successful calls have touched.

        score = |touched by any call so far, and used by the gold| / |used by the gold|

    In [0, 1]; it never falls, so exploring is never punished. A table is touched by a query that
    reads it and by ``sql_schema`` if the call names it; a column by a query that names it (``*``
    names none). Names are compared without regard to case, columns without their table. So that
    naming everything is no way to score, a call counts only if it touches at most 4 times as many
    names as the gold uses, or 12. Of several golds the one that is nearest counts. Masked where the
    gold cannot be parsed.
    """

    name: str = "schema_recall"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the calls suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Compare the names; the reason lists the gold's that were not touched by their number."""
        if not prefix.steps or task.database is None:
            return Score(0.0, "no calls yet")
        engine = task.database.engine
        golds = [_used_by(gold, engine) for gold in _golds(task)]
        golds = [gold for gold in golds if gold]
        if not golds:
            return Score(0.0, "the gold cannot be parsed", masked=True)
        calls = [_of_query(arguments, engine) for arguments, _ in _successful(prefix, QUERY)]
        calls += [_of_schema(arguments) for arguments, _ in _successful(prefix, SCHEMA)]
        shares = [(len(_found(gold, calls)) / len(gold), len(gold)) for gold in golds]
        share, size = max(shares)
        return Score(share, f"{round(share * size)} of {size} names of the gold touched")


def _golds(task: Task) -> tuple[str, ...]:
    return (task.answer, *read_policy(task.grading).alternatives)


def _used_by(gold: str, engine: Engine) -> Names:
    return frozenset().union(*(_names(statement, engine) for statement in _parts(gold, engine)))


def _parts(gold: str, engine: Engine) -> list[str]:
    return split_statements(gold, engine)


def _names(sql: str, engine: Engine) -> Names:
    names = touched(sql, engine)
    tables = {("table", name) for name in names.tables}
    return frozenset(tables | {("column", name) for name in names.columns})


def _of_query(arguments: Mapping[str, Any], engine: Engine) -> Names:
    return _names(str(arguments.get("sql", "")), engine)


def _of_schema(arguments: Mapping[str, Any]) -> Names:
    tables = arguments.get("tables") or ()
    listed = [tables] if isinstance(tables, str) else tables
    return frozenset(("table", str(name).lower()) for name in listed)


def _successful(prefix: Trajectory, name: str) -> list[tuple[Mapping[str, Any], ToolResult]]:
    return [call for call in calls_of(prefix.steps, name) if call[1].error is None]


def _found(gold: Names, calls: Sequence[Names]) -> Names:
    """The gold's names that calls touched which do not touch everything."""
    most = max(_FREE, _SPREAD * len(gold))
    return frozenset(name for call in calls if len(call) <= most for name in call & gold)
