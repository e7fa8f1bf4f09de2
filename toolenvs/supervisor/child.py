"""What a fork becomes: it puts up its own walls, then runs code for one sandbox."""

from __future__ import annotations

import array
import contextlib
import fcntl
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import clock, places, seccomp, system, wire
from .landlock import Rules
from .program import Outcome, Program
from .seeding import seed_all

_DATA = 3
_socket: Any = importlib.import_module("_socket")  # the code hardly patches it
_itimer = importlib.import_module("_signal").getitimer
_CPU_S = 3600  # for what runs on between calls; a call's own limit is kept from outside
_OPEN_FILES = 256
_KEPT = (
    *("LD_LIBRARY_PATH", "PATH", "PYTHONHASHSEED", "PYTHONPATH"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
)


class Walls(NamedTuple):
    """What every child of a supervisor puts around itself.

    Attributes:
        landlock: the kernel's version of it, 0 if none.
        filter: the filter of system calls.
        base_bytes: address space that the supervisor takes up.
    """

    landlock: int
    filter: bytes
    base_bytes: int


class Child:
    """The process of one sandbox.

    Args:
        fds: stdout, stderr and data.
        folder: its own folder.
        limits: bytes of address space that one process may add, processes, bytes in one file.
        walls: see there.
    """

    def __init__(
        self, fds: list[int], folder: str, limits: tuple[int, int, int], walls: Walls
    ) -> None:
        self._fds = fds
        self._folder = folder
        self._limits = limits
        self._walls = walls
        self._rules: Rules | None = None
        self._is_set_up = False
        self._is_branch = False

    def run(self) -> NoReturn:
        """Serve requests until the client is gone, and end the process."""
        try:
            self._arrange_descriptors()
            self._put_up_walls()
            self._settle()
            pid = os.getpid()
            program = Program()
            gc.enable()
            program.warm()
            while header := _receive(wire.REQUEST.size):
                length, operation, nonce = wire.REQUEST.unpack(header)
                payload = _receive(length)
                if operation == wire.SETUP:
                    outcome = self._set_up(payload)
                elif operation == wire.FORK:
                    outcome = self._fork()
                    pid = os.getpid()
                else:
                    outcome = self._run(program, payload)
                if os.getpid() != pid:  # the code has forked, and this is not the child it was
                    os._exit(outcome.exit_code or int(outcome.status != wire.OK))
                os.write(_DATA, wire.REPLY.pack(nonce, *outcome))
        except BaseException:  # the code has closed the socket, or has broken more than that
            os._exit(70)
        os._exit(0)

    def _arrange_descriptors(self) -> None:
        """Leave 0 (empty input), 1, 2 and the data socket at 3, and nothing else."""
        null = os.open("/dev/null", os.O_RDONLY)
        high = [fcntl.fcntl(number, fcntl.F_DUPFD, _DATA + 1) for number in (null, *self._fds)]
        for place, number in enumerate(high):  # none of them is in the way of another
            os.dup2(number, place, inheritable=place != _DATA)
        os.closerange(_DATA + 1, os.sysconf("SC_OPEN_MAX"))

    def _put_up_walls(self) -> None:
        os.setsid()  # a signal to the process group must reach nobody else, in no namespace
        system.prctl(system.PR_SET_DUMPABLE, 1)  # off again after a change of user: /proc/self
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chdir(self._folder)
        memory_bytes, processes, file_bytes = self._limits
        for kind, value in (
            (resource.RLIMIT_AS, self._walls.base_bytes + memory_bytes),
            (resource.RLIMIT_NPROC, processes),
            (resource.RLIMIT_FSIZE, file_bytes),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_CPU, _CPU_S),
        ):
            resource.setrlimit(kind, (value, value))
        system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
        self._rules = Rules(self._folder, self._walls.landlock)  # for ``_set_up`` to complete
        seccomp.restrict(self._walls.filter)

    def _settle(self) -> None:
        """Make the interpreter look like one that was just started in the folder."""
        os.environ["HOME"] = os.environ["TMPDIR"] = self._folder
        sys.path.insert(0, "")
        tempfile.tempdir = None

    def _set_up(self, payload: bytes) -> Outcome:
        """Learn whose sandbox this is: let it read its data, seed it, write the task's files.

        A child that is kept ready cannot know its data; until here only our own code has run.
        """
        head, _, files = payload.partition(b"\0")
        wanted = json.loads(head)
        if self._rules is not None:
            for number, place in enumerate(wanted["data"]):
                status = places.admit(place, self._rules)
                if status != wire.OK:
                    return Outcome(status, number)
            self._rules.enforce()
        self._is_set_up = True
        seed_all(wanted["seed"])
        if wanted["now"] is not None:
            clock.pin(wanted["now"])
        return _write_files(files)

    def _fork(self) -> Outcome:
        """Become two processes, each with this state; both return.

        Random streams are the same in both, as they would be had the calls been made anew. What
        cannot be in a fork (threads, open files) is looked for by the supervisor.
        """
        fds = _receive_descriptors()
        try:
            if len(fds) != 3 or any(_itimer(kind)[0] for kind in range(3)):
                return Outcome(wire.NO_BRANCH)
            try:
                branches = not system.fork_beside()
            except OSError:
                return Outcome(wire.NO_BRANCH)
            if branches:
                for number, place in zip(fds, (_DATA, 1, 2), strict=True):
                    os.dup2(number, place, inheritable=place != _DATA)
                system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
                if not self._is_branch:
                    seccomp.restrict(seccomp.still())
                    self._is_branch = True
                inner: Any = tempfile
                with contextlib.suppress(AttributeError):  # the code has put another in its place
                    inner._name_sequence._rng_pid = os.getpid()
        finally:
            for number in fds:
                os.close(number)
        return Outcome(wire.OK)

    def _run(self, program: Program, payload: bytes) -> Outcome:
        if not self._is_set_up:
            raise RuntimeError("not every wall stands yet")
        return program.run(payload.decode("utf-8", "surrogatepass"))


def settle_all() -> None:
    """In the supervisor: what ``_settle`` needs that is the same for all children, once."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept, LANG="C.UTF-8")
    os.umask(0o022)
    sys.argv = [""]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)


def _write_files(rest: bytes) -> Outcome:
    try:
        while rest:
            name_length, length = wire.FILE.unpack_from(rest)
            rest = rest[wire.FILE.size :]
            path = Path(os.fsdecode(rest[:name_length]))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rest[name_length : name_length + length])
            rest = rest[name_length + length :]
    except OSError:
        return Outcome(wire.NO_DISK)
    return Outcome(wire.OK)


def _receive_descriptors() -> list[int]:
    """Those that come with the next byte."""
    fds = array.array("i")
    data = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, _DATA)
    try:
        room = _socket.CMSG_LEN(3 * fds.itemsize)
        _, pieces, _, _ = data.recvmsg(1, room, _socket.MSG_CMSG_CLOEXEC)
    finally:
        data.detach()
    for level, kind, content in pieces:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) // fds.itemsize * fds.itemsize])
    return list(fds)


def _receive(length: int) -> bytes:
    """Read exactly so many bytes; fewer, that is none, only when the client is gone."""
    parts = []
    while length:
        part = os.read(_DATA, min(length, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
