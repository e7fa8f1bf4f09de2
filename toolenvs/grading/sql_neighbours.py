"""Neighbour databases: a few contents on which near misses of a gold query give themselves away.

One database lets many wrong queries pass: where no two rows tie, DISTINCT changes nothing. A query
is better judged on several that were chosen to differ. They are made at random and kept if they
tell a near miss of the gold from it that no other one does.

Source: Zhong, Yu and Klein 2020, arXiv:2010.02840.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.grading.sql import compare
from toolenvs.grading.sql_contents import Content, Row, Schema, neighbour, read_hints
from toolenvs.grading.sql_mutants import near_misses
from toolenvs.grading.sql_outline import Outline, read_outline
from toolenvs.grading.sql_policy import DEFAULT_POLICY, Engine, SqlPolicy

Run = Callable[[str, Content], Mapping[str, Any]]
"""Runs a query on a database with this content and returns its result in the JSON form of results.

It is asked for all queries on one content before the next, so it may keep one database open.
"""


class Neighbours(msgspec.Struct, frozen=True):
    """Databases that were chosen to judge a query by.

    Attributes:
        contents: the chosen contents, the one that tells most first.
        seeds: what each was made from.
        near_misses: how many near misses of the gold run at all.
        killed: how many of them give another result on the given content or a chosen one.
        killed_before: how many do so on the given content alone.
        survivors: those that no content told from the gold; some mean the same.
    """

    contents: tuple[Mapping[str, Sequence[Row]], ...]
    seeds: tuple[int, ...]
    near_misses: int
    killed: int
    killed_before: int
    survivors: tuple[str, ...]


def find_neighbours(
    gold: str,
    schema: Schema,
    content: Content,
    run: Run,
    *,
    seed: int = 0,
    tries: int = 40,
    most: int = 4,
    policy: SqlPolicy = DEFAULT_POLICY,
    engine: Engine = "sqlite",
) -> Neighbours:
    """Choose the fewest contents that tell the most near misses from the gold, greedily.

    Args:
        gold: the gold query.
        schema: the tables.
        content: what the task's own database holds.
        run: runs queries.
        seed: contents are made from ``seed``, ``seed + 1`` ...
        tries: how many are made.
        most: how many are chosen at most.
        policy: by which results are compared.
        engine: whose dialect the gold is written in.
    """
    columns = [tuple(column.name for column in table.columns) for table in schema]
    misses = near_misses(gold, engine=engine, columns=columns, seed=seed)
    judge = _Judge(gold, run, policy, read_outline(gold, engine))
    misses = [miss for miss in misses if not run(miss, content).get("error")]
    if not misses:
        return Neighbours((), (), 0, 0, 0, ())
    alive = set(misses) - judge.killed(misses, content)
    before = len(misses) - len(alive)
    hints = read_hints(gold, engine)
    made: dict[int, dict[str, list[Row]]] = {}
    kills: dict[int, frozenset[str]] = {}
    for number in range(seed, seed + tries):
        made[number] = neighbour(schema, content, hints=hints, seed=number)
        kills[number] = judge.killed([miss for miss in misses if miss in alive], made[number])
    chosen: list[int] = []
    while kills and len(chosen) < most:
        best = max(kills, key=lambda number: (len(kills[number] & alive), -number))
        if not kills[best] & alive:
            break
        alive -= kills.pop(best)
        chosen.append(best)
    return Neighbours(
        contents=tuple(made[number] for number in chosen),
        seeds=tuple(chosen),
        near_misses=len(misses),
        killed=len(misses) - len(alive),
        killed_before=before,
        survivors=tuple(miss for miss in misses if miss in alive),
    )


class _Judge:
    """Tells near misses from the gold on a content."""

    def __init__(self, gold: str, run: Run, policy: SqlPolicy, outline: Outline) -> None:
        self._gold = gold
        self._run = run
        self._policy = policy
        self._outline = outline

    def killed(self, misses: Sequence[str], content: Content) -> frozenset[str]:
        """Those whose result is not one of the gold's; none where the gold itself does not run."""
        gold = self._run(self._gold, content)
        if gold.get("error") or gold.get("cut"):
            return frozenset()
        probe = self._run(self._outline.probe, content) if self._outline.probe else None
        found: set[str] = set()
        for miss in misses:
            verdict = compare(
                gold,
                self._run(miss, content),
                policy=self._policy,
                outline=self._outline,
                probe=probe,
            )
            if verdict.gradable and not verdict.correct:
                found.add(miss)
        return frozenset(found)
