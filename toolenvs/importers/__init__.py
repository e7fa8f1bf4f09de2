"""Trajectories that people already have, read into ``Trajectory``: one file for each layout.

    for found in read_foreign("rollouts.jsonl"):          # or layout="nemo_gym"
        found.trajectory, found.problems

Imported episodes can be looked at, rescored by rubrics that need no evidence, and exported. They
were not made here, so they hold no settings and cannot be replayed. What a layout holds besides its
messages is kept in ``Task.data``; what cannot be mapped is told as a problem of its episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from toolenvs.errors import DataError, UsageError
from toolenvs.importers._reading import Record, read_records
from toolenvs.importers._talk import Found, assembled
from toolenvs.registry import Registry
from toolenvs.types import Trajectory


@runtime_checkable
class Importer(Protocol):
    """Knows one layout."""

    name: str

    def matches(self, record: Any) -> bool:
        """Tell whether a record, JSON data or the text of a whole file, is in this layout."""
        ...

    def read(self, record: Any) -> Iterator[Found]:
        """Read the episodes of one record.

        Raises:
            DataError: It is not in this layout; the message says what is missing.
        """
        ...


registry: Registry[Importer] = Registry("a layout of trajectories", __name__)
register = registry.register
names = registry.names
get = registry.get
make = registry.make


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One episode that was read.

    Attributes:
        trajectory: the episode.
        problems: what could not be mapped, a sentence each with its place; empty if nothing.
        place: where it came from, ``path:line`` or ``path[number]``.
    """

    trajectory: Trajectory
    problems: tuple[str, ...]
    place: str


def read_foreign(path: str | Path, *, layout: str = "auto") -> Iterator[Imported]:
    """Read the trajectories of a file that another program wrote.

    Args:
        path: JSON, JSON Lines, or text.
        layout: a name of ``names()``, or ``"auto"``: the first that the first record matches.

    Raises:
        DataError: The file cannot be read, or a record is not in the layout; with its place.
        UsageError: No layout matches.
        UnknownNameError: No layout has that name.
    """
    chosen: Importer | None = None if layout == "auto" else make(layout)
    for record in read_records(Path(path)):
        if chosen is None:
            chosen = _matching(record)
        try:
            for number, found in enumerate(chosen.read(record.content)):
                task_id = found.task_id or f"{Path(path).stem}-{record.number + number}"
                trajectory, problems = assembled(found, task_id=task_id, layout=chosen.name)
                told = tuple(f"{record.place}: {problem}" for problem in problems)
                yield Imported(trajectory=trajectory, problems=told, place=record.place)
        except DataError as error:
            raise DataError(f"{record.place}: {error}") from None


def _matching(record: Record) -> Importer:
    for name in names():
        importer = make(name)
        if importer.matches(record.content):
            return importer
    raise UsageError(
        f"{record.place}: this is in no layout that is known here ({', '.join(names())}); "
        "name one if it is a variant of it."
    )
