"""Removing roles and their copies in a thread of its own: a disk that stalls delays no episode."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

_log = logging.getLogger(__name__)

_MOST_WAITING = 1000
_PAUSE_S = 0.5  # before one is tried again that could not be removed
_CLOSE_S, _STUCK_S = 30.0, 3.0


class Drops:
    """What is to be removed; whatever is left in the end the next client's sweep finds.

    Args:
        remove: removes a role and its copy; False where they are still in use.
    """

    def __init__(self, remove: Callable[[str], bool]) -> None:
        self._remove = remove
        self._changed = threading.Condition()
        self._waiting: deque[str] = deque()
        self._stuck: set[str] = set()
        self._running = False
        self._ending = False
        weakref.finalize(self, _at_exit, self._changed, self._waiting, os.getpid())

    def add(self, role: str) -> None:
        """Have a role removed soon; one too many is left to the next client's sweep."""
        with self._changed:
            if role in self._waiting or self._ending:
                return
            if len(self._waiting) >= _MOST_WAITING:
                _log.warning("%d roles wait to be removed; %s is left", len(self._waiting), role)
                return
            self._waiting.append(role)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="toolenvs-drops", daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all are removed that can be; tell whether all are."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) == len(self._stuck), timeout_s)
            return not self._waiting

    def close(self) -> None:
        """Wait for a bounded time, then stop. More than once is harmless."""
        if self._ending:
            return
        self.wait(_CLOSE_S)
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, _STUCK_S)
            self._ending = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting or self._ending:
                    self._running = False
                    return
                role = self._waiting[0]
            gone = self._try(role)
            with self._changed:
                self._waiting.popleft()
                if gone:
                    self._stuck.discard(role)
                else:
                    self._stuck.add(role)
                    self._waiting.append(role)
                self._changed.notify_all()
                if len(self._stuck) == len(self._waiting) and not gone:
                    self._changed.wait_for(lambda: self._ending, _PAUSE_S)

    def _try(self, role: str) -> bool:
        try:
            return self._remove(role)
        except Exception as error:  # the server may be gone: then the next client's sweep does it
            _log.debug("the role %s is not removed yet: %s", role, error)
            return False


def _at_exit(changed: threading.Condition, waiting: deque[str], pid: int) -> None:
    if pid == os.getpid():
        with changed:
            changed.wait_for(lambda: not waiting, _STUCK_S)
