"""``ReplayCache``: what everybody else sees of a cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from toolenvs import exactjson
from toolenvs.cache import stores
from toolenvs.cache.entry import Recording
from toolenvs.cache.flights import Flights
from toolenvs.errors import UsageError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolResult

if TYPE_CHECKING:
    from toolenvs.cache.store import Store


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds.

    Attributes:
        entries: results. tools: how many of each tool.
        servable: those that ``auto`` may serve; the others are time-outs and memory errors.
        differing: calls that were seen to give two results.
        damaged: entries that could not be read and were set aside.
        bytes: requests and results as they are stored.
        file_bytes: the file itself, 0 on a server.
        oldest, newest: seconds since 1970, 0 for an empty cache.
        runtimes: sandboxes that results were recorded in.
    """

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


class ReplayCache:
    """Results of calls by the state in which they were made. Usable from any thread.

    Construction is cheap and opens nothing; pickled, it is its URL; after a fork it opens anew.

    Args:
        url: ``sqlite:///FILE``, or ``postgresql://USER@HOST/NAME`` for many machines.

    Raises:
        UsageError: That is no URL.
    """

    def __init__(self, url: str) -> None:
        if "://" not in url:
            raise UsageError(
                f"cache={url!r} is no URL: give sqlite:///FILE, or postgresql://USER@HOST/NAME for "
                "many machines."
            )
        self.url = url
        self._store: Store | None = None
        self._pid = 0

    def get(self, key: CallKey) -> Recording | None:
        """What was recorded for exactly this request, None if nothing was.

        Another request under the same key is never served. An entry that cannot be read is set
        aside, named in the log, and counts as none.

        Raises:
            RuntimeFailure: The database is broken, or locked for half a minute.
        """
        return self._opened().get(key)

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
            UsageError: The result holds what is no JSON; nothing is recorded.
        """
        return self._opened().put(key, result, servable=servable)

    def mark_differing(self, key: CallKey) -> None:
        """Remember that this call gave two results in the same state."""
        self._opened().mark(key.key)

    def explain_miss(self, key: CallKey) -> str:
        """Say in one sentence which recording comes nearest and in what it differs."""
        from toolenvs.cache.nearest import explain_miss

        return explain_miss(self._opened(), key)

    @property
    def flights(self) -> Flights:
        """The calls of this process that are on their way."""
        return self._opened().flights

    @property
    def lost(self) -> int:
        """Results that this process could not write because the database was broken."""
        return self._store.lost if self._store is not None else 0

    # -- what sandboxes stand for ---------------------------------

    def see_runtime(self, asked: Any, facts: Any) -> None:
        """Remember what a sandbox setting stood for, so that a replay needs no sandbox to know.

        Args:
            asked: the setting, JSON data.
            facts: fingerprint and limits of the runtime that it gave, JSON data.
        """
        text = exactjson.encode(facts, name="runtime")
        self._opened().see_runtime(_digest(asked), text, hashlib.sha256(text).digest())

    def seen_runtimes(self, asked: Any) -> list[Any]:
        """What a sandbox setting stood for when something was recorded, newest first."""
        return [exactjson.decode(facts) for facts in self._opened().seen_runtimes(_digest(asked))]

    # -- upkeep ---------------------------------

    def stats(self) -> CacheStats:
        """Count what the cache holds."""
        from toolenvs.cache.upkeep import count

        return count(self._opened())

    def prune(self, *, max_age_s: float | None = None, max_bytes: int | None = None) -> int:
        """Delete old entries and return how many.

        Args:
            max_age_s: entries recorded longer ago are deleted.
            max_bytes: the oldest are deleted until requests and results fit.

        Raises:
            UsageError: A bound is negative.
        """
        from toolenvs.cache.upkeep import prune

        return prune(self._opened(), max_age_s=max_age_s, max_bytes=max_bytes)

    def export_to(self, path: str | os.PathLike[str]) -> int:
        """Write every entry into a file of JSON lines, whole or not at all; return how many."""
        from toolenvs.cache.archive import export_to

        return export_to(self._opened(), Path(path))

    def import_from(self, path: str | os.PathLike[str]) -> int:
        """Record every entry of an exported file and return how many it held.

        Raises:
            DataError: It is no export; ``path:line`` is named, and nothing of it is recorded.
        """
        from toolenvs.cache.archive import import_from

        return import_from(self._opened(), Path(path))

    # -- life ---------------------------------

    def open(self) -> None:
        """Open the database now, so that what is wrong with it shows.

        Raises:
            UsageError: The file cannot be used. NewerVersionError: A newer toolenvs made it.
            RuntimeFailure: The server does not answer.
        """
        self._opened()

    def flush(self) -> None:
        """Wait until everything recorded so far is in the database."""
        if self._is_open():
            self._opened().flush()

    def close(self) -> None:
        """Write what is left and let go of the database. It opens again when it is used again."""
        if self._is_open():
            assert self._store is not None
            stores.release(self._store)
        self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[ReplayCache], tuple[str]]:
        return type(self), (self.url,)

    def _is_open(self) -> bool:
        return self._store is not None and self._pid == os.getpid()

    def _opened(self) -> Store:
        if not self._is_open():
            self._store = stores.acquire(self.url)
            self._pid = os.getpid()
        assert self._store is not None
        return self._store


def _digest(asked: Any) -> bytes:
    return hashlib.sha256(exactjson.encode(asked, name="sandbox")).digest()
