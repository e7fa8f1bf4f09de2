"""What a call is charged: how long it ran, what it used, and how its child ended."""

from __future__ import annotations

import os
import signal
import time
from typing import NamedTuple

from toolenvs.types import ExecStatus

_SHORTEST_PAUSE_S = 0.02
_CLOSE_S = 0.002  # less than this before its limit a call is at its limit


class Used(NamedTuple):
    """What a sandbox used since its call's first look, in seconds, over all its processes.

    All three were read at one moment. That may be a while ago on a crowded machine, so what has
    passed since must not count as time that the code had. Nor must a time in which the sandbox's
    machine stood still: ``passed_s`` is of the supervisor's clock, which then stands still too.
    """

    passed_s: float = 0.0
    cpu_s: float = 0.0
    delay_s: float = 0.0
    doubtful: bool = False


class Death(NamedTuple):
    """How a child ended, by the supervisor's ``wait4``."""

    status: int
    out_of_memory: bool = False
    nobodys_fault: bool = False

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 if none."""
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0

    @property
    def exit_code(self) -> int:
        """Its exit status, 0 if a signal ended it."""
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else 0

    @property
    def kind(self) -> ExecStatus:
        """What the call is told to have come to."""
        if self.out_of_memory:
            return "memory"
        if self.signal == signal.SIGXCPU:
            return "timeout"
        return "killed" if self.signal else "exited"


class CallClock:
    """How long a call has run, apart from waiting for a processor.

    Args:
        limit_s: seconds that it may run, and processor seconds that it may use.
        backstop: wall seconds that it may take, waiting for a processor included, as a multiple of
            ``limit_s``.
    """

    def __init__(self, limit_s: float, backstop: float) -> None:
        self.started = time.monotonic()
        self.limit_s = limit_s
        self.wall_limit_s = limit_s * backstop
        self.used = Used()
        self.head_s = 0.0  # that it ran before the first look

    @property
    def wall_s(self) -> float:
        """Wall seconds since it started."""
        return time.monotonic() - self.started

    def pause(self) -> float:
        """Seconds until the next look, 0.0 when the time is over."""
        passed = self.head_s + self.used.passed_s
        by_wall = min(self.limit_s - passed + self.used.delay_s, self.wall_limit_s - passed)
        by_cpu = self.limit_s - self.used.cpu_s
        if min(by_wall, by_cpu) <= _CLOSE_S:
            return 0.0
        # Two busy processes reach their limit in half the time: come back before that.
        return max(_SHORTEST_PAUSE_S, min(by_wall, by_cpu / 2))
