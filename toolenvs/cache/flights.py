"""Concurrent equal calls run once: the first flies, the others wait for what it brings.

A call that would wait for itself is told to run instead: whoever waits under the same ``Loop`` is
pumped along with the leader, another thread makes progress by itself, but a blocking call on the
leader's own thread would stop it for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from toolenvs.drivers import Loop, Request, Signal
from toolenvs.types import ToolResult

PATIENCE_S = 30.0
"""How long a call waits for another thread's, which may belong to a loop that nobody pumps."""

_LOOK_S = 0.25  # how often it looks whether that thread is still there


class Flight:
    """One call on its way.

    Args:
        loop: the loop that drives the leader, None when a thread does by itself.
    """

    def __init__(self, loop: Loop | None) -> None:
        self._loop = loop
        self._thread = threading.current_thread()
        self._landed = Signal()
        self._result: ToolResult | None = None

    async def wait(self) -> ToolResult | None:
        """The leader's result; None when there is none to share: then run the call."""
        loop = await CurrentLoop()
        if loop is not None and loop is self._loop:
            await self._landed.wait()
        elif self._thread is not threading.current_thread():
            until = time.monotonic() + PATIENCE_S
            while not self.is_abandoned and time.monotonic() < until:
                if await self._landed.wait(_LOOK_S):
                    break
        return self._result

    @property
    def is_abandoned(self) -> bool:
        """Whether the leader's thread ended before it landed: nothing will come of it."""
        return not self._landed.is_set() and not self._thread.is_alive()

    def land(self, result: ToolResult | None) -> None:
        """Let the others go on, with a result or without one."""
        self._result = result
        self._landed.set()


class Flights:
    """The calls of this process that are on their way, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[bytes, Flight] = {}

    async def board(self, key: bytes) -> tuple[Flight, bool]:
        """The flight of this key, and whether the caller is the one that flies it.

        Whoever flies it must call ``land`` in the end, whatever happens.
        """
        loop = await CurrentLoop()
        with self._lock:
            flight = self._flying.get(key)
            if flight is not None and not flight.is_abandoned:
                return flight, False
            flight = self._flying[key] = Flight(loop)
            return flight, True

    def land(self, key: bytes, result: ToolResult | None) -> None:
        """End the flight of ``key``; ``result`` goes to those who wait, None sends them off."""
        with self._lock:
            flight = self._flying.pop(key, None)
        if flight is not None:
            flight.land(result)


class CurrentLoop(Request[Loop | None]):
    """Tells which loop drives the coroutine that awaits it, None under ``drivers.run``."""

    def perform(self) -> Loop | None:
        return None

    def start(self, loop: Loop, wake: Callable[[Loop | None, BaseException | None], None]) -> None:
        wake(loop, None)
