"""Does the submitted query return what the gold query returns?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from toolenvs.grading.policy import Verdict
from toolenvs.grading.sql import Trial, grade_alternatives, grade_state
from toolenvs.grading.sql_fitness import inner_queries, why_tied_inside
from toolenvs.grading.sql_outline import read_outline
from toolenvs.grading.sql_policy import SqlPolicy, read_policy
from toolenvs.grading.sql_reading import MAX_CHARACTERS, touched
from toolenvs.grading.sql_written import bars_between
from toolenvs.ranges import checked_whole
from toolenvs.rewards._sql_evidence import answer_to, rows_call, submitted_sql
from toolenvs.rewards._sql_states import find_states, state_calls
from toolenvs.types import Score, Step, Task, ToolCall, Trajectory


class _Case(msgspec.Struct, frozen=True):
    """One gold on one database: its calls are those of the gold, the submission and the probe."""

    gold: str
    calls: list[ToolCall]


class ExecutionMatch:
    """1 if the submitted query's result equals the gold query's on every database, else 0.

    Scored once, when the episode has ended, for every end; without a submission it is 0. The
    referee runs both queries on the task's database and on its instances, and the gold's probe,
    which shows rows that tie; ``toolenvs.grading.sql`` compares, and the reason holds its verdict.
    Of several golds (``alternatives``) one must be met throughout.

    Masked, so that nothing is learnt from it: a gold that fails, returns nothing or more than
    ``max_rows`` rows, or depends on the clock; then neither an empty answer nor any other is paid.
    So is an answer that differs from a gold of PostgreSQL in which rows tie at a LIMIT further in:
    the loader, which sees it in SQLite, does not run those.
    0 with its reason: a submission that does not run, or that is too long or nests too deeply to be
    read. A column that is written out in the submission (``SELECT 42``) stands for no column that
    the gold looks up (``sql_written`` says which it may stand for); where further columns are
    allowed (``columns="subset"``) it is passed over. Such a column is found in the text alone: one
    that looks at a table for show is only told from a right one by instances, and where a task has
    those they decide: then only a text that reads no table is refused.

    A task whose grading has ``mode="state"`` asks for changes. Then what counts is the content of
    all tables after the submitted statements on a fresh copy, against that after the gold's. A
    submission that can change nothing (a pure read, or none) stands for what the episode's own
    calls did (``_sql_states``).

    Args:
        max_rows: rows of a result, or of each table, that are compared; at least 1.

    Raises:
        UsageError: ``max_rows`` is no whole number, or is below 1.

    Source: Zhong, Yu and Klein 2020, arXiv:2010.02840.
    """

    name: str = "execution_match"
    low: float = 0.0
    high: float = 1.0
    when: Literal["step", "end"] = "end"
    shaping: bool = False

    def __init__(self, max_rows: int = 10_000) -> None:
        self.max_rows = checked_whole("max_rows", max_rows, least=1)

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Once a submission ended the episode: both queries on every database, and probes."""
        sql = _submission(prefix)
        if task.database is None or not task.gradable or sql is None or _objection(task, sql):
            return ()
        policy = read_policy(task.grading)
        if policy.mode == "state":
            return state_calls(task, prefix, max_rows=self.max_rows)
        calls = [call for case in self._cases(task, policy, sql) for call in case.calls]
        calls += self._inner_calls(task, policy).values()
        return [call for place, call in enumerate(calls) if call not in calls[:place]]

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Compare what the referee found."""
        if not prefix.ended:
            return Score(0.0, "the episode goes on")
        if not task.gradable or task.database is None:
            return Score(0.0, "gold not gradable", masked=True)
        sql = _submission(prefix)
        last = prefix.steps[-1]
        if sql is None:
            return Score(0.0, f"no submission ({last.end_reason or 'ended'})")
        objection = _objection(task, sql)
        if objection:
            return Score(0.0, objection)
        policy = read_policy(task.grading)
        if policy.mode == "state":
            return self._score_state(task, prefix, policy)
        return self._score_rows(task, last, sql, policy)

    def _score_rows(self, task: Task, last: Step, sql: str, policy: SqlPolicy) -> Score:
        assert task.database is not None
        trials: dict[str, list[Trial]] = {}
        for case in self._cases(task, policy, sql):
            found = [answer_to(call, last) for call in case.calls]
            gold, submitted, probe = (*found, None)[:3]
            if gold is None or submitted is None:
                return Score(0.0, "no evidence", masked=True)
            trial = Trial(gold=gold, submitted=submitted, probe=probe)
            trials.setdefault(case.gold, []).append(trial)
        engine = task.database.engine
        verdict = grade_alternatives(trials, submitted_sql=sql, policy=policy, engine=engine)
        if verdict.gradable and not verdict.correct and self._ties_inside(task, last, policy):
            return Score(0.0, "gold_not_gradable: inner_limit_tie", masked=True)
        return _scored(verdict)

    def _inner_calls(self, task: Task, policy: SqlPolicy) -> dict[str, ToolCall]:
        """What shows ties inside golds that were not run when the source was loaded."""
        assert task.database is not None
        if task.database.engine == "sqlite":
            return {}
        golds = (task.answer, *policy.alternatives)
        queries = [q for gold in golds for q in inner_queries(gold, task.database.engine)]
        return {q: rows_call(q, instance=0, max_rows=self.max_rows) for q in queries}

    def _ties_inside(self, task: Task, last: Step, policy: SqlPolicy) -> bool:
        assert task.database is not None
        answers = {q: answer_to(c, last) for q, c in self._inner_calls(task, policy).items()}
        found = {query: answer for query, answer in answers.items() if answer is not None}
        if len(found) < len(answers):
            return True
        engine = task.database.engine
        golds = (task.answer, *policy.alternatives)
        return bool(found) and any(why_tied_inside(gold, found, engine) for gold in golds)

    def _cases(self, task: Task, policy: SqlPolicy, sql: str) -> Iterator[_Case]:
        assert task.database is not None
        for gold in (task.answer, *policy.alternatives):
            outline = read_outline(gold, task.database.engine)
            ties_matter = policy.order != "never" or outline.limit >= 0
            probe = outline.probe if ties_matter else ""
            for instance in range(1 + len(task.database.instances)):
                texts = [gold, sql, *([probe] if probe else [])]
                calls = [rows_call(t, instance=instance, max_rows=self.max_rows) for t in texts]
                yield _Case(gold, calls)

    def _score_state(self, task: Task, prefix: Trajectory, policy: SqlPolicy) -> Score:
        found = find_states(task, prefix, max_rows=self.max_rows)
        if found is None:
            return Score(0.0, "no evidence", masked=True)
        return _scored(grade_state(found.before, found.gold, found.submitted, policy=policy))


def _submission(prefix: Trajectory) -> str | None:
    return submitted_sql(prefix.steps[-1]) if prefix.ended else None


def _objection(task: Task, sql: str) -> str:
    """Why a submission is wrong without being run, ``""`` if it is to be run."""
    assert task.database is not None
    if len(sql) > MAX_CHARACTERS:
        return "too_large: the submission is too long to be read"
    policy = read_policy(task.grading)
    if policy.mode == "state":
        return ""
    if not sql.strip():
        return "no_answer: empty"
    engine = task.database.engine
    golds = (task.answer, *policy.alternatives)
    if touched(sql, engine).tangled and not any(touched(g, engine).tangled for g in golds):
        return "too_large: the submission nests too deeply to be read"
    instances = len(task.database.instances)
    bars = [bars_between(gold, sql, engine, instances=instances) for gold in golds]
    if all(each.hopeless for each in bars):
        return "constant: the submission's rows hold nothing of any table"
    if policy.columns != "subset" and all(each.crowded for each in bars):
        return "constant: a column of the submission is written out in it"
    if all(each.misplaced for each in bars):
        return "constant: a column of the submission is written out in it, beside a *"
    return ""


def _scored(verdict: Verdict) -> Score:
    if verdict.rule.partition("@")[0] == "written_out":
        return Score(0.0, "constant: a column of the submission is written out in it")
    reason = f"{verdict.reason}: {verdict.rule}"
    if not verdict.gradable:
        return Score(0.0, reason, masked=True)
    return Score(1.0 if verdict.correct else 0.0, reason)
