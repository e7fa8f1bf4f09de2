"""Who may run next: calls wait here, before their clock starts, until a processor is near.

Without a bound, two hundred busy calls on two processors would each get a hundredth of one: their
supervisor starves among them, and every one reaches its wall-clock backstop. In turn each is done
in a few times its own processor time.

Calls are admitted in the order of asking. An episode makes one call at a time, so that is fair
between episodes.

    turn = await gate.enter(fd)     # fd: what becomes readable when the call has ended
    try:
        ...
    finally:
        turn.leave()
"""

from __future__ import annotations

import functools
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from toolenvs.drivers import Loop, Request
from toolenvs.errors import UsageError

CALLS_PER_PROCESSOR = 4
"""Some calls sleep or wait for files, so there are more than processors at once."""

_LOOK_S = 0.05


class Turn:
    """A place among the running calls, or in the line; ``leave`` gives it up either way."""

    __slots__ = ("_gate", "admitted", "fd", "tell")

    def __init__(self, gate: Admission, fd: int) -> None:
        self._gate = gate
        self.fd = fd
        self.admitted = False
        self.tell: Callable[[], None] | None = None  # wakes whoever waits

    def leave(self) -> None:
        """Let the next one in. More than once is harmless."""
        self._gate._leave(self)


class _Admitted(Request[bool]):
    """Wait for a turn: True once it has come, False after a while."""

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def perform(self) -> bool:
        event = threading.Event()
        self._turn._gate._when_admitted(self._turn, event.set)
        return event.wait(_LOOK_S)

    def start(self, loop: Loop, wake: Callable[[bool | None, BaseException | None], None]) -> None:
        woken = False

        def once(admitted: bool) -> None:
            nonlocal woken
            if not woken:
                woken = True
                wake(admitted, None)

        loop.call_at(time.monotonic() + _LOOK_S, lambda: once(False))
        tell = functools.partial(loop.call_soon_threadsafe, lambda: once(True))
        self._turn._gate._when_admitted(self._turn, tell)


class Admission:
    """A bound on calls at once, in one process; any thread and any driver may use it.

    A call that has ended keeps no place, even if whoever started it has not looked yet: one thread
    may drive a loop, leave it, and make calls of its own meanwhile.

    Args:
        places: calls at once, at least 1.

    Raises:
        UsageError: There is no place.
    """

    _every: ClassVar[weakref.WeakSet[Admission]] = weakref.WeakSet()

    def __init__(self, places: int) -> None:
        if places < 1:
            raise UsageError(f"calls_at_once={places}: at least 1 call must run at once.")
        self.places = places
        self._forget()
        self._every.add(self)

    async def enter(self, fd: int) -> Turn:
        """Wait for a place.

        Args:
            fd: a descriptor that can be read once the call has ended.

        Returns:
            The place; whoever gets it calls ``leave``. A wait that is given up leaves the line.
        """
        turn = Turn(self, fd)
        with self._lock:
            if not self._line and len(self._running) < self.places:
                turn.admitted = True
                self._running.add(turn)
                return turn
            self._line.append(turn)
        try:
            while not await _Admitted(turn):
                self._look()
        except BaseException:
            turn.leave()
            raise
        return turn

    def _leave(self, turn: Turn) -> None:
        with self._lock:
            self._running.discard(turn)
            if not turn.admitted and turn in self._line:
                self._line.remove(turn)
            admitted = self._admit()
        _wake(admitted)

    def _when_admitted(self, turn: Turn, tell: Callable[[], None]) -> None:
        with self._lock:
            turn.tell = tell
            if not turn.admitted:
                return
        tell()

    def _look(self) -> None:
        """Free the places of calls that have ended unnoticed."""
        with self._lock:
            poll = select.poll()
            for turn in self._running:
                poll.register(turn.fd, select.POLLIN)
            ended = {fd for fd, _ in poll.poll(0)}
            self._running -= {turn for turn in self._running if turn.fd in ended}
            admitted = self._admit()
        _wake(admitted)

    def _admit(self) -> list[Turn]:
        """With the lock held: move those whose turn it is from the line to a place."""
        admitted = []
        while self._line and len(self._running) < self.places:
            turn = self._line.popleft()
            turn.admitted = True
            self._running.add(turn)
            admitted.append(turn)
        return admitted

    def _forget(self) -> None:
        """Begin empty: in a fork those who run and wait are the parent's."""
        self._lock = threading.Lock()
        self._running: set[Turn] = set()
        self._line: deque[Turn] = deque()

    @classmethod
    def _forget_all(cls) -> None:
        for gate in list(cls._every):
            gate._forget()


def _wake(admitted: list[Turn]) -> None:
    for turn in admitted:
        if turn.tell is not None:
            turn.tell()


@functools.cache
def admission(calls_at_once: int = 0) -> Admission:
    """The gate that all of this process with the same number share.

    Args:
        calls_at_once: places; 0: ``CALLS_PER_PROCESSOR`` for each processor of this process.

    Raises:
        UsageError: The number is below 0.
    """
    return Admission(calls_at_once or CALLS_PER_PROCESSOR * len(os.sched_getaffinity(0)))


os.register_at_fork(after_in_child=Admission._forget_all)
