"""The client's half of a sandbox: speak to a supervisor and to the children that it forks.

One implementation serves every runtime; a runtime only starts ``toolenvs/supervisor`` somewhere
and hands the control connection to ``open_worker``. For a container:

    listener = Listener()                    # a randomly named folder, mode 0711, a socket in it
    # start the container (as root of the container; capabilities SETUID, SETGID, KILL):
    #   mounts   {listener.folder} at /run/control, read-only
    #            a tmpfs at /work/N for N in range(slots(capacity, spares)), with
    #            size=disk_bytes,nr_inodes=1k,uid=F+N,gid=F+N,mode=700   (F: first_uid)
    #   env      PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONPATH=/opt/site
    #   hostname sandbox
    #   command  ["python3", *arguments(level="uid", slots=..., first_uid=F)]
    #            with the folder toolenvs/supervisor copied to /opt/supervisor
    control = await listener.accept(timeout_s=60.0, pid=None)
    worker = await open_worker(control, limits=limits, capacity=32, spares=1, end=remove)

The supervisor connects, loads its libraries (about a second) and then says hello, which
``open_worker`` awaits. ``end`` is a blocking function, called once after the control connection is
closed; closing alone already ends the supervisor and so, as it is process 1, the container. Give
every worker a ``first_uid`` range of its own (process limits count by uid over the whole host).

Nothing is awaited but ``drivers`` requests, so both drivers and any thread will do.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from toolenvs.admission import Admission, admission
from toolenvs.descriptors import Descriptors, output_file
from toolenvs.drivers import Blocking, Readable
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.moments import epoch_ns
from toolenvs.places import checked_places
from toolenvs.slot import ChannelSandbox
from toolenvs.supervisor import preload, wire
from toolenvs.types import Limits

CONTROL_FOLDER = "/run/control"
"""Where a container sees ``Listener.folder``."""
SUPERVISOR_FOLDER = "/opt/supervisor"
"""Where a container holds a copy of ``toolenvs/supervisor``."""
BOOT = ("-s", "-P", f"{SUPERVISOR_FOLDER}/boot.py")
"""Python's arguments for any program of the supervisor in a container."""
WORK_FOLDER = "/work"
"""A sandbox's own folder is in here."""

_SOCKET_NAME = "s"
SOCKET = f"{CONTROL_FOLDER}/{_SOCKET_NAME}"
"""Where a container sees a ``Listener``."""


def slots(capacity: int, spares: int) -> int:
    """How many sandboxes a supervisor must have room for: those in use and those kept ready."""
    return capacity + spares


def arguments(
    *,
    level: str,
    slots: int,
    first_uid: int = 0,
    control: Sequence[str] = (SOCKET,),
    preload: str = "sympy",
) -> list[str]:
    """The arguments for Python that start the supervisor.

    Args:
        level: ``"uid"``: each sandbox has a user id of its own; ``"namespaces"``: each has user,
            process and mount namespaces of its own; ``"nested"``: the same, in a user namespace
            that the supervisor makes for itself.
        slots: see ``slots``.
        first_uid: user id of slot 0 at level ``uid``.
        control: the ways to the client, best first; see ``supervisor.reach``.
        preload: what it loads for all its sandboxes; see ``supervisor.preload.MODULES``.
    """
    numbers = ["--slots", str(slots), "--first-uid", str(first_uid)]
    nested = level == "nested"
    level = "namespaces" if nested else level
    boot = [*BOOT, "nest", "serve"] if nested else [*BOOT, "serve"]
    return [*boot, "--control", *control, "--level", level, *numbers, "--preload", preload]


def checked_preload(name: str, image: str = "python") -> str:
    """Return the name of what a supervisor can load.

    Args:
        name: one of ``supervisor.preload.MODULES``, or ``"auto"``: what the image is for.
        image: the image's name.

    Raises:
        UnknownNameError: It is none.
    """
    if name == "auto":
        return "sql" if image == "sql" else "sympy"
    if name not in preload.MODULES:
        raise UnknownNameError("a set of modules to preload", name, preload.MODULES)
    return name


