"""Which processes belong to a sandbox and what they use, read from /proc.

Processor time is that of all processes, with children that were waited for. The delay of a task is
the time it was ready to run and waited for a processor (``schedstat``, second field).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    parent: int
    cpu_ns: int


Members = Callable[[], list[Process]]
"""Lists a sandbox's processes, the child first if it lives."""


def table() -> list[Process]:
    """Every process that can be seen."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile
                found.append(_read(int(entry.name)))
    return found


def _read(pid: int) -> Process:
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = sum(int(field) for field in fields[11:15])  # own and waited-for, user and system
    return Process(pid, int(fields[1]), ticks * _TICK_NS)


def of_uid(uid: int) -> list[Process]:
    """The processes whose real user id is ``uid``."""
    return [process for process in table() if _uid(process.pid) == uid]


def _uid(pid: int) -> int:
    # The owner of /proc/PID would not do: a process that cannot be dumped looks like root's.
    with contextlib.suppress(OSError):
        for line in _text(f"/proc/{pid}/status").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return -1


def family(child: int, first: int) -> list[Process]:
    """A child, if it lives, and all descendants of it and of ``first``, to which orphans go."""
    everyone = table()
    found = [process for process in everyone if process.pid == child]
    known = {child, first}
    grew = True
    while grew:
        new = [p for p in everyone if p.parent in known and p.pid not in known]
        known.update(process.pid for process in new)
        found += new
        grew = bool(new)
    return found


def delays(members: Iterable[Process]) -> dict[int, int]:
    """Nanoseconds that each task has waited for a processor since it began, by its id."""
    found = {}
    for process in members:
        with contextlib.suppress(OSError):
            for task in os.scandir(f"/proc/{process.pid}/task"):
                with contextlib.suppress(OSError, IndexError):
                    found[int(task.name)] = int(_text(f"{task.path}/schedstat").split()[1])
    return found


def interrupt(members: Members, child: int) -> bool:
    """SIGINT to a sandbox's child, SIGKILL to its other processes, however fast they fork.

    All are stopped first, until a look finds none that runs: what is stopped cannot fork.

    Returns:
        False when they could not all be stopped; then all that is left is to kill everything.
    """
    stopped: set[int] = set()
    for _ in range(50):
        running = {process.pid for process in members()} - stopped
        if not running:
            break
        for pid in running:
            _send(pid, signal.SIGSTOP)
        stopped |= running
    else:
        return False
    for pid in stopped - {child}:
        _send(pid, signal.SIGKILL)
    _send(child, signal.SIGINT)
    _send(child, signal.SIGCONT)
    return True


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _text(path: str) -> str:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, 4096).decode("utf-8", "replace")
    finally:
        os.close(number)
