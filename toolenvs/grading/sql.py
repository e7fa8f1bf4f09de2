"""Compare the results of queries: does a submitted query answer what the gold query answers?

Everything here works on results in their JSON form, ``{"columns": [...], "rows": [[...]], "cut":
False}`` or ``{"error": {"kind": ..., "message": ...}}``; nothing is run. ``SqlPolicy`` has the
rules, ``sql_order`` says what the gold leaves open, ``sql_matching`` compares.

    outline = read_outline(gold_sql)          # outline.probe: one more query to run, if not ""
    verdict = grade(gold_sql, Trial(gold=..., submitted=..., probe=...), policy=SqlPolicy())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.errors import UsageError
from toolenvs.grading.policy import Verdict
from toolenvs.grading.sql_chance import chancy_words
from toolenvs.grading.sql_matching import Arrangement, Group, Row, UndecidedError, allows
from toolenvs.grading.sql_order import TieUnknownError, arrange
from toolenvs.grading.sql_outline import Outline, read_outline
from toolenvs.grading.sql_policy import DEFAULT_POLICY, Engine, SqlPolicy, read_policy
from toolenvs.grading.sql_values import read_value
from toolenvs.grading.sql_written import NO_BARS, Bars, bars_between

__all__ = [
    "Result",
    "SqlPolicy",
    "Trial",
    "Verdict",
    "compare",
    "grade",
    "grade_alternatives",
    "grade_instances",
    "grade_state",
    "read_outline",
    "read_policy",
    "read_result",
]


class Result(msgspec.Struct, frozen=True):
    """A result, read.

    Attributes:
        columns: their names, which need not differ.
        rows: values in the order the database gave them.
        cut: rows are missing at the end.
        error: why there are none, ``""`` where the query ran.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    cut: bool = False
    error: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What ran on one database, in the JSON form of results.

    Attributes:
        gold: the gold query's result.
        submitted: the submitted query's result.
        probe: the result of the gold's probe (``read_outline(gold_sql).probe``), None if not run.
    """

    gold: Mapping[str, Any]
    submitted: Mapping[str, Any]
    probe: Mapping[str, Any] | None = None


def read_result(data: Mapping[str, Any], policy: SqlPolicy = DEFAULT_POLICY) -> Result:
    """Read a result in its JSON form.

    Raises:
        UsageError: It is no result: there are no columns, or a row is not as long as they are many.
    """
    error = data.get("error")
    if error:
        return Result(error=str(error.get("kind", "") or "raised"))
    try:
        columns = tuple(map(str, data["columns"]))
        rows = tuple(tuple(read_value(cell, policy) for cell in row) for row in data["rows"])
    except (KeyError, TypeError):
        raise UsageError(
            f"a result needs columns, a list, and rows, a list of lists; it has {sorted(data)}."
        ) from None
    if any(len(row) != len(columns) for row in rows):
        raise UsageError(f"a result's rows must have {len(columns)} values, as it has columns.")
    return Result(columns, rows, bool(data.get("cut")))


def compare(
    gold: Mapping[str, Any],
    submitted: Mapping[str, Any],
    *,
    policy: SqlPolicy = DEFAULT_POLICY,
    outline: Outline | None = None,
    probe: Mapping[str, Any] | None = None,
    bars: Bars = NO_BARS,
) -> Verdict:
    """Tell whether two results are one, whatever they are worth: empty equals empty here.

    Args:
        gold: the gold query's result.
        submitted: the result to judge.
        policy: the rules.
        outline: how the gold orders and limits; None: it does not.
        probe: the result of ``outline.probe``.
        bars: which columns of ``submitted`` cannot stand for which of the gold's.

    Returns:
        A verdict with a rule of ``grade``. Without an order and bars it is symmetric.
    """
    try:
        expected, given = read_result(gold, policy), read_result(submitted, policy)
        if expected.error or expected.cut:
            return _not_gradable("gold_cut" if expected.cut else f"gold_{expected.error}")
        if given.error or given.cut:
            return Verdict(False, "failed" if given.error else "different", given.error or "cut")
        trial = _Comparison(expected, given, policy, outline or Outline(), bars)
        return trial.verdict(read_result(probe, policy) if probe is not None else Result(error="-"))
    except TieUnknownError:
        return _not_gradable("limit_tie_unknown")
    except (UndecidedError, RecursionError):
        return Verdict(False, "undecided", "too_large")


def grade(
    gold_sql: str,
    trial: Trial,
    *,
    submitted_sql: str = "",
    policy: SqlPolicy = DEFAULT_POLICY,
    engine: Engine = "sqlite",
) -> Verdict:
    """Grade a submitted query on one database.

    Args:
        gold_sql: the gold query, read for what it orders.
        trial: what ran.
        submitted_sql: the submitted query, read for the columns that it writes out itself; ``""``
            where only results are to be compared.
        policy: the rules of this task.
        engine: whose dialect the queries are written in.

    Returns:
        The verdict. ``reason`` is as in ``Verdict``, or ``"failed"`` (the submitted query did not
        run; ``rule`` is the kind of its error). ``rule`` is ``"bag"``, ``"order"`` (order counted,
        or is all that differs), ``"limit_tie"`` (the gold's LIMIT left a choice, and this is one),
        ``"limit_all_tied"``, ``"column_count"``, ``"row_count"``, ``"rows"``, ``"written_out"``
        (equal, but by a column that is written out in the query), ``"cut"``, ``"too_large"``; of a
        gold that cannot be graded ``"gold_empty"``, ``"both_empty"``, ``"gold_no_columns"``,
        ``"gold_chance"`` (it depends on the clock or on chance), ``"gold_cut"``, ``"gold_"`` with
        the kind of its error, or ``"limit_tie_unknown"`` (its probe was cut among rows that tie).
    """
    return grade_instances(
        gold_sql, [trial], submitted_sql=submitted_sql, policy=policy, engine=engine
    )


def _bars(gold_sql: str, submitted_sql: str, engine: Engine, *, instances: int = 0) -> Bars:
    if not submitted_sql:
        return NO_BARS
    return bars_between(gold_sql, submitted_sql, engine, instances=instances)


def grade_instances(
    gold_sql: str,
    trials: Sequence[Trial],
    *,
    submitted_sql: str = "",
    policy: SqlPolicy = DEFAULT_POLICY,
    engine: Engine = "sqlite",
) -> Verdict:
    """Grade a submitted query on several databases of one schema: right only if right on each.

    On the first the gold must return rows; on the others an empty result is a result, too.

    Args:
        gold_sql: the gold query.
        trials: what ran on each, the task's own database first.
        submitted_sql: as for ``grade``.
        policy: the rules of this task.
        engine: whose dialect the queries are written in.

    Returns:
        The first verdict that is not correct, its rule marked ``@1`` where it is of the second
        database and so on; else the first.

    Source: Zhong, Yu and Klein 2020, arXiv:2010.02840.
    """
    if not trials:
        return _not_gradable("gold_missing")
    outline = read_outline(gold_sql, engine)
    worthless = "gold_chance" if chancy_words(gold_sql, engine) else _worthless(trials[0])
    if worthless:
        return _not_gradable(worthless)
    bars = _bars(gold_sql, submitted_sql, engine, instances=len(trials) - 1)
    verdicts: list[Verdict] = []
    for number, trial in enumerate(trials):
        verdict = compare(
            trial.gold,
            trial.submitted,
            policy=policy,
            outline=outline,
            probe=trial.probe,
            bars=bars,
        )
        mark = f"@{number}" if number else ""
        verdicts.append(msgspec.structs.replace(verdict, rule=verdict.rule + mark))
    failed = [verdict for verdict in verdicts if not verdict.gradable]
    wrong = [verdict for verdict in verdicts if not verdict.correct]
    return next(iter([*failed, *wrong]), verdicts[0])


def grade_alternatives(
    trials: Mapping[str, Sequence[Trial]],
    *,
    submitted_sql: str = "",
    policy: SqlPolicy = DEFAULT_POLICY,
    engine: Engine = "sqlite",
) -> Verdict:
    """Grade a submitted query against several golds: right if it equals one of them throughout.

    Args:
        trials: for each gold query what ran on each database, the task's own answer first.
        submitted_sql: as for ``grade``.
        policy: the rules of this task.
        engine: whose dialect the queries are written in.

    Returns:
        A correct verdict if there is one, else the first of a gold that can be graded; not gradable
        if none can.
    """
    verdicts = [
        grade_instances(gold, ran, submitted_sql=submitted_sql, policy=policy, engine=engine)
        for gold, ran in trials.items()
    ]
    right = [verdict for verdict in verdicts if verdict.correct]
    sound = [verdict for verdict in verdicts if verdict.gradable]
    return next(iter([*right, *sound, *verdicts]), _not_gradable("gold_missing"))


def grade_state(
    before: Mapping[str, Any],
    gold: Mapping[str, Any],
    submitted: Mapping[str, Any],
    *,
    policy: SqlPolicy = DEFAULT_POLICY,
) -> Verdict:
    """Grade statements by what they leave in the database.

    Tables are compared by name, each as a bag of rows with its columns as they stand.

    Args:
        before: the database as it is given, as ``sql_after`` tells it: ``{"tables": [{"name": ...,
            "columns": ..., "rows": ...}]}``, with ``"stopped"`` if a statement failed, or
            ``{"error": ...}``.
        gold: as the gold statements leave it; where that is as before, the gold cannot be graded.
        submitted: as the submitted statements leave it; those after one that failed did not run.
        policy: which values are equal.

    Returns:
        The verdict; ``rule`` is ``"state"``, ``"tables"`` (another set of tables), a rule of
        ``grade`` or ``"columns"`` marked with the table (``"rows@emp"``), or ``"gold_unchanged"``.
    """
    exact = msgspec.structs.replace(policy, columns="exact", order="never")
    for state in (before, gold):
        if _failure(state):
            return _not_gradable(f"gold_{_failure(state)}")
    if _failure(submitted):
        return Verdict(False, "failed", _failure(submitted))
    if _compare_tables(_tables(before), _tables(gold), exact).correct:
        return _not_gradable("gold_unchanged")
    return _compare_tables(_tables(gold), _tables(submitted), exact)


def _failure(state: Mapping[str, Any]) -> str:
    error = state.get("error") or state.get("stopped")
    return read_result({"error": error}).error if error else ""


def _tables(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {table["name"]: table for table in state["tables"]}


def _compare_tables(
    gold: Mapping[str, Mapping[str, Any]],
    submitted: Mapping[str, Mapping[str, Any]],
    policy: SqlPolicy,
) -> Verdict:
    if set(gold) != set(submitted):
        return Verdict(False, "different", "tables")
    for name in sorted(gold):
        verdict = compare(gold[name], submitted[name], policy=policy)
        if verdict.correct and list(gold[name]["columns"]) != list(submitted[name]["columns"]):
            verdict = Verdict(False, "different", "columns")
        if not verdict.correct:
            return msgspec.structs.replace(verdict, rule=f"{verdict.rule}@{name}")
    return Verdict(True, "equal", "state")


class _Comparison:
    """One gold result, one submitted result."""

    def __init__(
        self, gold: Result, given: Result, policy: SqlPolicy, outline: Outline, bars: Bars
    ) -> None:
        self._gold = gold
        self._given = given
        self._policy = policy
        self._outline = outline
        self._bars = bars

    def verdict(self, probe: Result) -> Verdict:
        """Compare; ``probe`` may be a result that failed."""
        if not self._fits():
            return Verdict(False, "different", "column_count")
        allowed = self._arranged(probe, widened=False)
        if self._is_allowed(allowed):
            return Verdict(True, "equal", _rule(allowed))
        if self._policy.ties == "all" and self._is_allowed(self._arranged(probe, widened=True)):
            return Verdict(True, "equal", "limit_all_tied")
        if allowed.size != len(self._given.rows):
            return Verdict(False, "different", "row_count")
        if self._bars != NO_BARS and self._is_allowed(allowed, barred=False):
            return Verdict(False, "different", "written_out")
        unordered = msgspec.structs.replace(allowed, ordered=False)
        misplaced = allowed.ordered and self._is_allowed(unordered)
        return Verdict(False, "different", "order" if misplaced else "rows")

    def _fits(self) -> bool:
        """Tell whether there are as many columns as there may be."""
        width, wide = len(self._gold.columns), len(self._given.columns)
        if self._policy.columns != "subset":
            return wide == width
        looked_up = wide - len(self._bars.places(wide))  # labels are no further guesses
        return width <= wide and looked_up <= width + self._policy.extra_columns

    def _arranged(self, probe: Result, *, widened: bool) -> Arrangement:
        return arrange(
            self._outline,
            self._gold.rows,
            width=len(self._gold.columns),
            probe=None if probe.error else probe.rows,
            probe_cut=probe.cut,
            policy=self._policy,
            widened=widened,
        )

    def _is_allowed(self, allowed: Arrangement, *, barred: bool = True) -> bool:
        if barred and self._bars.hopeless:
            return False
        width, wide = len(self._gold.columns), len(self._given.columns)
        pairs = self._bars.forbidden(width=width, wide=wide) if barred else frozenset()
        return allows(allowed, self._given.rows, width=wide, policy=self._policy, forbidden=pairs)


def _rule(allowed: Arrangement) -> str:
    if any(_is_open(group) for group in allowed.groups):
        return "limit_tie"
    return "order" if allowed.ordered else "bag"


def _is_open(group: Group) -> bool:
    """Tell whether it matters which of a group's rows are taken."""
    return group.take < len(group.rows) and len(set(group.rows)) > 1


def _worthless(trial: Trial) -> str:
    """Why the gold's own result can be no measure, ``""`` if it can."""
    gold, given = trial.gold, trial.submitted
    if gold.get("error") or gold.get("cut"):
        return ""  # compare says it
    if not gold["columns"]:
        return "gold_no_columns"
    if not gold["rows"]:
        return "gold_empty" if given.get("error") or given.get("rows") else "both_empty"
    return ""


def _not_gradable(rule: str) -> Verdict:
    return Verdict(False, "gold_not_gradable", rule, gradable=False)
