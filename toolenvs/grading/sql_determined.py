"""Whether the data determine what a gold query returns, whatever order their rows lie in.

``row_number()`` among rows that tie, a column that GROUP BY leaves open, the order of
``group_concat``, a subquery of several rows in the place of one value: the database takes one of
several results, and which one depends on how its rows lie. So the gold is run once more where they
lie the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolenvs.grading.sql import compare, read_result
from toolenvs.grading.sql_outline import read_outline
from toolenvs.grading.sql_policy import Engine, SqlPolicy
from toolenvs.grading.sql_reading import parse, unwrapped

Run = Callable[[str], Mapping[str, Any]]
"""Runs a query and returns its result in the JSON form of results; never raises for a bad query."""


def why_undetermined(
    gold: str,
    data: Mapping[str, Any],
    other: Mapping[str, Any],
    run: Run,
    *,
    policy: SqlPolicy,
    engine: Engine,
) -> str:
    """Say that a gold returns something else where its rows lie in another order, else ``""``.

    Args:
        gold: one query.
        data: its result.
        other: its result on the same rows in another order; an error says nothing.
        run: runs a query on the task's database; it is asked for the gold's probe.
        policy: by which results are compared: what the gold leaves open itself, such as rows that
            tie in its ORDER BY, differs in no way.
        engine: whose dialect the gold is written in.
    """
    if other.get("error") or other.get("cut"):
        return ""
    outline = read_outline(gold, engine)
    probe = run(outline.probe) if outline.probe else None
    verdict = compare(data, other, policy=policy, outline=outline, probe=probe)
    if verdict.correct or not verdict.gradable:
        return ""
    return "the data do not determine the gold: with rows in another order its result differs"


def why_ambiguous(gold: str, run: Run, *, engine: Engine) -> str:
    """Say that a subquery in the place of one value has several, ``""`` if none is seen to.

    Subqueries that refer to the query around them are not looked at.

    Args:
        gold: one query.
        run: runs a query on the task's database; it is asked once for each such subquery.
        engine: whose dialect the gold is written in.
    """
    for query in scalar_queries(gold, engine):
        distinct = f"SELECT DISTINCT * FROM ({query}) AS toolenvs_rows"  # noqa: S608 - the gold's
        found = read_result(run(f"SELECT COUNT(*) FROM ({distinct}) AS toolenvs_values"))  # noqa: S608
        count = found.rows[0][0][1] if found.rows else 0
        if isinstance(count, int) and count > 1:
            return f"a subquery of the gold stands for one value and has {count}"
    return ""


def scalar_queries(gold: str, engine: Engine = "sqlite") -> list[str]:
    """The subqueries that stand in the place of one value, each as a query of its own."""
    from sqlglot import exp

    tree = parse(gold, engine)
    if tree is None:
        return []
    rows = (exp.From, exp.Join, exp.In, exp.Exists, exp.Any, exp.All, exp.SetOperation, exp.CTE)
    sources = (exp.Table, exp.Lateral, exp.Subquery, exp.Insert, exp.Create)
    return [
        alone(node.copy(), tree).sql(dialect=engine)
        for node in tree.find_all(exp.Subquery)
        if node.parent is not None and not isinstance(node.parent, rows + sources)
    ]


def alone(node: Any, tree: Any) -> Any:
    """A part of a query as a query of its own: with the WITH of the whole before it."""
    shared = tree.args.get("with_") or tree.args.get("with")
    inner = unwrapped(node)
    if shared is not None and not (inner.args.get("with_") or inner.args.get("with")):
        inner.set("with_" if "with_" in tree.arg_types else "with", shared.copy())
    return inner
