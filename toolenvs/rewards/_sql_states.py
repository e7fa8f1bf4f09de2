"""What a task that asks for changes is judged by: tables before, after the gold, after the agent.

The agent's statements are those submitted. Where they can change nothing (a pure read, none, or a
text too long to be read), they are what the episode's own ``sql_query`` calls did: all that ran and
were no pure reads run again, in order, with their transactions; what is not committed in the end is
undone. A call that lost the session gave the episode a fresh copy: what was before it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolenvs.grading.sql_reading import MAX_CHARACTERS, only_reads, split_statements
from toolenvs.rewards._sql_evidence import QUERY, answer_to, calls_of, state_call, submitted_sql
from toolenvs.types import Task, ToolCall, Trajectory


class States(msgspec.Struct, frozen=True):
    """Three states of a database, as ``sql_after`` tells them."""

    before: Mapping[str, Any]
    gold: Mapping[str, Any]
    submitted: Mapping[str, Any]


def state_calls(task: Task, prefix: Trajectory, *, max_rows: int) -> list[ToolCall]:
    """The private calls for the three states, in the order of ``States``."""
    assert task.database is not None
    gold = split_statements(task.answer, task.database.engine)
    return [state_call(s, max_rows=max_rows) for s in ([], gold, _statements_of(task, prefix))]


def find_states(task: Task, prefix: Trajectory, *, max_rows: int) -> States | None:
    """What the referee found at the last step; None where it was not asked."""
    calls = state_calls(task, prefix, max_rows=max_rows)
    found = [answer_to(call, prefix.steps[-1]) for call in calls]
    before, gold, submitted = found
    if before is None or gold is None or submitted is None:
        return None
    return States(before, gold, submitted)


def _statements_of(task: Task, prefix: Trajectory) -> list[str]:
    assert task.database is not None
    engine = task.database.engine
    sql = submitted_sql(prefix.steps[-1]) or ""
    handed_in = split_statements(sql, engine) if len(sql) <= MAX_CHARACTERS else []
    if not all(only_reads(statement, engine) for statement in handed_in):
        return handed_in
    return [sql for sql in _standing(prefix) if not only_reads(sql, engine)]


def _standing(prefix: Trajectory) -> list[str]:
    """The statements that ran in the session that the episode ended with."""
    ran: list[str] = []
    for arguments, result in calls_of(prefix.steps, QUERY):
        if result.data.get("session_lost"):
            ran = []
        elif result.error is None:
            ran.append(str(arguments.get("sql", "")))
    return ran
