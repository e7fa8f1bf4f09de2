"""Episodes of the family ``sql`` on a small database, with the evidence a referee would give."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.grading.databases import EMP, Run, memory
from toolenvs.protocols import RewardComponent
from toolenvs.types import Database, Score, Step, Task, ToolCall, ToolError, ToolResult, Trajectory

TASK = Task(
    id="s",
    prompt="Who is paid 20?",
    answer="SELECT name FROM emp WHERE pay = 20",
    family="sql",
    database=Database(name="emp", place="emp.sqlite"),
)


def task(answer: str = TASK.answer, *, instances: int = 0, **grading: Any) -> Task:
    """The task with another gold, further databases, and settings of its grading."""
    database = Database(
        name="emp", place="emp.sqlite", instances=tuple(f"emp{n}.sqlite" for n in range(instances))
    )
    return msgspec.structs.replace(TASK, answer=answer, grading=grading, database=database)


def as_result(data: Any, **fields: Any) -> ToolResult:
    """The result of a call that found this."""
    error = data.get("error")
    if error:
        return ToolResult(error["message"], error=ToolError(error["kind"], error["message"]))
    return ToolResult("", data=data, **fields)


def query(sql: str, *, run: Run | None = None) -> Step:
    """A turn with one ``sql_query`` call, whose result is that of the database."""
    call = ToolCall("sql_query", {"sql": sql})
    return Step(action=sql, calls=(call,), results=(as_result((run or memory(EMP))(sql)),))


def schema(*tables: str) -> Step:
    """A turn with one ``sql_schema`` call."""
    call = ToolCall("sql_schema", {"tables": list(tables)} if tables else {})
    return Step(action="schema", calls=(call,), results=(ToolResult("emp(id, name ...)"),))


def submit(sql: str) -> Step:
    """The turn that hands in a query."""
    call = ToolCall("submit_sql", {"sql": sql})
    result = ToolResult("", data={"answer": sql, "sql": sql}, terminal=True)
    return Step(action=sql, calls=(call,), results=(result,), terminated=True, end_reason="submit")


def stopped() -> Step:
    """The end of an episode without a submission."""
    return Step(action="", truncated=True, end_reason="max_turns")


class Referee:
    """Answers the private calls, and counts them."""

    def __init__(self, *setups: str) -> None:
        self.setups = setups or (EMP,)
        self.asked: list[ToolCall] = []

    def answer(self, call: ToolCall) -> ToolResult:
        """The result of one call."""
        self.asked.append(call)
        if call.name == "sql_after":
            return as_result(self._after(call.arguments["statements"]))
        run = memory(self.setups[call.arguments["instance"]])
        return as_result(run(call.arguments["sql"]))

    def _after(self, statements: list[str]) -> dict[str, Any]:
        run = memory(self.setups[0])
        state: dict[str, Any] = {}
        for statement in statements:
            error = run(statement).get("error")
            if error:
                state["stopped"] = error
                break
        run("ROLLBACK")  # of what is still open, if anything is
        names = [row[0] for row in run("SELECT name FROM sqlite_schema")["rows"]]
        state["tables"] = [{"name": name, **run(f"SELECT * FROM {name}")} for name in names]
        return state


def played(
    reward: RewardComponent, *steps: Step, of: Task = TASK, referee: Referee | None = None
) -> list[Score]:
    """The score after each step, with the evidence that the reward asked for."""
    referee = referee or Referee()
    done: tuple[Step, ...] = ()
    scores: list[Score] = []
    for step in steps:
        asked = reward.needs(of, Trajectory(task=of, steps=(*done, step)))
        evidence = tuple((call, referee.answer(call)) for call in asked)
        done = (*done, msgspec.structs.replace(step, evidence=evidence))
        scores.append(reward.score(of, Trajectory(task=of, steps=done)))
    return scores
