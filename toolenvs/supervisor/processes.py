"""Which processes belong to a sandbox and what they use, read from /proc.

Processor time is that of all processes, with children that were waited for. The delay of a task is
the time it was ready to run and waited for a processor (``schedstat``, second field).
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_UNTRACEABLE = 0  # the owner of /proc/PID when the process cannot be dumped, whoever runs it


class Process(NamedTuple):
    """One line of the process table.

    Attributes:
        pid: its number.
        parent: its parent's.
        cpu_ns: processor time, with that of children that were waited for.
        resident_bytes: memory, with pages that it shares.
        ended_children: grows whenever a child of it was waited for.
        is_zombie: it has ended, and nobody has waited for it.
    """

    pid: int
    parent: int
    cpu_ns: int
    resident_bytes: int
    ended_children: int
    is_zombie: bool


Members = Callable[[], list[Process]]
"""Lists a sandbox's processes, the child first if it lives."""


class Table:
    """Every process that can be seen, as they were at one moment."""

    def __init__(self) -> None:
        self._processes = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile
                    self._processes.append(_read(int(entry.name)))

    def of_uid(self, uid: int) -> list[Process]:
        """The processes whose user id is ``uid``."""
        return self._by_uid.get(uid, [])

    def one(self, pid: int) -> list[Process]:
        """The process with this number, if it lives."""
        return [process for process in self._processes if process.pid == pid]

    def family(self, child: int, first: int, space: str) -> list[Process]:
        """All processes of a namespace, the child first if it lives.

        Args:
            child: its number, 0 if there is none.
            first: process 1 of the namespace, which is left out.
            space: the namespace, see ``space_of``.
        """
        found = self.one(child) if child else []
        found += [process for process in self._by_space.get(space, ()) if process.pid != child]
        seen = {first, *(process.pid for process in found)}
        parents = list(seen)
        while parents:
            new = [process for process in self._by_parent[parents.pop()] if process.pid not in seen]
            seen.update(process.pid for process in new)
            parents += [process.pid for process in new]
            found += new
        return found

    @functools.cached_property
    def _by_uid(self) -> dict[int, list[Process]]:
        found: dict[int, list[Process]] = defaultdict(list)
        for process in self._processes:
            found[_uid(process.pid)].append(process)
        return found

    @functools.cached_property
    def _by_space(self) -> dict[str, list[Process]]:
        """Our own children: code can make more of them than we did (CLONE_PARENT)."""
        found: dict[str, list[Process]] = defaultdict(list)
        for process in self._by_parent[os.getpid()]:
            found[space_of(process.pid)].append(process)
        return found

    @functools.cached_property
    def _by_parent(self) -> dict[int, list[Process]]:
        found: dict[int, list[Process]] = defaultdict(list)
        for process in self._processes:
            found[process.parent].append(process)
        return found


def _read(pid: int) -> Process:
    fields = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = sum(int(field) for field in fields[11:15])  # own and waited-for, user and system
    return Process(
        pid,
        parent=int(fields[1]),
        cpu_ns=ticks * _TICK_NS,
        resident_bytes=int(fields[21]) * mmap.PAGESIZE,
        ended_children=int(fields[8]),  # their page faults: no process does without
        is_zombie=fields[0] == "Z",
    )


def _uid(pid: int) -> int:
    with contextlib.suppress(OSError):
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - this runs often
        if uid != _UNTRACEABLE:
            return uid
        for line in text(f"/proc/{pid}/status").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return -1


def space_of(pid: int) -> str:
    """The namespace of process numbers that a process is in, ``""`` where that cannot be seen."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - this runs often
    return ""


def delays(members: Iterable[Process]) -> dict[int, int]:
    """Nanoseconds that each task has waited for a processor since it began, by its id."""
    found = {}
    for process in members:
        with contextlib.suppress(OSError):
            for task in os.scandir(f"/proc/{process.pid}/task"):
                with contextlib.suppress(OSError, IndexError):
                    found[int(task.name)] = int(text(f"{task.path}/schedstat").split()[1])
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


def text(path: str, size: int = 4096) -> str:
    """The first ``size`` bytes of a file of the kernel's, in one read."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, size).decode("utf-8", "replace")
    finally:
        os.close(number)
