"""Do the agent's queries run?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolenvs.grading.sql_reading import touched
from toolenvs.rewards._sql_evidence import QUERY, calls_of
from toolenvs.types import Score, Task, ToolCall, Trajectory


class SqlValid:
    """The best share, so far, of ``sql_query`` calls that ran.

        score_t = max over k <= t of  (calls up to turn k that ran) / (calls up to turn k)

    In [0, 1], 0 without a call. Being the best so far it never falls: a query that fails costs
    nothing that was earned, so exploring is never punished. Calls that read no table (``SELECT 1``)
    count neither way. The submission is not one of the calls: ``execution_match`` judges it.
    """

    name: str = "sql_valid"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "step"
    shaping: bool = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Nothing: the results suffice."""
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Count the calls turn by turn."""
        engine = task.database.engine if task.database else "sqlite"
        best, made, ran = 0.0, 0, 0
        for step in prefix.steps:
            for arguments, result in calls_of([step], QUERY):
                if touched(str(arguments.get("sql", "")), engine).constant:
                    continue
                made += 1
                ran += result.error is None
            best = max(best, ran / made if made else 0.0)
        return Score(best, f"{ran} of {made} queries ran" if made else "no query of a table")
