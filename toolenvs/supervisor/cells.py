"""The walls between two sandboxes of one supervisor, at two levels.

``UidCell``: each sandbox runs under a user id of its own, in a folder that belongs to it. Needs
the capabilities SETUID, SETGID and KILL; what containers allow.

``NamespaceCell``: each sandbox has user, process, mount and System V namespaces of its own and a
private folder in memory. Needs a kernel that lets the supervisor make user namespaces (5.14 for
process limits that count each sandbox alone).

The server calls nothing but what ``Cell`` lists.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Iterator
from typing import Protocol

from . import processes, system, wipe
from .nursery import Nursery

_NOBODY_AT_ALL = (1 << 31) - 17


class Cell(Protocol):
    """What the server asks of the walls around one sandbox."""

    folder: str
    pid: int
    """The child, until the server has reaped it; then 0."""

    def fork(self, disk_bytes: int) -> int:
        """Fork the sandbox's child inside the walls; return 0 in it, else ``pid``."""
        ...

    def members(self, table: processes.Table) -> list[processes.Process]:
        """The sandbox's processes among all."""
        ...

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Within it the server may read what the kernel shows of the sandbox's memory."""
        ...

    def kill(self) -> None:
        """SIGKILL to everything."""
        ...

    def clean(self) -> bool:
        """After ``kill``: remove what is left; True once nothing is."""
        ...


class UidCell:
    """Walls made of a user id.

    Args:
        uid: its own user and group id; no process of anything else may have it.
        folder: its folder, which belongs to that id.
    """

    def __init__(self, uid: int, folder: str) -> None:
        self.uid = uid
        self.folder = folder
        self.pid = 0

    def fork(self, disk_bytes: int) -> int:
        # The folder's size was set when it was mounted.
        self.pid = system.fork()
        if self.pid == 0:
            with _ends_here_on_failure():
                _be_first_to_go()
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
        return self.pid

    def members(self, table: processes.Table) -> list[processes.Process]:
        return table.of_uid(self.uid)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        # For files alone: a full change of user would let the sandbox send us signals meanwhile.
        system.set_file_ids(self.uid)
        try:
            yield
        finally:
            system.set_file_ids(0)

    def kill(self) -> None:
        with self._as_owner(), contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # as this user: it reaches exactly the user's processes

    def clean(self) -> bool:
        if _has_processes(self.uid):
            self.kill()
            return False
        with self._as_owner():
            wipe.empty(self.folder)
        return True

    @contextlib.contextmanager
    def _as_owner(self) -> Iterator[None]:
        os.setresuid(self.uid, self.uid, 0)
        try:
            yield
        finally:
            os.setresuid(0, 0, 0)


def _has_processes(uid: int) -> bool:
    if _priority_tells():
        with contextlib.suppress(ProcessLookupError):
            os.getpriority(os.PRIO_USER, uid)
            return True
        return False
    return bool(processes.Table().of_uid(uid))


@functools.cache
def _priority_tells() -> bool:
    """Whether the one call that tells at once if a user has processes does: gVisor's does not."""
    with contextlib.suppress(ProcessLookupError):
        os.getpriority(os.PRIO_USER, _NOBODY_AT_ALL)
        return False
    return True


class NamespaceCell:
    """Walls made of namespaces.

    The child is not process 1 in there: signals that it sends to itself have their usual effect.

    Args:
        folder: where the private folder is mounted.
        nursery: makes the namespaces.
    """

    def __init__(self, folder: str, nursery: Nursery) -> None:
        self.folder = folder
        self.pid = 0
        self._nursery = nursery
        self._first = 0  # process 1 of the namespaces
        self._space = ""
        self._handle = -1  # the same, safe from another process that gets its number

    def fork(self, disk_bytes: int) -> int:
        self._first = self._nursery.take()
        self._handle = os.pidfd_open(self._first)
        self._space = processes.space_of(self._first)
        spaces = [
            os.open(f"/proc/{self._first}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
            for kind in ("user", "mnt", "ipc")
        ]
        self.pid = -1
        try:
            system.setns(self._handle, system.CLONE_NEWPID)  # for the next fork
            self.pid = system.fork()
        finally:
            if self.pid != 0:
                for number in spaces:
                    os.close(number)
        if self.pid == 0:
            with _ends_here_on_failure():
                self._enter(spaces, disk_bytes)
        return self.pid

    def _enter(self, spaces: list[int], disk_bytes: int) -> None:
        _be_first_to_go()
        for number in spaces:
            system.setns(number, 0)
        flags = system.MS_NOSUID | system.MS_NODEV
        system.mount("tmpfs", "/proc", "tmpfs", flags | system.MS_RDONLY, "size=4k,mode=555")
        options = f"size={disk_bytes},nr_inodes=1k,mode=700"
        system.mount("tmpfs", self.folder, "tmpfs", flags, options)
        system.drop_capabilities()

    def members(self, table: processes.Table) -> list[processes.Process]:
        return table.family(self.pid, self._first, self._space)

    def reading(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # it is the parent of the sandbox's user namespace

    def kill(self) -> None:
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def clean(self) -> bool:
        if self.pid == 0 and self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        return self.pid == 0


def _be_first_to_go() -> None:
    """When memory runs out, a sandbox goes before its supervisor."""
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, b"1000")
        os.close(score)


@contextlib.contextmanager
def _ends_here_on_failure() -> Iterator[None]:
    """In a fresh fork: an exception must not carry it back into the supervisor's loop."""
    try:
        yield
    except BaseException as error:
        os.write(2, f"a new sandbox: {error!r}\n".encode())
        os._exit(71)
