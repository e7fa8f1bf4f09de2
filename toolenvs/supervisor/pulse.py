"""A clock that stands still while this process is kept from running: no call pays for that."""

from __future__ import annotations

import contextlib
import time

from .processes import text

_UNNOTICED_NS = 200_000_000


class Pulse:
    """Time as the sandboxes had it: a frozen container (``docker pause``) freezes it, too.

    The supervisor wakes up several times a second and calls ``beat``. When much more time has
    passed than it slept, worked and waited for a processor, it was held, and its sandboxes, which
    are in the same control group, with it.
    """

    def __init__(self) -> None:
        self._held_ns = 0
        self._last_ns = time.monotonic_ns()
        self._last_ran_ns = _ran_ns()

    def now_ns(self) -> int:
        """Nanoseconds since some moment, those of being held left out."""
        return time.monotonic_ns() - self._held_ns

    def beat(self, slept_s: float) -> None:
        """Say that the process runs, after at most ``slept_s`` of sleep of its own will."""
        now_ns, ran_ns = time.monotonic_ns(), _ran_ns()
        missing = now_ns - self._last_ns - int(slept_s * 1e9) - (ran_ns - self._last_ran_ns)
        if missing > _UNNOTICED_NS:
            self._held_ns += missing
        self._last_ns, self._last_ran_ns = now_ns, ran_ns


def _ran_ns() -> int:
    """Time that this process used a processor or waited for one."""
    with contextlib.suppress(OSError, ValueError):
        used, waited, _ = text("/proc/self/schedstat").split()
        return int(used) + int(waited)
    return time.process_time_ns()
