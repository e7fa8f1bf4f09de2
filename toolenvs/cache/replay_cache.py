"""``ReplayCache``: what everybody else sees of a cache."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from toolenvs import exactjson
from toolenvs.cache import stores
from toolenvs.cache.entry import Recording
from toolenvs.cache.flights import Flights
from toolenvs.cache.writer import ClosedError
from toolenvs.errors import UsageError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolResult

if TYPE_CHECKING:
    from toolenvs.cache.store import Store

T = TypeVar("T")


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds.

    Attributes:
        revision: of the tables.
        entries: results. tools: how many of each tool.
        servable: those that ``auto`` may serve; the others are time-outs and memory errors.
        differing: calls that were seen to give two results.
        damaged: entries that could not be read and were set aside.
        bytes: requests and results as they are stored.
        file_bytes: the file itself, 0 on a server.
        oldest, newest: seconds since 1970, 0 for an empty cache.
        runtimes: sandboxes that results were recorded in.
    """

    revision: str
    entries: int
    tools: Mapping[str, int]
    servable: int
    differing: int
    damaged: int
    bytes: int
    file_bytes: int
    oldest: float
    newest: float
    runtimes: int


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What ``export_to`` wrote.

    Attributes:
        entries: results in the file.
        damaged: entries and runtimes that could not be read and are not in it, each with why.
    """

    entries: int
    damaged: tuple[str, ...] = ()


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What ``import_from`` read.

    Attributes:
        entries: results that the file held.
        damaged: lines that could not be read, each as ``path:line: why``.
    """

    entries: int
    damaged: tuple[str, ...] = ()


class ReplayCache:
    """Results of calls by the state in which they were made. Usable from any thread.

    Construction is cheap and opens nothing; pickled, it is its URL; after a fork it opens anew.

    Args:
        url: ``sqlite:///FILE``, or ``postgresql://USER@HOST/NAME`` for many machines.
        create: make a cache where there is none; else its first use is a ``UsageError``.

    Raises:
        UsageError: That is no URL.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        if "://" not in url:
            raise UsageError(
                f"cache={url!r} is no URL: give sqlite:///FILE, or postgresql://USER@HOST/NAME for "
                "many machines."
            )
        self.url = url
        self._share = stores.Share(url, create=create)

    def get(self, key: CallKey) -> Recording | None:
        """What was recorded for exactly this request, None if nothing was.

        Another request under the same key is never served. An entry that cannot be read is set
        aside, named in the log, and counts as none.

        Raises:
            RuntimeFailure: The database is broken, or locked for half a minute.
        """
        return self._with_store(lambda store: store.get(key))

    def put(self, key: CallKey, result: ToolResult, *, servable: bool = True) -> ToolResult:
        """Record a result; it is in the database a moment later, see ``flush``.

        A call has one result: a second, different one only marks the first as differing, but a
        result takes the place of a time-out.

        Args:
            key: the call in its state.
            result: what it gave.
            servable: False for what only a replay may serve.

        Returns:
            The result as ``get`` returns it: tuples are lists.

        Raises:
            UsageError: The result holds what is no JSON, or is larger than 256 MiB; nothing is
                recorded.
        """
        return self._with_store(lambda store: store.put(key, result, servable=servable))

    def mark_differing(self, key: CallKey) -> None:
        """Remember that this call gave two results in the same state."""
        self._with_store(lambda store: store.mark(key.key))

    def explain_miss(self, key: CallKey) -> str:
        """Say in one sentence which recording comes nearest and in what it differs."""
        from toolenvs.cache.nearest import explain_miss

        return self._with_store(lambda store: explain_miss(store, key))

    @property
    def flights(self) -> Flights:
        """The calls of this process that are on their way; the same object for one URL."""
        return stores.flights_of(self.url)

    @property
    def lost(self) -> int:
        """Results that this process could not write because the database was broken or locked."""
        store = self._share.taken
        return store.lost if store is not None else 0

    # -- what sandboxes stand for ---------------------------------

    def see_runtime(self, asked: Any, facts: Any) -> None:
        """Remember what a sandbox setting stood for, so that a replay needs no sandbox to know.

        Args:
            asked: the setting, JSON data.
            facts: fingerprint and limits of the runtime that it gave, JSON data.
        """
        text = exactjson.encode(facts, name="runtime")
        key, digest = _digest(asked), hashlib.sha256(text).digest()
        self._with_store(lambda store: store.see_runtime(key, text, digest, seen=time.time()))

    def seen_runtimes(self, asked: Any) -> list[Any]:
        """What a sandbox setting stood for when something was recorded, newest first."""
        key = _digest(asked)
        found = self._with_store(lambda store: store.seen_runtimes(key))
        return [exactjson.decode(facts) for facts in found]

    # -- upkeep ---------------------------------

    def stats(self) -> CacheStats:
        """Count what the cache holds."""
        from toolenvs.cache.upkeep import count

        return self._with_store(count)

    def prune(self, *, max_age_s: float | None = None, max_bytes: int | None = None) -> int:
        """Delete old entries and return how many.

        Args:
            max_age_s: entries recorded longer ago are deleted.
            max_bytes: the oldest are deleted until requests and results fit.

        Raises:
            UsageError: A bound is negative, or larger than a database counts to.
            RuntimeFailure: The database is broken, or stayed locked for half a minute.
        """
        from toolenvs.cache.upkeep import prune

        return self._with_store(lambda s: prune(s, max_age_s=max_age_s, max_bytes=max_bytes))

    def export_to(self, path: str | os.PathLike[str]) -> Exported:
        """Write every entry into a file of JSON lines, whole or not at all.

        An entry that cannot be read is named in what is returned, and the others are written.

        Raises:
            UsageError: The file cannot be written.
        """
        from toolenvs.cache.archive import export_to

        return self._with_store(lambda store: export_to(store, Path(path)))

    def import_from(self, path: str | os.PathLike[str]) -> Imported:
        """Record the entries of an exported file; those that are there already stay.

        A line that cannot be read is named in what is returned, and the others are taken.

        Raises:
            DataError: It is no export at all, or of a newer version; nothing is recorded.
            RuntimeFailure: The database did not take everything.
        """
        from toolenvs.cache.archive import import_from

        return self._with_store(lambda store: import_from(store, Path(path)))

    # -- life ---------------------------------

    def open(self) -> None:
        """Open the database now, so that what is wrong with it shows.

        Raises:
            UsageError: The file cannot be used. NewerVersionError: A newer toolenvs made it.
            RuntimeFailure: The server does not answer.
        """
        self._share.take()

    def flush(self) -> bool:
        """Wait until everything recorded so far is in the database.

        Returns:
            False where that stays locked for half a minute; it goes on trying.
        """
        store = self._share.taken
        return store is None or store.flush()

    def close(self) -> None:
        """Write what is left and let go of the database. It opens again when it is used again.

        Where it stays locked for half a minute, results are given up, and the log says how many.
        """
        self._share.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., ReplayCache], tuple[str, bool]]:
        return _reopened, (self.url, self._share.create)

    def _with_store(self, work: Callable[[Store], T]) -> T:
        """Do ``work`` on the open store; again, on a new one, where it was closed in between."""
        while True:
            try:
                return work(self._share.take())
            except ClosedError:
                continue


def _reopened(url: str, create: bool) -> ReplayCache:
    return ReplayCache(url, create=create)


def _digest(asked: Any) -> bytes:
    return hashlib.sha256(exactjson.encode(asked, name="sandbox")).digest()
