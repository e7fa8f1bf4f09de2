"""What a replay mode does with one call: serve it, run it, record it, compare it.

    off      run
    record   run, record
    auto     serve what was recorded in this very state, else run and record
    replay   serve, else raise ``CacheMissError``; nothing ever runs
    verify   run, record, and compare with what was recorded

Only facts are recorded. A fault of the machine never is. Time-outs and memory errors are, but
``auto`` does not serve them; nor results that hold the name of one sandbox's own folder, where each
has another; nor results of the outside world, unless they are shared; nor a
stateful call that was seen to give two results, whose state no other run could rebuild.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal

import msgspec

from toolenvs.cache import Recording, ReplayCache
from toolenvs.errors import CacheMissError, RuntimeFailure, UnknownNameError
from toolenvs.protocols import Tool
from toolenvs.statekey import CallKey, StateKeys, Surroundings, digest, identity
from toolenvs.types import Task, ToolCall, ToolResult

_log = logging.getLogger(__name__)

Mode = Literal["off", "record", "auto", "replay", "verify"]
MODES: tuple[Mode, ...] = ("off", "record", "auto", "replay", "verify")

_IDENTITIES_KEPT = 64

COUNTS = ("cache_hits", "cache_misses", "cache_differences", "cache_s", "caught_up")
"""Keys of the counts: calls served and not found, results that differed from the recorded ones,
seconds spent looking up, and calls that were run again to rebuild a state."""

UNSERVABLE = ("timeout", "memory")
"""Errors that depend on how busy the machine was: ``auto`` runs such a call again."""

INTERRUPTED = ("timeout", "memory", "output", "processes")
"""Errors that stop a call somewhere in its middle: the state that it leaves is not known."""


class Answer(msgspec.Struct, frozen=True):
    """A call's result, and whether it ran just now."""

    result: ToolResult
    ran: bool


