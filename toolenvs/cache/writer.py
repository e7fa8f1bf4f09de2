"""The one thread that writes: statements in, transactions out, in the order in which they came.

Writes that wait at the same time share a transaction. A busy database is tried again until it takes
them; a broken one costs these writes, is told once in the log, and never disturbs an episode.
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
    """

    def __init__(
        self,
        execute: Callable[[Sequence[Write]], None],
        done: Callable[[Sequence[Write]], None],
    ) -> None:
        self._execute = execute
        self._done = done
        self._changed = threading.Condition()
        self._waiting: deque[Write] = deque()
        self._bytes = 0
        self._taken = 0
        self._finished = 0
        self._thread: threading.Thread | None = None
        self.closed = False
        """Whether it takes no more."""
        self.lost = 0
        """Writes that a broken database did not take."""
        self.trouble = ""
        """What was wrong with it, last."""

    def put(self, write: Write) -> None:
        """Hand a write over; waits while too much is waiting.

        Raises:
            ClosedError: After ``close``.
        """
        with self._changed:
            while not self.closed and self._is_full():
                self._changed.wait()
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

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything that was handed over is written; False after ``timeout_s``."""
        with self._changed:
            until = self._taken
            return self._changed.wait_for(lambda: self._finished >= until, timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Write what is left and end the thread. More than once is harmless."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def _is_full(self) -> bool:
        return len(self._waiting) >= _MOST_WAITING or self._bytes >= _MOST_BYTES

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self._execute(batch)
            except Exception as error:
                if not self.lost:
                    _log.error("the replay cache does not take results: %s", error)
                self.lost += len(batch)
                self.trouble = str(error)
                time.sleep(0.1)
            self._done(batch)
            with self._changed:
                self._finished += len(batch)
                self._changed.notify_all()

    def _next_batch(self) -> list[Write]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._bytes -= sum(write.size for write in batch)
            self._changed.notify_all()
            return batch
