"""The one thread that writes: statements in, transactions out, in the order in which they came.

Writes that wait at the same time share a transaction. A busy database is tried again until it takes
them; a broken one costs these writes, is told once in the log, and never disturbs an episode. Who
waits for it waits so long for one transaction and no longer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

_log = logging.getLogger(__name__)

_BATCH = 1024  # of random keys: the fewer commits, the fewer pages are written twice
_MOST_WAITING = 4096  # writes
_MOST_BYTES = 64 << 20  # bytes of them
_GRACE_S = 1.0  # for each who comes when the time is over: the lock may be gone by now
_STUCK = "takes no result, as if another process kept it locked"


class ClosedError(Exception):
    """A write came after the end: it is not taken, so that nothing is lost in silence."""


class Write(msgspec.Struct, frozen=True):
    """One statement to execute.

    Attributes:
        statement: an SQLAlchemy statement; neighbours with the same object go out as one.
        values: its parameters.
        size: bytes, for the bound on what waits.
    """

    statement: Any
    values: Mapping[str, Any]
    size: int = 0


class Writer:
    """Executes writes on a thread of its own, which starts with the first of them.

    Args:
        execute: executes a batch in one transaction; raises when the database is broken.
        done: told of each batch once it is over, committed or lost.
        place: the database's, for the log.
        patience_s: how long anybody waits for one batch.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[Write]], None],
        done: Callable[[Sequence[Write]], None],
        *,
        place: str,
        patience_s: float,
    ) -> None:
        self._execute = execute
        self._done = done
        self._place = place
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._waiting: deque[Write] = deque()
        self._bytes = 0
        self._taken = 0
        self._finished = 0
        self._began: float | None = None  # when the batch under way was
        self._told = False  # that it takes long
        self._abandoned = False
        self._thread: threading.Thread | None = None
        self.closed = False
        """Whether it takes no more."""
        self.lost = 0
        """Writes that a broken or locked database did not take."""
        self.trouble = ""
        """What was wrong with it, last."""

    def put(self, write: Write) -> None:
        """Hand a write over; waits while too much is waiting, and loses it if nothing moves.

        Raises:
            ClosedError: After ``close``.
        """
        with self._changed:
            while not self.closed and self._is_full():
                if not self._wait(0.0):
                    self._lose([write], f"{self._place} {_STUCK}")
                    return
            if self.closed:
                raise ClosedError
            self._waiting.append(write)
            self._bytes += write.size
            self._taken += 1
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="toolenvs-cache", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> bool:
        """Wait until everything that was handed over is written; False where nothing moves."""
        with self._changed:
            until, at_least = self._taken, time.monotonic() + _GRACE_S
            while self._finished < until:
                if not self._wait(at_least):
                    return False
            return True

    def close(self) -> None:
        """Write what is left, unless nothing moves, and end the thread.

        More than once is harmless.
        """
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            at_least = time.monotonic() + _GRACE_S
            while self._finished < self._taken and not self._abandoned:
                self._abandoned = not self._wait(at_least)
                if self._abandoned:
                    left = self._taken - self._finished
                    self.lost += left
                    _log.error("%s %s: %d results were not written", self._place, _STUCK, left)
            thread = None if self._abandoned else self._thread
        if thread is not None:
            thread.join()

    def _wait(self, at_least: float) -> bool:
        """Wait for a change; False once the batch under way has had its time.

        So many that wait one after the other wait little longer than one.
        """
        now = time.monotonic()
        began = now if self._began is None else self._began
        left = max(began + self._patience_s, at_least) - now
        if left > 0:
            self._changed.wait(left)
            return True
        if not self._told:
            self._told = True
            left_now = self._taken - self._finished
            _log.warning("%s %s: %d results wait to be written", self._place, _STUCK, left_now)
        return False

    def _is_full(self) -> bool:
        return len(self._waiting) >= _MOST_WAITING or self._bytes >= _MOST_BYTES

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self._execute(batch)
                self._told = False
            except Exception as error:
                if self._abandoned:
                    return
                with self._changed:
                    self._lose(batch, str(error))
                time.sleep(0.1)
            else:
                self._done(batch)
            with self._changed:
                self._finished += len(batch)
                self._began = None
                self._changed.notify_all()

    def _lose(self, batch: Sequence[Write], trouble: str) -> None:
        if not self.lost:
            _log.error("the replay cache does not take results: %s", trouble)
        self.lost += len(batch)
        self.trouble = trouble
        self._done(batch)

    def _next_batch(self) -> list[Write]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._bytes -= sum(write.size for write in batch)
            self._began = time.monotonic()
            self._changed.notify_all()
            return batch