class Listener:
    """A socket in a folder of its own to which one supervisor will connect.

    The folder's name is random and its mode 0711: nobody can list it, and a container's root that
    may not override permissions can still enter.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="toolenvs-"))
        self.folder.chmod(0o711)
        path = self.folder / _SOCKET_NAME
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._socket.listen(8)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """The descriptor that becomes readable when somebody connects."""
        return self._socket.fileno()

    async def accept(self, *, timeout_s: float, pid: int | None = None) -> socket.socket:
        """Wait for the supervisor and return the control connection; the folder goes away.

        Args:
            timeout_s: wall seconds to wait.
            pid: the container's first process as this process sees it; others are turned away.

        Raises:
            RuntimeFailure: Nobody came (kind ``"start"``).
        """
        deadline = time.monotonic() + timeout_s
        try:
            while await Readable(self.fileno(), deadline):
                connection = self.take(pid)
                if connection is not None:
                    return connection
        finally:
            self.close()
        raise RuntimeFailure("start", f"no supervisor connected within {timeout_s:g} s")

    def take(self, pid: int | None = None) -> socket.socket | None:
        """Return the control connection if the supervisor has connected; see ``accept``."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return None
        if pid is None or _peer_pid(connection) == pid:
            _welcome(connection)
            return connection
        connection.close()
        return None

    def close(self) -> None:
        """Stop listening and remove the folder. More than once is harmless."""
        self._socket.close()
        (self.folder / _SOCKET_NAME).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # already gone, or still mounted somewhere odd
            self.folder.rmdir()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self.close()


def _welcome(connection: socket.socket) -> None:
    """Show the supervisor that descriptors can be passed; it is gone if it will not hear it."""
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            socket.send_fds(connection, [wire.WELCOME], [null])
    finally:
        os.close(null)


def _peer_pid(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("iII", credentials)[0])


async def open_worker(
    control: socket.socket,
    *,
    limits: Limits,
    capacity: int,
    spares: int = 1,
    gate: Admission | None = None,
    data: Mapping[str, str] | None = None,
    end: Callable[[], None] = lambda: None,
    timeout_s: float = 60.0,
) -> ChannelWorker:
    """Wait until the supervisor at the other end of ``control`` is ready.

    Args:
        control: the control connection; the worker owns it from here.
        limits: what each sandbox may use.
        capacity: sandboxes at once.
        spares: sandboxes forked ahead of need; the supervisor has ``slots(capacity, spares)``.
        gate: where calls wait for their turn; the process's own when None.
        data: the folders that it shows below ``places.DATA_FOLDER``, by name.
        end: blocking; removes the container or reaps the process. Called once, also on failure.
        timeout_s: wall seconds to wait.

    Raises:
        RuntimeFailure: It did not come up (kind ``"start"``, or ``"no_sandbox"`` when the machine
            lacks what it needs); the message holds its own words.
    """
    try:
        if not await Readable(control.fileno(), time.monotonic() + timeout_s):
            raise RuntimeFailure("start", f"the supervisor was not ready within {timeout_s:g} s")
        hello = _read_hello(control)
    except BaseException:
        control.close()
        await Blocking(end)
        raise
    return ChannelWorker(
        control,
        limits=limits,
        capacity=capacity,
        spares=spares,
        gate=gate or admission(),
        data=data or {},
        end=end,
        hello=hello,
    )


def _read_hello(control: socket.socket) -> dict[str, Any]:
    try:
        packet = control.recv(1 << 16)
    except OSError as error:
        raise RuntimeFailure("start", f"the supervisor's connection broke: {error}") from error
    if packet[:1] == wire.FAILED:
        raise RuntimeFailure("no_sandbox", packet[1:].decode("utf-8", "replace"))
    if packet[:1] != wire.HELLO:
        raise RuntimeFailure("start", "the supervisor ended before it was ready")
    hello: dict[str, Any] = json.loads(packet[1:])
    if hello.get("version") != wire.VERSION:
        raise RuntimeFailure(
            "start",
            f"the image's supervisor speaks version {hello.get('version')}, this package "
            f"{wire.VERSION}: build the image again",
        )
    return hello


