"""Which task comes next: shuffled epochs, by splits, shards, groups and weights."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.protocols import TaskSource
from toolenvs.ranges import checked_whole
from toolenvs.tasks.collected import Mixture, task_ids
from toolenvs.types import Task

_SPLIT = re.compile(r"\[(?:(\d+\.?\d*)%)?:(?:(\d+\.?\d*)%)?\]")
_FULL = 1 << 64
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: multiples of it fill the circle most evenly
_NAMED_IDS = 20_000  # more are not searched for the nearest: it would take seconds


class Draw(msgspec.Struct, frozen=True):
    """What one episode plays.

    Attributes:
        task: the problem.
        sandbox_seed: where the sandbox's random streams begin, 0 to 2**32 - 1; the samples of one
            group share it.
        sample: number of the episode in its group, from 0.
    """

    task: Task
    sandbox_seed: int
    sample: int = 0


class TaskSampler:
    """Deals tasks from a source.

    A **stream** is an endless sequence of draws: shuffled epochs of the split's tasks one after
    the other, each task once in each epoch (``shuffle=False``: in the source's order), each played
    ``group`` times in a row. A shard takes every ``world``-th draw from the ``rank``-th on, so
    that all shards of a stream together play exactly what one sampler alone would have played.

    ``draw(rng, seed=s)`` begins the stream ``s - rank``: what it gives is a function of ``s``, the
    source and the settings alone, in any process. A draw without a seed goes on in that stream; the
    first of all takes its stream from ``rng``. Gymnasium's vector environments reset slot ``i``
    with ``seed + i``; with ``rank=i, world=N`` the slots so share one stream and the order of tasks
    is what one environment would have had with ``seed``, groups included. Processes of a cluster
    that shard likewise seed likewise: rank ``r`` with ``seed + r``.

    In a weighted ``Mixture`` each part has epochs of its own, and the stream takes from the parts
    by their shares, evenly spread: after any number of groups a part's count is off by a few at
    most.

    Args:
        source: the tasks.
        group: samples of each task, 1 or more.
        shuffle: whether each epoch is shuffled.
        rank: number of this shard, from 0.
        world: number of shards.
        split: which tasks, by a stable hash of their ids: ``"[:90%]"``, ``"[90%:]"`` or a pair of
            numbers ``(0.0, 0.9)``, the upper end not included; ``""`` is all. Splits that do not
            overlap share no task, and a task never changes its side when others are added.

    Raises:
        UsageError: A setting is out of range, or no task (of a weighted part) is in the split.
    """

    def __init__(
        self,
        source: TaskSource,
        *,
        group: int = 1,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        split: str | tuple[float, float] = "",
    ) -> None:
        self.source = source
        self.shuffle = bool(shuffle)
        self.group = checked_whole("group", group, least=1)
        self.world = checked_whole("world", world, least=1)
        self.rank = checked_whole("rank", rank)
        if self.rank >= self.world:
            raise UsageError(f"rank={rank}: with world={world} it must be from 0 to {world - 1}.")
        self._decks = _decks(source, split, shuffle=shuffle)
        self._shares = _Shares(source.weights or () if isinstance(source, Mixture) else ())
        self._stream: int | None = None
        self._position = self.rank
        self._rows: dict[str, int] | None = None

    def __len__(self) -> int:
        """The number of tasks in the split."""
        return sum(len(deck) for deck in self._decks)

    def draw(self, rng: np.random.Generator, *, seed: int | None = None) -> Draw:
        """Deal the next task.

        Args:
            rng: the environment's own generator; used once, for the first draw of all, and then
                only if no seed ever came.
            seed: the seed of this reset, if it has one: the stream begins anew.
        """
        stream = self._begin(rng, seed)
        group, sample = divmod(self._position, self.group)
        part, count = self._shares.part(stream, group)
        row = self._decks[part].row(stream, count)
        self._position += self.world
        return Draw(self.source[row], _number(stream, "group", group, size=4), sample)

    def pick(
        self,
        task_id: object,
        rng: np.random.Generator | None = None,
        *,
        seed: int | None = None,
        sample: int = 0,
    ) -> Draw:
        """Take a task by name, from the whole source, whatever split and shard are.

        The stream does not advance. The sandbox seed follows from the stream and the task, so that
        environments with equal seeds play the task as one group.

        Args:
            task_id: the id as text; an int (numpy's too) means the row of the source.
            rng: as for ``draw``.
            seed: as for ``draw``.
            sample: what ``Draw.sample`` shall be.

        Raises:
            UnknownNameError: No task has that id; the message names the nearest.
            UsageError: The row is out of range, or ``task_id`` is neither text nor int.
        """
        task = self.source[self._row(task_id)]
        stream = self._begin(rng, seed) if rng is not None or seed is not None else self._stream
        return Draw(task, _number(stream or 0, "pick", task.id, size=4), sample)

    def state(self) -> dict[str, Any]:
        """Everything that the next draws depend on besides the source: JSON values only."""
        return {**self._settings(), "stream": self._stream, "position": self._position}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on exactly where ``state()`` was taken.

        Raises:
            UsageError: It was taken with other settings or another number of tasks; the message
                says which.
        """
        for name, mine in self._settings().items():
            if state.get(name) != mine:
                raise UsageError(
                    f"this state cannot be restored here: it has {name}={state.get(name)!r}, "
                    f"this sampler {name}={mine!r}."
                )
        stream, position = state.get("stream"), state.get("position")
        if not isinstance(position, int) or not isinstance(stream, int | None):
            raise UsageError(f"no state of a sampler: stream={stream!r}, position={position!r}.")
        self._stream, self._position = stream, position

    def _settings(self) -> dict[str, Any]:
        return {
            "version": 1,
            "source": self.source.name,
            "tasks": [len(deck) for deck in self._decks],
            "weights": list(self._shares.weights),
            "group": self.group,
            "shuffle": self.shuffle,
            "rank": self.rank,
            "world": self.world,
        }

    def _begin(self, rng: np.random.Generator | None, seed: int | None) -> int:
        if seed is not None:
            self._stream = (operator.index(seed) - self.rank) % (_FULL // 2)
            self._position = self.rank
        elif self._stream is None:
            assert rng is not None
            self._stream = int(rng.integers(_FULL // 2))
        return self._stream

    def _row(self, task_id: object) -> int:
        if isinstance(task_id, str):
            if self._rows is None:
                self._rows = {known: row for row, known in enumerate(task_ids(self.source))}
            if task_id not in self._rows:
                raise UnknownNameError("a task", task_id, list(self._rows)[:_NAMED_IDS])
            return self._rows[task_id]
        if isinstance(task_id, bool) or not hasattr(task_id, "__index__"):
            raise UsageError(f"task_id={task_id!r} must be a text (the id) or an int (the row).")
        row = operator.index(task_id)
        if not 0 <= row < len(self.source):
            raise UsageError(
                f"task_id={row}: an int means the row, and {self.source.name!r} has the rows 0 to "
                f"{len(self.source) - 1}."
            )
        return row


class _Deck:
    """Rows that are dealt without replacement, in a new order each epoch."""

    def __init__(self, rows: npt.NDArray[np.int64], number: int, *, shuffle: bool) -> None:
        self._rows = rows
        self._number = number
        self._shuffle = shuffle
        self._order_of: tuple[int, int] | None = None
        self._order = rows

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, stream: int, count: int) -> int:
        """The row that is dealt after ``count`` others of the stream."""
        epoch, place = divmod(count, len(self._rows))
        if self._shuffle and self._order_of != (stream, epoch):
            # Sorting raw words, not Generator.permutation: numpy may change the latter's results.
            words = np.random.PCG64([stream, self._number, epoch]).random_raw(len(self._rows))
            self._order = self._rows[np.argsort(words, kind="stable")]
            self._order_of = (stream, epoch)
        return int(self._order[place])


class _Shares:
    """To which part of a weighted mixture each group of a stream belongs."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = tuple(weights)
        total = sum(Fraction(weight) for weight in weights)
        ends = accumulate(Fraction(weight) / total for weight in weights[:-1])
        self._ends = np.array([int(end * _FULL) for end in ends], dtype=np.uint64)
        self._counted_of: tuple[int, int] = (-1, 0)
        self._counts = np.zeros(len(weights), dtype=np.int64)

    def part(self, stream: int, group: int) -> tuple[int, int]:
        """The group's part, and how many groups of that part came before it."""
        if len(self.weights) < 2:
            return 0, group
        counted_stream, counted = self._counted_of
        if counted_stream != stream or counted > group:
            counted, self._counts = 0, np.zeros_like(self._counts)
        while counted < group:  # in pieces: a restored stream may be long
            piece = self._parts(stream, counted, min(group, counted + (1 << 20)))
            self._counts = self._counts + np.bincount(piece, minlength=len(self._counts))
            counted += len(piece)
        self._counted_of = (stream, group)
        part = int(self._parts(stream, group, group + 1)[0])
        return part, int(self._counts[part])

    def _parts(self, stream: int, first: int, end: int) -> npt.NDArray[np.int64]:
        start = np.uint64(_number(stream, "shares", 0, size=8))
        places = np.arange(first, end, dtype=np.uint64) * np.uint64(_GOLDEN) + start
        return np.searchsorted(self._ends, places, side="right").astype(np.int64)


def _decks(source: TaskSource, split: str | tuple[float, float], *, shuffle: bool) -> list[_Deck]:
    rows = _rows_in_split(source, split)
    starts = [0, len(source)]
    if isinstance(source, Mixture) and source.weights is not None:
        starts = list(source.starts)
    decks = []
    for number, (start, end) in enumerate(pairwise(starts)):
        deck = rows[(rows >= start) & (rows < end)]
        if not len(deck):
            raise UsageError(
                f"split={split!r} holds none of the {end - start} tasks "
                f"{start} to {end - 1} of {source.name!r}."
            )
        decks.append(_Deck(deck, number, shuffle=shuffle))
    return decks


def _rows_in_split(source: TaskSource, split: str | tuple[float, float]) -> npt.NDArray[np.int64]:
    low, high = _bounds(split)
    if (low, high) == (0, _FULL):
        return np.arange(len(source), dtype=np.int64)
    inside = [
        row
        for row, task_id in enumerate(task_ids(source))
        if low <= _number(0, "split", task_id, size=8) < high
    ]
    return np.array(inside, dtype=np.int64)


def _bounds(split: str | tuple[float, float]) -> tuple[int, int]:
    try:
        if isinstance(split, str):
            match = _SPLIT.fullmatch(split or "[:]")
            if match is None:
                raise ValueError
            low, high = Fraction(match[1] or 0) / 100, Fraction(match[2] or 100) / 100
        else:
            # By its digits, so that 0.9 is the 90% of the text form and splits meet exactly.
            low, high = (Fraction(str(end)) for end in split)
        if not 0 <= low < high <= 1:
            raise ValueError
    except (TypeError, ValueError):
        raise UsageError(
            f"split={split!r} must be '[:90%]', '[90%:]', '[10%:20%]' or a pair of numbers "
            "from 0 to 1, the smaller first."
        ) from None
    return int(low * _FULL), int(high * _FULL)


def _number(stream: int, purpose: str, key: object, *, size: int) -> int:
    """A number of ``size`` bytes that is the same in every process and Python."""
    text = f"{stream} {purpose} {key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=size).digest(), "big")