class Playback:
    """One environment's replay mode at work.

    Args:
        mode: one of ``MODES`` but ``off``.
        cache: where results are.
        runtimes: fingerprint and limits of each runtime, by what tools ``need``.
        counts: where to count; the keys of ``COUNTS``.
        share_external: serve results of the outside world to every episode.
    """

    def __init__(
        self,
        mode: Mode,
        cache: ReplayCache,
        *,
        runtimes: Mapping[str, Any],
        counts: MutableMapping[str, float],
        share_external: bool = False,
    ) -> None:
        if mode not in MODES[1:]:
            raise UnknownNameError("a replay mode that uses a cache", mode, MODES[1:])
        self.mode = mode
        self._cache = cache
        self._runtimes = runtimes
        self._counts = counts
        self._share_external = share_external
        own = [facts["own_folders"] for facts in runtimes.values() if facts.get("own_folders")]
        self._own = re.compile("|".join(own)) if own else None
        self._identities: dict[int, tuple[Tool, bytes]] = {}
        self._told: set[str] = set()

    def keys(self, task: Task, *, tools: Mapping[str, Tool], seed: int, episode: str) -> StateKeys:
        """What makes the keys of an episode's calls.

        Raises:
            UsageError: A tool has an option that is no data; see ``statekey.identity``.
        """
        around = Surroundings(task=task, seed=seed, runtimes=self._runtimes, episode=episode)
        identities = {
            name: self._identity(tool)
            for name, tool in tools.items()
            if not getattr(tool, "instant", False)  # never recorded
        }
        return StateKeys(around, tools=identities, share_external=self._share_external)

    def _identity(self, tool: Tool) -> bytes:
        """A tool's identity; kept, since writing it down costs more than a whole replayed step."""
        known = self._identities.get(id(tool))
        if known is None or known[0] is not tool:
            if len(self._identities) >= _IDENTITIES_KEPT:
                self._identities.clear()
            known = self._identities[id(tool)] = (tool, identity(tool))
        return known[1]

    def count(self, name: str, amount: float = 1.0) -> None:
        """Add to one of the counts."""
        self._counts[name] = self._counts.get(name, 0.0) + amount

    async def answer(
        self,
        tool: Tool,
        call: ToolCall,
        key: CallKey | None,
        perform: Callable[[], Awaitable[ToolResult]],
    ) -> Answer:
        """The result of one call, by the mode.

        Args:
            tool: the tool.
            call: the call, for messages.
            key: the call in its state; None where that cannot be told: then it is not recorded.
            perform: runs the call.

        Raises:
            CacheMissError: In ``replay``, nothing was recorded; the message names the nearest.
            RuntimeFailure: The machine failed.
        """
        if self.mode == "replay":
            return Answer(self._replayed(call, key), ran=False)
        if key is None:
            return Answer(await perform(), ran=True)
        if self.mode == "auto":
            return await self._served_or_run(tool, key, perform)
        before = self._look_up(key) if self.mode == "verify" else None
        result = self._record(key, await perform())
        if before is not None:
            self._compare(call, key, before, result)
        return Answer(result, ran=True)

    def diverged(self, key: CallKey | None) -> None:
        """Remember that an earlier call gave another result when a state was rebuilt."""
        self.count("cache_differences")
        if key is not None:
            self._mark(key)

    def _replayed(self, call: ToolCall, key: CallKey | None) -> ToolResult:
        if key is None:
            raise CacheMissError(
                f"{call.name!r} cannot be replayed from the cache: an earlier call of this session "
                "was interrupted or holds what is no JSON, so nothing after it was recorded. "
                "'toolenvs replay RUN' plays recorded runs whatever happened in them."
            )
        before = time.perf_counter()
        try:
            found = self._cache.get(key)
            nearest = "" if found is not None else self._cache.explain_miss(key)
        except Exception as error:
            raise _failure(error) from error
        finally:
            self.count("cache_s", time.perf_counter() - before)
        if found is None:
            self.count("cache_misses")
            raise CacheMissError(
                f"{call.name!r} was never recorded in this state: {nearest} "
                "Record it with replay='record' or replay='auto'."
            )
        self.count("cache_hits")
        return found.result

    async def _served_or_run(
        self, tool: Tool, key: CallKey, perform: Callable[[], Awaitable[ToolResult]]
    ) -> Answer:
        found = self._servable(tool, key)
        if found is not None:
            return Answer(found, ran=False)
        if tool.kind == "stateful":
            # Not shared: whoever did not run it catches up later, and if it then gives another
            # result that episode is lost. Each session runs its own.
            return Answer(self._record(key, await perform()), ran=True)
        flights = self._cache.flights  # to land where it boarded
        flight, leads = await flights.board(key.key)
        if not leads:
            shared = await flight.wait()
            if shared is not None:
                self._turn_into_hit()
                return Answer(shared, ran=False)
            return Answer(self._record(key, await perform()), ran=True)
        landed: ToolResult | None = None
        try:
            result = self._record(key, await perform())
            if self._lasts(result) and self._may_serve(tool):
                landed = result
            return Answer(result, ran=True)
        finally:
            flights.land(key.key, landed)

    def _servable(self, tool: Tool, key: CallKey) -> ToolResult | None:
        if not self._may_serve(tool):
            return None
        found = self._look_up(key)
        if found is None or not found.servable or (found.differing and tool.kind == "stateful"):
            self.count("cache_misses")
            return None
        self.count("cache_hits")
        return found.result

    def _turn_into_hit(self) -> None:
        self.count("cache_misses", -1.0)
        self.count("cache_hits")

    def _lasts(self, result: ToolResult) -> bool:
        """Whether a call may give this elsewhere too: it tells of no busy machine, no folder."""
        if _kind(result) in UNSERVABLE:
            return False
        return self._own is None or not self._own.search(repr(result))

    def _may_serve(self, tool: Tool) -> bool:
        return tool.kind != "external" or self._share_external

    # A broken cache costs time, never an episode: whatever it raises, the call runs.

    def _look_up(self, key: CallKey) -> Recording | None:
        before = time.perf_counter()
        try:
            return self._cache.get(key)
        except Exception as error:
            self._tell("the replay cache does not answer, so calls run", error)
            return None
        finally:
            self.count("cache_s", time.perf_counter() - before)

    def _record(self, key: CallKey, result: ToolResult) -> ToolResult:
        try:
            return self._cache.put(key, result, servable=self._lasts(result))
        except Exception as error:
            self._tell(f"a result of {key.tool!r} is not recorded", error)
            return result

    def _mark(self, key: CallKey) -> None:
        try:
            self._cache.mark_differing(key)
        except Exception as error:
            self._tell("a call that gave two results is not marked", error)

    def _tell(self, what: str, error: Exception) -> None:
        """Log it, once for each kind: a broken cache would fill the log with every call."""
        kind = f"{what}: {type(error).__name__}"
        _log.log(logging.DEBUG if kind in self._told else logging.WARNING, "%s: %s", what, error)
        self._told.add(kind)

    def _compare(self, call: ToolCall, key: CallKey, before: Recording, result: ToolResult) -> None:
        self.count("cache_hits")
        if digest(before.result) == digest(result):
            return
        self.count("cache_differences")
        if before.servable:
            self._mark(key)
        _log.warning(
            "%s gave another result than recorded: %.200r, recorded %.200r",
            call.name,
            result.text,
            before.result.text,
        )


def _failure(error: Exception) -> RuntimeFailure:
    """What is wrong with a cache, as a failure of the machine: the agent did nothing."""
    if isinstance(error, RuntimeFailure):
        return error
    return RuntimeFailure("cache", str(error) or type(error).__name__)


def kept_state(result: ToolResult) -> bool:
    """Whether a call was stopped, but undone as a whole: it left the state that it found."""
    kept = result.data.get("state_kept") and not result.data.get("session_lost")
    return _kind(result) in INTERRUPTED and bool(kept)


def interrupted(result: ToolResult) -> bool:
    """Whether a call was stopped in its middle, so that the state it left is not known."""
    return _kind(result) in INTERRUPTED and not kept_state(result)


def _kind(result: ToolResult) -> str:
    return result.error.kind if result.error is not None else ""
