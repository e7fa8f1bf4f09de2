"""A light process that makes empty namespaces ahead of need.

Each set of namespaces is held by a process 1 of its own, which does nothing: what a sandbox leaves
behind is reaped by the kernel, and killing process 1 ends all the rest. It is a fork of the nursery
that sleeps in the C library from its first moment on, so it has hardly a page of its own; and the
nursery is forked before the libraries are loaded, so it is quickly forked itself.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from typing import NoReturn

from . import system

_PID = struct.Struct("i")
_WORDS = 400
_PATIENCE_MS = 20_000
_INSIDE_ID = 1000
_SPACES = system.CLONE_NEWUSER | system.CLONE_NEWNS | system.CLONE_NEWIPC | system.CLONE_NEWPID


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
        poll = select.poll()  # each process 1 holds the nursery's end: it need not end with it
        poll.register(self._wire, select.POLLIN)
        answer = os.read(self._wire, _WORDS) if poll.poll(_PATIENCE_MS) else b""
        if len(answer) != _PID.size:
            raise OSError(answer.decode("utf-8", "replace") or "the nursery has ended")
        return int(_PID.unpack(answer)[0])


def _serve(wire: socket.socket) -> NoReturn:
    try:
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        system.prctl(system.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps, and in each process 1 too
        # The control connection must end with the supervisor, not a moment later with this.
        os.closerange(0, wire.fileno())
        os.closerange(wire.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        system.travel_light()
        wire.send(_first())
        ready = _first()
        while wire.recv(1):
            wire.send(ready)
            ready = _first()
    finally:
        os._exit(0)


def _first() -> bytes:
    """Make a process 1 and return its packed number, or why there is none."""
    number = 0
    try:
        number = system.clone_asleep(_SPACES)
        system.map_ids(_INSIDE_ID, 0, 0, process=str(number))
    except OSError as error:
        if number:
            os.kill(number, signal.SIGKILL)
        return f"namespaces cannot be made: {error}".encode()[:_WORDS]
    return _PID.pack(number)
