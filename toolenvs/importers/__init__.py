"""Trajectories that people already have, read into ``Trajectory``: one file for each layout.

    for found in read_foreign("rollouts.jsonl"):          # or layout="nemo_gym"
        found.trajectory, found.problems
    chat_messages(found.trajectory)                       # and as OpenAI's chat messages again

Imported episodes can be looked at, rescored by rubrics that need no evidence, and exported. They
were not made here, so their settings name only the layout and they cannot be replayed. Nothing is
dropped in silence: fields of a row are in ``Task.data`` under their own names, what is not mapped
is in ``Task.data["unmapped"]`` by its place, and each such thing is a problem of its episode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from toolenvs.errors import DataError
from toolenvs.importers._chat import chat_messages
from toolenvs.importers._notes import shown
from toolenvs.importers._reading import Record, read_records
from toolenvs.importers._talk import Found, assembled
from toolenvs.registry import Registry
from toolenvs.types import Trajectory

__all__ = [
    "Imported",
    "Importer",
    "Problem",
    "chat_messages",
    "get",
    "make",
    "names",
    "read_foreign",
    "register",
    "registry",
    "summed",
]

_log = logging.getLogger(__name__)


@runtime_checkable
class Importer(Protocol):
    """Knows one layout."""

    name: str

    def matches(self, record: Any) -> bool:
        """Tell whether a record, JSON data or the text of a whole file, is in this layout."""
        ...

    def read(self, record: Any) -> Iterator[Found | DataError]:
        """Read the episodes of one record; an error stands for one that cannot be read.

        Raises:
            DataError: It is not in this layout; the message says what is missing.
        """
        ...


registry: Registry[Importer] = Registry("a layout of trajectories", __name__)
register = registry.register
names = registry.names
get = registry.get
make = registry.make


class Problem(str):
    """What could not be mapped, ``"place: reason"``.

    Args:
        place: ``path:line`` or ``path[number]``, with the place within the record.
        reason: a sentence, the same for all problems of one kind.
    """

    place: str
    reason: str

    __slots__ = ("place", "reason")

    def __new__(cls, place: str, reason: str) -> Problem:
        self = super().__new__(cls, f"{place}: {reason}")
        self.place, self.reason = place, reason
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.place, self.reason


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One episode that was read.

    Attributes:
        trajectory: the episode.
        problems: what could not be mapped, with its place; empty if nothing.
        place: where it came from, ``path:line`` or ``path[number]``.
        layout: the name of its layout.
    """

    trajectory: Trajectory
    problems: tuple[Problem, ...]
    place: str
    layout: str


def read_foreign(
    path: str | Path, *, layout: str = "auto", refused: Callable[[Problem], None] | None = None
) -> Iterator[Imported]:
    """Read the trajectories of a file that another program wrote.

    A row that cannot be read never costs the others.

    Args:
        path: JSON, JSON Lines, or text; UTF-8.
        layout: a name of ``names()``, or ``"auto"``: the one that a record matches.
        refused: called for each row that holds no episode, with its place, value and reason; by
            default it is logged as a warning.

    Raises:
        DataError: The file cannot be read, or not one of its rows; with the first place.
        UnknownNameError: No layout has that name.
    """
    reader = _Reader(Path(path), layout, refused or _warn)
    for record in read_records(Path(path)):
        yield from reader.episodes(record)
    if not reader.read:
        more = f" ({reader.refusals - 1} further rows hold none either.)"
        told = f"{reader.first}{more if reader.refusals > 1 else ''}"
        raise DataError(told or f"{path}: there is no episode in it.")


def summed(problems: Iterable[Problem]) -> list[str]:
    """Each kind of problem once: the first of it, and how many there are."""
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.reason, []).append(problem)
    return [
        str(found[0]) if len(found) == 1 else f"{found[0]} ({len(found)} times)"
        for found in kinds.values()
    ]


class _Reader:
    """Reads the records of one file, each in its layout.

    Attributes:
        read: episodes that were read.
        refusals: rows, or episodes of rows, that could not be.
        first: the first refusal, ``""`` if there is none.
    """

    def __init__(self, path: Path, layout: str, refused: Callable[[Problem], None]) -> None:
        self.read = self.refusals = 0
        self.first = ""
        self._stem = path.stem
        self._auto = layout == "auto"
        self._chosen: Importer | None = None if self._auto else make(layout)
        self._refused = refused

    def episodes(self, record: Record) -> Iterator[Imported]:
        """Yield the episodes of a record; what is none is refused."""
        if record.fault:
            self._refuse(record.place, record.fault)
            return
        try:
            importer = self._importer(record)
            for number, found in enumerate(importer.read(record.content)):
                if isinstance(found, DataError):
                    self._refuse(record.place, str(found))
                    continue
                task_id = found.task_id or f"{self._stem}-{record.number + number}"
                made = _imported(found, record, task_id=task_id, layout=importer.name)
                self.read += 1
                yield made
        except DataError as error:
            self._refuse(record.place, str(error))

    def _importer(self, record: Record) -> Importer:
        """The layout of a record: that of the record before it, if it matches."""
        if self._chosen is not None and (not self._auto or self._chosen.matches(record.content)):
            return self._chosen
        for name in names():
            importer = make(name)
            if importer.matches(record.content):
                self._chosen = importer
                return importer
        raise DataError(
            f"this is in no layout that is known here ({', '.join(names())}): "
            f"{shown(record.content)}; name one if it is a variant of it."
        )

    def _refuse(self, place: str, reason: str) -> None:
        problem = Problem(place, reason)
        self.refusals += 1
        self.first = self.first or str(problem)
        self._refused(problem)


def _imported(found: Found, record: Record, *, task_id: str, layout: str) -> Imported:
    trajectory = assembled(found, task_id=task_id, layout=layout)
    told = [("", reason) for reason in record.problems] + found.notes.told
    return Imported(
        trajectory=trajectory,
        problems=tuple(
            Problem(f"{record.place}: {at}" if at else record.place, reason) for at, reason in told
        ),
        place=record.place,
        layout=layout,
    )


def _warn(problem: Problem) -> None:
    _log.warning("%s", problem)
