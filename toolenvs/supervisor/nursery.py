"""A light process that makes empty namespaces ahead of need.

Each set of namespaces is held by a process 1 of its own, which does nothing: what a sandbox leaves
behind is reaped by the kernel, and killing process 1 ends all the rest. Forked before the libraries
are loaded, the nursery and its process-1s cost little; the supervisor's own fork then only enters.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from typing import NoReturn

from . import system

_PID = struct.Struct("i")
_INSIDE_ID = 1000
_SPACES = system.CLONE_NEWUSER | system.CLONE_NEWNS | system.CLONE_NEWIPC


class Nursery:
    """The supervisor's end. Make it before anything large is loaded.

    Attributes:
        home: the supervisor's own process namespace, as a descriptor.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            _serve(theirs)
        theirs.close()
        self._wire = ours.detach()
        self.home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def take(self) -> int:
        """The process 1 of namespaces that nobody has used: user, mount, System V, process.

        Raises:
            OSError: The nursery has ended.
        """
        os.write(self._wire, b"n")
        answer = os.read(self._wire, _PID.size)
        if len(answer) != _PID.size:
            raise OSError("the nursery has ended")
        return int(_PID.unpack(answer)[0])


def _serve(wire: socket.socket) -> NoReturn:
    try:
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # inherited: the kernel reaps for all of us
        home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        ready = _first(home)
        while wire.recv(1):
            wire.send(_PID.pack(ready))
            ready = _first(home)
    finally:
        os._exit(0)


def _first(home: int) -> int:
    """Fork a process 1 and return once its namespaces are there."""
    done, write = os.pipe2(os.O_CLOEXEC)
    system.unshare(system.CLONE_NEWPID)  # for the next fork, not for this process
    pid = os.fork()
    if pid == 0:
        _hold(write)
    system.setns(home, system.CLONE_NEWPID)
    os.close(write)
    complete = os.read(done, 1)
    os.close(done)
    if not complete:
        raise OSError("namespaces cannot be made")
    return pid


def _hold(write: int) -> NoReturn:
    try:
        system.prctl(system.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to the outer root
        system.unshare(_SPACES)
        system.map_ids(_INSIDE_ID, 0, 0)
        system.prctl(system.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which cannot reach a process 1
        os.write(write, b"+")
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        while True:
            signal.pause()
    finally:
        os._exit(71)
