"""Sources made of what is already there: a list of tasks, and several sources in one."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from toolenvs.errors import UsageError
from toolenvs.protocols import TaskSource
from toolenvs.sources import why_unusable
from toolenvs.types import Task


def task_ids(source: TaskSource) -> Sequence[str]:
    """The id of each task of ``source``; a source that keeps ``ids`` builds no task for it."""
    kept: Sequence[str] | None = getattr(source, "ids", None)
    return kept if kept is not None else [source[row].id for row in range(len(source))]


def resources_of(source: TaskSource) -> dict[str, dict[str, Any]]:
    """What the source's tasks need of runtimes, by what tools ``need``; see ``TaskSource``.

    Raises:
        UsageError: Two parts of a mixture ask for different values of one option.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in _leaves(source):
        for needs, options in getattr(part, "resources", {}).items():
            ours = found.setdefault(needs, {})
            for name, value in options.items():
                ours[name] = _joined(name, ours[name], value) if name in ours else value
    return found


def _leaves(source: TaskSource) -> Iterator[TaskSource]:
    if isinstance(source, Mixture):
        yield from chain.from_iterable(map(_leaves, source.parts))
    else:
        yield source


def _joined(name: str, one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        clash = [key for key in one if key in other and one[key] != other[key]]
        if clash:
            raise UsageError(
                f"two sources of one mixture have different data named {clash[0]!r}: "
                f"{one[clash[0]]} and {other[clash[0]]}; play them in environments of their own."
            )
        return {**one, **other}
    if one == other:
        return one
    if name == "corpus":
        return [*_listed(one), *_listed(other)]
    raise UsageError(f"two sources of one mixture ask for {name}={one!r} and {other!r}.")


def _listed(corpus: Any) -> list[Any]:
    return corpus if isinstance(corpus, list) else [corpus]


class TaskList:
    """Tasks that the caller made: the usable ones are kept, the others reported.

    Raises:
        UsageError: Two share an id, or none is usable.
    """

    name = "tasks"

    def __init__(self, tasks: Iterable[Task]) -> None:
        rejected: list[str] = []
        self._tasks: list[Task] = []
        for number, task in enumerate(tasks):
            why = why_unusable(task) if task.gradable else "the task is marked as not gradable"
            if why:
                rejected.append(f"tasks[{number}]: {task.id!r}: {why}")
            else:
                self._tasks.append(task)
        self.rejected: Sequence[str] = rejected
        self.ids: Sequence[str] = [task.id for task in self._tasks]
        _check_unique(self.ids)
        if not self._tasks:
            raise UsageError(f"none of the tasks is usable. {' '.join(rejected[:1])}".rstrip())

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> Task:
        return self._tasks[operator.index(index)]


class Mixture:
    """Several sources in one: their tasks one after the other.

    Args:
        parts: the sources.
        weights: the share of draws that each part gets, as numbers of any sum; None to draw every
            task equally often, so that a part's share is its number of tasks.

    Raises:
        UsageError: No part; a weight for each part is missing or is not above 0; a part is itself
            a mixture with weights, which could not be kept; two tasks share an id.
    """

    def __init__(self, parts: Sequence[TaskSource], weights: Sequence[float] | None = None) -> None:
        if not parts:
            raise UsageError("a mixture needs at least one source.")
        if weights is not None and (
            len(weights) != len(parts) or not all(0 < weight < float("inf") for weight in weights)
        ):
            raise UsageError(
                f"weights={list(weights)} must hold one number above 0 for each of the "
                f"{len(parts)} parts."
            )
        if any(isinstance(part, Mixture) and part.weights for part in parts):
            raise UsageError(
                "a mixture with weights cannot be part of another: list all its parts."
            )
        self.parts = tuple(parts)
        self.weights: tuple[float, ...] | None = (
            None if weights is None else tuple(map(float, weights))
        )
        self.name = "+".join(part.name for part in parts)
        self.starts = (0, *accumulate(len(part) for part in parts))
        self.rejected: Sequence[str] = [why for part in parts for why in part.rejected]
        if len(parts) > 1:
            _check_unique(self.ids)

    @property
    def ids(self) -> Sequence[str]:
        """The id of each task; put together when asked for."""
        return list(chain.from_iterable(map(task_ids, self.parts)))

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, index: int) -> Task:
        row = range(len(self))[operator.index(index)]
        part = bisect_right(self.starts, row) - 1
        return self.parts[part][row - self.starts[part]]


def _check_unique(ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for task_id in ids:
        if task_id in seen:
            raise UsageError(f"two tasks have the id {task_id!r}; each needs an id of its own.")
        seen.add(task_id)
