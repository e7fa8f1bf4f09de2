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
from pathlib import Path
from typing import NoReturn

from . import system

_PID = struct.Struct("i")
_WORDS = 400
_INSIDE_ID = 1000
_SPACES = system.CLONE_NEWUSER | system.CLONE_NEWNS | system.CLONE_NEWIPC


class Nursery:
    """The supervisor's end. Make it before anything large is loaded.

    Raises:
        OSError: Namespaces cannot be made here; the text says why.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            _serve(theirs)
        theirs.close()
        self._wire = ours.detach()
        self._ready = self._receive()

    def take(self) -> int:
        """The process 1 of namespaces that nobody has used: user, mount, System V, process.

        Raises:
            OSError: The nursery has ended.
        """
        ready, self._ready = self._ready, 0
        if not ready:
            os.write(self._wire, b"n")
            ready = self._receive()
        return ready

    def _receive(self) -> int:
        answer = os.read(self._wire, _WORDS)
        if len(answer) != _PID.size:
            raise OSError(answer.decode("utf-8", "replace") or "the nursery has ended")
        return int(_PID.unpack(answer)[0])


def _serve(wire: socket.socket) -> NoReturn:
    try:
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
        # The control connection must end with the supervisor, not a moment later with this.
        os.closerange(3, wire.fileno())
        os.closerange(wire.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        wire.send(_first())
        ready = _first()
        while wire.recv(1):
            wire.send(ready)
            ready = _first()
    finally:
        os._exit(0)


def _first() -> bytes:
    """Make a process 1 and return its packed number once its namespaces are there, or why not.

    A process in between makes the process namespace and ends: whoever has made one can make no
    other, and may not always go back to where it was.
    """
    done, write = os.pipe2(os.O_CLOEXEC)
    if os.fork() == 0:
        _beget(write)
    os.close(write)
    told = os.read(done, _WORDS)
    os.close(done)
    return told


def _beget(write: int) -> NoReturn:
    try:
        system.unshare(system.CLONE_NEWPID)  # for the next fork, not for this process
        if os.fork() == 0:
            _hold(write)
    except OSError as error:
        _complain(write, error)
    finally:
        os._exit(0)


def _hold(write: int) -> NoReturn:
    try:
        number = int(Path("/proc/self").readlink().name)  # as the supervisor counts: its /proc
        system.prctl(system.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to the outer root
        system.unshare(_SPACES)
        system.map_ids(_INSIDE_ID, 0, 0)
        flags = system.MS_NOSUID | system.MS_NODEV | system.MS_RDONLY
        system.mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,mode=555")
        system.prctl(system.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which cannot reach a process 1
        os.write(write, _PID.pack(number))
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        while True:
            signal.pause()
    except OSError as error:
        _complain(write, error)
    finally:
        os._exit(71)


def _complain(write: int, error: OSError) -> None:
    os.write(write, f"namespaces cannot be made: {error}".encode()[:_WORDS])
