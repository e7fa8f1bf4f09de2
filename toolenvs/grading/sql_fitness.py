"""Whether a gold query is a fit measure of its task.

A gold that returns nothing, that depends on the clock or on chance, that a tie at a LIMIT decides,
or whose result depends on how its rows lie, would pay for nothing or punish right answers.
``examine_gold`` finds these; it is pure but for what runs queries for it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql import Result, Trial, compare, grade, read_result
from toolenvs.grading.sql_chance import chancy_words
from toolenvs.grading.sql_determined import Run, alone, why_ambiguous, why_undetermined
from toolenvs.grading.sql_order import key_groups
from toolenvs.grading.sql_outline import NO_LIMIT, UNREAD_LIMIT, Outline, outline_of, read_outline
from toolenvs.grading.sql_policy import DEFAULT_POLICY, Engine, SqlPolicy
from toolenvs.grading.sql_reading import parse, unwrapped
from toolenvs.grading.sql_values import NUMBERS, Value, read_value

NOT_EXAMINED = "whether the data determine the gold was not examined"
"""How the note begins that a gold did not run, or not to its end, on rows in another order."""

_MOST_VARIANTS = 16
_TIES = "tie at the LIMIT"
_UNREAD = "the gold's LIMIT is no plain number: a tie may decide it"
_LENIENT = SqlPolicy(text_numbers=True)


class GoldFinding(msgspec.Struct, frozen=True):
    """What is to be said of a gold query on its database.

    Attributes:
        unusable: why its task must never pay, ``""`` if it may.
        notes: what a reader of the task should know, such as a tie that leaves several results
            right; they are graded alike.
    """

    unusable: str = ""
    notes: tuple[str, ...] = ()


def examine_gold(
    gold: str,
    run: Run,
    *,
    reordered: Run | None = None,
    policy: SqlPolicy = DEFAULT_POLICY,
    engine: Engine = "sqlite",
) -> GoldFinding:
    """Tell whether a gold query decides its task.

    It does not if it fails, returns nothing or too much, depends on the clock or on chance, or if a
    tie at a LIMIT decides. A tie at the LIMIT of the outermost statement is fit all the same where
    its rows are known, since all results it may have are then right: it is noted. A LIMIT further
    in is fit if the result is the same whichever of its rows are taken, as far as they can be tried
    (``LIMIT 1`` and at most 16 rows). Nor does it if a subquery has several values in the place of
    one, or if it returns something else where the rows lie in another order.

    Args:
        gold: one query.
        run: runs a query on the task's database; it is asked for the gold, its probe, and those of
            LIMITs further in.
        reordered: runs a query on the same rows in another order. Where it gives an error, a note
            says that this was not examined, with the message; None: there is no such note either.
        policy: the rules of the task.
        engine: whose dialect the gold is written in.
    """
    run = functools.cache(run)  # a probe is wanted more than once
    data = run(gold)
    trial = Trial(gold=data, submitted=data)
    error = data.get("error")
    if error:
        return GoldFinding(f"the gold does not run: {error.get('message') or error.get('kind')}")
    chance = chancy_words(gold, engine)
    if chance:
        return GoldFinding(f"the gold depends on the clock or on chance: {', '.join(chance)}")
    verdict = grade(gold, trial, policy=policy, engine=engine)
    if not verdict.gradable:
        return GoldFinding(_SENTENCES.get(verdict.rule, verdict.rule))
    if not verdict.correct:
        return GoldFinding(f"the gold's result cannot be compared: {verdict.rule}")
    outer = _examine_limit(read_outline(gold, engine), read_result(data, policy), run)
    why = outer.unusable or _examine_inner(gold, data, run, policy, engine)
    why = why or why_ambiguous(gold, run, engine=engine)
    if why or reordered is None:
        return GoldFinding(why, outer.notes)
    other = reordered(gold)
    why = (
        ""
        if other == data
        else why_undetermined(gold, data, other, run, policy=policy, engine=engine)
    )
    return GoldFinding(why, (*outer.notes, *_not_examined(other)))


def _not_examined(other: Mapping[str, Any]) -> tuple[str, ...]:
    """The note that a gold did not run, or not to its end, on rows in another order."""
    error = other.get("error")
    if not error and not other.get("cut"):
        return ()
    why = (error or {}).get("message") or "its result is longer there"
    return (f"{NOT_EXAMINED}: {why}",)


_SENTENCES = {
    "gold_empty": "the gold returns no rows",
    "both_empty": "the gold returns no rows",
    "gold_no_columns": "the gold returns no columns",
    "gold_cut": "the gold returns more rows than are kept",
}


def _examine_limit(outline: Outline, result: Result, run: Run) -> GoldFinding:
    """Look at the LIMIT and the order of a query, whose result is ``result``."""
    if outline.limit == UNREAD_LIMIT:
        return GoldFinding(_UNREAD)
    probe = read_result(run(outline.probe)) if outline.probe else result
    if outline.limit == NO_LIMIT:
        return GoldFinding(notes=_notes(outline, probe))
    if outline.keys is None:
        few = not probe.error and len(probe.rows) <= len(result.rows) and not probe.cut
        why = "the key of the gold's ORDER BY is not in its result: a tie may decide its LIMIT"
        return GoldFinding("" if few else why)
    if probe.error:
        return GoldFinding(f"whether a tie decides the gold's LIMIT cannot be told: {probe.error}")
    tie = _Tie.at(outline, probe)
    if tie.unknown:
        return GoldFinding("more rows tie at the gold's LIMIT than are kept")
    notes = _notes(outline, probe)
    if tie.rows:
        notes = (f"{tie.rows} rows {_TIES} for {tie.places}; any of them is right", *notes)
    return GoldFinding(notes=notes)


class _Tie(msgspec.Struct, frozen=True):
    """Rows that differ, but tie where a LIMIT cuts.

    Attributes:
        rows: how many tie; 0 if no tie decides.
        places: how many of them the limit takes.
        first: place of the first of them among the probe's rows.
        unknown: the probe was cut among them.
    """

    rows: int = 0
    places: int = 0
    first: int = 0
    unknown: bool = False

    @classmethod
    def at(cls, outline: Outline, probe: Result) -> _Tie:
        """The tie at the end of the limit, or else at its beginning."""
        first, last = outline.offset, outline.offset + outline.limit
        start = 0
        found = cls()
        for group in key_groups(outline, probe.rows):
            if start >= last:
                break
            end = start + len(group.rows)
            take = max(0, min(end, last) - max(start, first))
            if 0 < take < len(group.rows) and len(set(group.rows)) > 1:
                found = cls(len(group.rows), take, start)
            if take and probe.cut and end == len(probe.rows):
                return cls(unknown=True)
            start = end
        return found


def _notes(outline: Outline, probe: Result) -> tuple[str, ...]:
    """Doubts about what the gold orders by."""
    if not outline.ordered or outline.keys is None or probe.error or not probe.rows:
        return ()
    keys = [[row[key] for row in probe.rows] for key in outline.keys if key < len(probe.rows[0])]
    notes: list[str] = []
    if any(_orders_text_numbers(column) for column in keys):
        notes.append("the gold orders numbers that are stored as text")
    taken = min(outline.offset, len(probe.rows) - 1)
    if outline.limit != NO_LIMIT and keys and keys[0][taken][0] == "null":
        notes.append("the first row that the gold takes has no value (NULL) in its key")
    return tuple(notes)


def _orders_text_numbers(column: Sequence[Value]) -> bool:
    """Tell whether a column of keys is text that writes numbers, in another order than theirs."""
    texts = [content for kind, content in column if kind == "text"]
    if len(texts) < 2 or len(texts) < sum(kind != "null" for kind, _ in column):
        return False
    numbers = [read_value(text, _LENIENT) for text in texts]
    if any(kind not in NUMBERS for kind, _ in numbers):
        return False
    sizes = [size for _, size in numbers]
    return sizes not in (sorted(sizes), sorted(sizes, reverse=True))


# -- what the text alone tells --------------------


def why_undecided(gold: str, engine: Engine = "sqlite") -> str:
    """Why the rows that a gold's LIMITs take cannot be known from its text, ``""`` if they may be.

    What only its result can show, such as a tie, is left to ``examine_gold``.

    Args:
        gold: one query.
        engine: whose dialect it is written in.
    """
    if read_outline(gold, engine).limit == UNREAD_LIMIT:
        return _UNREAD
    for inner in inner_limits(gold, engine):
        if inner.outline.limit == UNREAD_LIMIT:
            return f"{_UNREAD} (in a subquery)"
        if inner.outline.limit > 0 and not inner.outline.ordered:
            return "a LIMIT inside the gold has no ORDER BY: which rows it takes is left open"
    return ""


# -- LIMITs further in ------------------------------


class InnerLimit(msgspec.Struct, frozen=True):
    """A LIMIT inside a query.

    Attributes:
        number: which of the query's inner limits, in the order of its tree.
        query: the part that it limits, as a query of its own.
        outline: how that part orders and limits.
    """

    number: int
    query: str
    outline: Outline


def inner_limits(gold: str, engine: Engine = "sqlite") -> list[InnerLimit]:
    """The LIMITs of a query that are not its outermost, each as a query of its own.

    Those that only ask whether there is a row (EXISTS) are left out.
    """
    tree = parse(gold, engine)
    if tree is None:
        return []
    found: list[InnerLimit] = []
    for number, node in enumerate(_limited_nodes(tree)):
        query = alone(node.copy(), tree)
        found.append(InnerLimit(number, query.sql(dialect=engine), outline_of(query, engine)))
    return found


def inner_queries(gold: str, engine: Engine = "sqlite") -> list[str]:
    """The queries whose results ``why_tied_inside`` reads, each once."""
    wanted = [q for inner in inner_limits(gold, engine) for q in (inner.query, inner.outline.probe)]
    return list(dict.fromkeys(filter(None, wanted)))


def why_tied_inside(
    gold: str, results: Mapping[str, Mapping[str, Any]], engine: Engine = "sqlite"
) -> str:
    """Why rows that tie at a LIMIT inside a gold decide it, or may; ``""`` if none do.

    Stricter than ``examine_gold``, which tries each of those rows.

    Args:
        gold: one query.
        results: the result of each of ``inner_queries(gold, engine)``.
        engine: whose dialect the gold is written in.
    """
    for inner in inner_limits(gold, engine):
        found = _examine_limit(
            inner.outline, read_result(results[inner.query]), results.__getitem__
        )
        if found.unusable or any(_TIES in note for note in found.notes):
            return found.unusable or found.notes[0]
    return ""


def _limited_nodes(tree: Any) -> list[Any]:
    from sqlglot import exp

    outermost = unwrapped(tree)
    return [
        node
        for node in tree.find_all(exp.Select, exp.SetOperation)
        if node is not outermost
        and node.args.get("limit") is not None
        and not isinstance(node.parent, exp.Exists)
    ]


def _variants(gold: str, number: int, places: Sequence[int], engine: Engine) -> list[str]:
    """The query with its inner ``LIMIT 1`` moved to each of ``places``."""
    variants: list[str] = []
    for place in places:
        tree = parse(gold, engine)
        node = _limited_nodes(tree)[number]
        variants.append(node.offset(place, copy=False) and tree.sql(dialect=engine))
    return variants


def _examine_inner(
    gold: str, data: Mapping[str, Any], run: Run, policy: SqlPolicy, engine: Engine
) -> str:
    for inner in inner_limits(gold, engine):
        why = _examine_limit(inner.outline, read_result(run(inner.query)), run)
        if why.unusable:
            return f"{why.unusable} (in a subquery)"
        if not any(_TIES in note for note in why.notes):
            continue
        probe = read_result(run(inner.outline.probe))
        tie = _Tie.at(inner.outline, probe)
        tried = range(tie.first, tie.first + tie.rows)
        if inner.outline.limit != 1 or len(tried) > _MOST_VARIANTS:
            return f"{tie.rows} rows tie at a LIMIT inside the gold"
        for variant in _variants(gold, inner.number, tried, engine):
            if not compare(data, run(variant), policy=policy).correct:
                return f"{tie.rows} rows tie at a LIMIT inside the gold, and its result differs"
    return ""