class ChannelWorker:
    """A supervisor and its sandboxes, as ``protocols.Worker``.

    Args:
        control: the control connection, after its hello.
        limits: what each sandbox may use.
        capacity: sandboxes at once, spares not counted.
        spares: sandboxes kept ready.
        gate: where calls wait for their turn.
        data: the folders that it shows, by name.
        end: blocking; called once by ``stop``.
        hello: what the supervisor told of itself; see ``supervisor.server.hello``.
    """

    def __init__(
        self,
        control: socket.socket,
        *,
        limits: Limits,
        capacity: int,
        spares: int,
        gate: Admission,
        data: Mapping[str, str],
        end: Callable[[], None],
        hello: Mapping[str, Any],
    ) -> None:
        self.capacity = capacity
        self.limits = limits
        self.hello = hello
        self._gate = gate
        self._data = data
        self._control = control.detach()
        self._owned = Descriptors(self._control)
        self._end: Callable[[], None] | None = end
        self._lock = threading.Lock()
        self._in_use: weakref.WeakSet[ChannelSandbox] = weakref.WeakSet()
        self._spare_count = spares
        self._spares: list[ChannelSandbox] = []
        self._refill()

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> ChannelSandbox:
        data = checked_places(data, self._data)
        payload = _setup(seed, files, data, now)
        with self._lock:
            self._check()
            in_use = sum(not sandbox.ended for sandbox in self._in_use)
            if in_use >= self.capacity:
                raise RuntimeFailure("capacity", f"all {self.capacity} sandboxes are in use")
            sandbox = self._spares.pop(0) if self._spares else self._order()
            self._in_use.add(sandbox)
        sandbox.worker = self
        sandbox.meanwhile = self._refill
        await sandbox.begin(payload, data=data, folders=self._data)
        return sandbox

    async def branch(self, sandbox: ChannelSandbox) -> ChannelSandbox | None:
        """Fork a sandbox of this worker; None where that cannot be done, and nothing has changed.

        Args:
            sandbox: it runs no call.

        Raises:
            RuntimeFailure: The worker has ended.
        """
        if not self.hello.get("forks"):
            return None
        with contextlib.ExitStack() as stack:
            with self._lock:
                self._check()
                if sum(not sandbox.ended for sandbox in self._in_use) >= self.capacity:
                    return None
                owned, theirs = stack.enter_context(_new_ends(self.limits))
                twin = ChannelSandbox(owned, self.limits, self._gate)
                self._in_use.add(twin)
            twin.worker = self
            forked = False
            try:
                forked = await sandbox.fork_into(twin, theirs)
            finally:
                if not forked:
                    await twin.stop()
        return twin if forked else None

    def healthy(self) -> bool:
        if not self._owned:
            return False
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return not poll.poll(0)  # after its hello a supervisor only ever speaks its last words

    async def stop(self) -> None:
        if self._owned.inherited:
            return
        with self._lock:
            self._owned.close()
            spares, self._spares = self._spares, []
            end, self._end = self._end, None
        for sandbox in spares:
            await sandbox.stop()
        if end is not None:
            await Blocking(end)

    def __del__(self) -> None:
        if not hasattr(self, "_end") or self._owned.inherited:
            return
        self._owned.close()  # which ends it; at the interpreter's end nothing more can be done
        if self._end is not None and not sys.is_finalizing():
            self._end()

    def _refill(self) -> None:
        """Order the spares that are missing, at a moment when nobody waits for us."""
        with self._lock:
            while self._owned and len(self._spares) < self._spare_count:
                try:
                    self._spares.append(self._order())
                except RuntimeFailure:  # it died: whoever spawns next hears of it
                    return

    def _order(self) -> ChannelSandbox:
        """Ask for one more child; it comes up while we go on, since its socket already exists."""
        limits = self.limits
        with _new_ends(limits) as (owned, theirs):
            message = wire.SPAWN.pack(
                limits.memory_bytes,
                limits.processes,
                max(limits.file_bytes, os.fstat(theirs[1]).st_size),
                limits.disk_bytes,
            )
            control = socket.socket(fileno=self._control)
            try:
                socket.send_fds(control, [message], theirs)
            except OSError as error:
                owned.close()
                raise self._failure() from error
            finally:
                control.detach()
        return ChannelSandbox(owned, limits, self._gate)

    def _check(self) -> None:
        if self._owned.inherited:
            raise RuntimeFailure("forked", "this worker belongs to the parent process: start anew")
        if not self._owned:
            raise RuntimeFailure("sandbox_died", "the worker was stopped")
        if not self.healthy():
            raise self._failure()

    def _failure(self) -> RuntimeFailure:
        words = b""
        with contextlib.suppress(OSError):
            words = os.read(self._control, 1 << 16)
        told = f": {words[1:].decode('utf-8', 'replace')}" if words else ""
        return RuntimeFailure("sandbox_died", f"the supervisor has ended{told}")


@contextlib.contextmanager
def _new_ends(limits: Limits) -> Iterator[tuple[Descriptors, list[int]]]:
    """The client's descriptors for a new sandbox and, while in here, the others' as for a spawn."""
    data, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    slot, supervisor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with child, supervisor:
        data.setblocking(False)
        slot.setblocking(False)
        outputs = [output_file(limits.output_bytes), output_file(limits.output_bytes)]
        owned = Descriptors(data.detach(), slot.detach(), *outputs)
        yield owned, [child.fileno(), *outputs, supervisor.fileno()]


def _setup(seed: int, files: Mapping[str, str], data: Sequence[str], now: str) -> bytes:
    head = {"seed": int(seed), "data": data, "now": epoch_ns(now) if now else None}
    parts = [json.dumps(head).encode(), b"\0"]
    for name, content in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
            raise UsageError(f"{name!r} cannot name a task's file: it must be relative, without ..")
        raw, body = name.encode(), content.encode("utf-8", "surrogatepass")
        parts += [wire.FILE.pack(len(raw), len(body)), raw, body]
    return b"".join(parts)
