"""How much of the gold's result do the agent's queries return?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolenvs.grading.sql_overlap import changes_overlap, overlap
from toolenvs.grading.sql_policy import read_policy
from toolenvs.grading.sql_reading import touched
from toolenvs.grading.sql_written import bars_between
from toolenvs.ranges import checked_whole
from toolenvs.rewards._sql_evidence import (
    QUERY,
    answer_to,
    as_data,
    calls_of,
    rows_call,
)
from toolenvs.rewards._sql_states import find_states, state_calls
from toolenvs.types import Score, Step, Task, ToolCall, Trajectory


class ResultOverlap:
    """The best overlap, so far, of a query's result with the gold query's.

        overlap = (columns paired / larger number of columns) * F1 of the rows

        F1 = 2 * (rows that both bags hold) / (gold rows + the query's rows)

    where each gold column is paired with the column of the result that shares most values with it,
    and rows are compared on the paired columns. Of a turn its last successful ``sql_query`` counts.
    In [0, 1], 1 for the gold's own bag of rows; it never falls, so exploring is never punished.
    Order does not count. A query that reads no table is worth 0, a column that is written out in
    the query is paired with none that the gold looks up, and guessing many values is worth little,
    since F1 divides by their number. Masked where the gold does not run, returns no rows or more
    than ``max_rows``.

    A task that asks for changes is scored when the episode has ended: with the F1 of the rows that
    the agent's statements added or removed, against those that the gold's did.

    Args:
        max_rows: rows of the gold's result that are compared; at least 1.

    Raises:
        UsageError: ``max_rows`` is no whole number, or is below 1.
    """

    name: str = "result_overlap"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = False

    def __init__(self, max_rows: int = 10_000) -> None:
        self.max_rows = checked_whole("max_rows", max_rows, least=1)

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """The gold's rows, at each step whose queries returned some; of changes the states."""
        if _asks_for_changes(task):
            return state_calls(task, prefix, max_rows=self.max_rows) if prefix.ended else ()
        if not prefix.steps or _last_query(task, prefix.steps[-1]) is None:
            return ()
        return (self._call(task),)

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Compare each turn's result, or the last state, with the gold's."""
        if _asks_for_changes(task):
            return self._score_changes(task, prefix)
        best, reason = 0.0, "no result of a query yet"
        policy = read_policy(task.grading) if task.database is not None else None
        for step in prefix.steps:
            found = _last_query(task, step)
            if found is None or policy is None or task.database is None:
                continue
            sql, result = found
            gold = answer_to(self._call(task), step)
            if gold is None or gold.get("error") or gold.get("cut") or not gold.get("rows"):
                return Score(best, "the gold gives no rows to compare with", masked=True)
            instances = len(task.database.instances)
            bars = bars_between(task.answer, sql, task.database.engine, instances=instances)
            share = overlap(gold, result, policy=policy, bars=bars)
            if share >= best:
                best, reason = share, f"{share:.3f} of the gold's result"
        return Score(best, reason)

    def _score_changes(self, task: Task, prefix: Trajectory) -> Score:
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        found = find_states(task, prefix, max_rows=self.max_rows)
        if found is None:
            return Score(0.0, "no evidence", masked=True)
        policy = read_policy(task.grading)
        share = changes_overlap(found.before, found.gold, found.submitted, policy=policy)
        if share is None:
            return Score(0.0, "the gold makes no changes to compare with", masked=True)
        return Score(share, f"{share:.3f} of the gold's changes")

    def _call(self, task: Task) -> ToolCall:
        return rows_call(task.answer, max_rows=self.max_rows)


def _asks_for_changes(task: Task) -> bool:
    return task.database is not None and task.gradable and task.grading.get("mode") == "state"


def _last_query(task: Task, step: Step) -> tuple[str, Mapping[str, Any]] | None:
    """The step's last query that ran and read a table, and its result."""
    if task.database is None or not task.gradable:
        return None
    for arguments, result in reversed(calls_of([step], QUERY)):
        sql = str(arguments.get("sql", ""))
        ran = result.error is None and "rows" in result.data
        if ran and not touched(sql, task.database.engine).constant:
            return sql, as_data(result)
    return None
