"""The resident process: forks a child for each sandbox, watches, counts and kills.

It reads the control connection and one slot socket for each sandbox, never a payload. It ends, and
with it (as process 1) everything else, when the control connection does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque

from . import branches, landlock, preload, processes, reach, seccomp, system, wire
from .cells import Cell, NamespaceCell, UidCell
from .child import Child, Walls, settle_all
from .memory import Room
from .nursery import Nursery
from .processes import Table
from .pulse import Pulse
from .slots import Slot
from .warden import Warden

_TIDY_S = 0.002
_MESSAGE = 64
_NO_FORK = 71 << 8  # as if a child had exited with EX_OSERR


class Server:
    """The loop.

    Args:
        control: the connection to the client.
        cells: the walls, one for each sandbox that can live at once.
        walls: what every child puts around itself.
    """

    def __init__(self, control: socket.socket, cells: list[Cell], walls: Walls) -> None:
        self._control = control
        self._walls = walls
        self._pulse = Pulse()
        self._warden = Warden(Room(), len(cells))
        self._free = deque(Slot(cell, self._pulse) for cell in cells)
        self._by_wire: dict[int, Slot] = {}
        self._leaving: list[Slot] = []  # killed, not yet reaped and wiped
        self._waiting: deque[tuple[bytes, list[int]]] = deque()  # spawns, until a slot is free
        self._wake, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(control.fileno(), select.EPOLLIN)
        self._epoll.register(self._wake, select.EPOLLIN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def serve(self) -> Child | None:
        """Work until the client is gone (None), or until this process is a new fork."""
        while True:
            pause = max(0.0, self._warden.due - time.monotonic())
            pause = min(pause, _TIDY_S) if self._leaving else pause
            ready = self._epoll.poll(pause)
            self._pulse.beat(pause)
            for number, _ in ready:
                if number == self._control.fileno():
                    if not self._receive():
                        return None
                elif number == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                elif number in self._by_wire:
                    self._hear(self._by_wire[number])
            self._tidy()
            if self._warden.due <= time.monotonic():
                self._keep_watch()
            while self._waiting and self._free:
                child = self._spawn(*self._waiting.popleft())
                if child is not None:
                    return child

    def _receive(self) -> bool:
        """Take one message of the control connection; False at its end."""
        try:
            message, fds, _, _ = socket.recv_fds(
                self._control, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            return False
        if len(message) == wire.SPAWN.size and len(fds) == 4:
            self._waiting.append((message, fds))
        return bool(message)

    def _spawn(self, message: bytes, fds: list[int]) -> Child | None:
        memory_bytes, tasks, file_bytes, disk_bytes = wire.SPAWN.unpack(message)
        data, stdout, stderr, slot_wire = fds
        slot = self._free.popleft()
        try:
            pid = slot.cell.fork(disk_bytes)
        except OSError as error:
            os.write(2, f"fork: {error}\n".encode())
            with contextlib.suppress(OSError):
                os.write(slot_wire, wire.DIED.pack(wire.DEATH, _NO_FORK, 0, 0))
            for number in fds:
                os.close(number)
            slot.cell.pid = 0
            slot.cell.kill()
            self._leaving.append(slot)
            return None
        if pid == 0:
            self._forget()
            limits = (memory_bytes, tasks, file_bytes)
            return Child([stdout, stderr, data], slot.cell.folder, limits, self._walls)
        self._warden.admit(slot, memory_bytes)
        slot.ends = branches.ends(data, stdout, stderr)
        self._connect(slot, fds)
        return None

    def _connect(self, slot: Slot, fds: list[int]) -> None:
        """A child is there: from here on its sandbox is heard."""
        slot.data, stdout, stderr, slot.wire = fds
        os.close(stdout)
        os.close(stderr)
        os.set_blocking(slot.wire, False)
        self._by_wire[slot.wire] = slot
        self._epoll.register(slot.wire, select.EPOLLIN)

    def _forget(self) -> None:
        """In a fork: let go of what the loop holds, by number, before the numbers are reused."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._epoll.close()
        self._control.detach()

    def _hear(self, slot: Slot) -> None:
        try:
            letter, fds = _read_letter(slot.wire)
        except BlockingIOError:
            return
        except OSError:
            letter, fds = b"", []
        if fds:
            self._tell(slot, wire.YES_OR_NO.pack(wire.ADOPT, self._adopt(slot, fds)))
        elif not letter:
            self._leave(slot)
        elif slot.dead:
            return
        elif letter == wire.BEGIN:
            slot.begin()
        elif letter == wire.USAGE:
            table = Table()
            doubtful = self._warden.is_doubtful(slot, table)
            self._tell(slot, slot.used(slot.cell.members(table), doubtful=doubtful))
        elif letter == wire.INTERRUPT:
            if not processes.interrupt(lambda: slot.cell.members(Table()), slot.cell.pid):
                self._kill(slot)
            self._tell(slot, wire.INTERRUPT)
        elif letter == wire.KILL:
            self._kill(slot)
        elif letter in (wire.MAY_FORK, wire.IS_SOUND):
            question = branches.may_fork if letter == wire.MAY_FORK else branches.is_sound
            self._tell(slot, wire.YES_OR_NO.pack(letter, question(slot)))

    def _adopt(self, slot: Slot, fds: list[int]) -> bool:
        """Take the process that a sandbox's child has just forked for a sandbox of its own."""
        taken = False
        with contextlib.suppress(OSError):
            if len(fds) == 4:
                new = branches.ends(*fds[:3])
                family = slot.family or branches.Family(slot)
                if self._free and not self._waiting:
                    taken = family.take(slot, self._free[0], new)
        if not taken:
            for number in fds:
                os.close(number)
            return False
        place = self._free.popleft()
        place.occupy(limit_bytes=slot.limit_bytes, kills=slot.kills_before)
        self._connect(place, fds)
        return True

    def _keep_watch(self) -> None:
        """End those that hold too much memory."""
        self._reap()  # a death may explain what the warden would wonder at
        living = [slot for slot in self._by_wire.values() if not slot.dead]
        for slot in self._warden.look([*living, *self._leaving]):
            self._kill(slot)

    def _kill(self, slot: Slot) -> None:
        slot.killed = True
        slot.cell.kill()

    def _tell(self, slot: Slot, packet: bytes) -> None:
        with contextlib.suppress(OSError):  # the client has gone: its end of file follows
            os.write(slot.wire, packet)

    def _leave(self, slot: Slot) -> None:
        """The client has let go of a sandbox: end it, and free its place when nothing is left."""
        self._reap()  # so that what is counted below was told to whom it concerns
        self._epoll.unregister(slot.wire)
        del self._by_wire[slot.wire]
        os.close(slot.wire)
        os.close(slot.data)
        slot.wire = -1
        self._warden.forget(slot)
        self._kill(slot)
        self._leaving.append(slot)

    def _reap(self) -> None:
        slots = {slot.cell.pid: slot for slot in [*self._by_wire.values(), *self._leaving]}
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                slot = slots.get(pid)
                if slot is not None:
                    self._died(slot, status, usage)

    def _died(self, slot: Slot, status: int, usage: resource.struct_rusage) -> None:
        slot.cell.pid = 0
        slot.dead = True
        if slot.wire < 0:
            return
        if slot.killed:
            flags = wire.BY_US | slot.fate
        else:
            flags = self._warden.cause(slot, status, usage.ru_maxrss << 10)
        slot.cell.kill()  # what the child left behind
        cpu_ns = int((usage.ru_utime + usage.ru_stime) * 1e9)
        self._tell(slot, wire.DIED.pack(wire.DEATH, status, flags, cpu_ns))
        system.shutdown(slot.data)  # copies of the socket may live on in processes it forked

    def _tidy(self) -> None:
        self._reap()
        for slot in list(self._leaving):
            try:
                if not slot.cell.clean():
                    continue
            except OSError as error:  # a place that cannot be emptied is not used again
                os.write(2, f"wipe: {error}\n".encode())
                self._leaving.remove(slot)
                continue
            self._leaving.remove(slot)
            if slot.family is not None:
                slot.family.part(slot)
            self._free.append(slot)


def _read_letter(number: int) -> tuple[bytes, list[int]]:
    """One packet of a slot socket, with the descriptors that came along."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, number)
    try:
        letter, fds, _, _ = socket.recv_fds(end, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
    finally:
        end.detach()
    return letter, fds


def _cells(options: argparse.Namespace) -> list[Cell]:
    if options.level == "uid":
        return [UidCell(options.first_uid + n, f"{options.work}/{n}") for n in range(options.slots)]
    nursery = Nursery()
    return [NamespaceCell(options.work, nursery) for _ in range(options.slots)]


def hello(
    options: argparse.Namespace, walls: Walls, packages: dict[str, str], *, forks: bool = False
) -> bytes:
    """The first packet: what the client may want to know of this place.

    Args:
        options: of the command line.
        walls: what each sandbox has around it.
        packages: versions of what is loaded.
        forks: whether a sandbox's child can be forked: descriptors must reach it.
    """
    facts = {
        "version": wire.VERSION,
        "level": options.level,
        "forks": forks,
        "landlock": walls.landlock,
        "slots": options.slots,
        "python": platform.python_version(),
        "packages": packages,
    }
    return wire.HELLO + json.dumps(facts).encode()


def main(arguments: list[str]) -> None:
    """Run until the control connection ends.

    Args:
        arguments: as ``channel.arguments`` writes them.
    """
    parser = argparse.ArgumentParser(prog="supervisor")
    parser.add_argument("--control", required=True, nargs="+")
    parser.add_argument("--level", choices=("uid", "namespaces"), required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--first-uid", type=int, default=0)
    parser.add_argument("--work", default="/work")
    parser.add_argument("--preload", choices=tuple(preload.MODULES), default="sympy")
    options = parser.parse_args(arguments)
    control, way = reach.reach(options.control)
    child = None
    try:
        system.prctl(system.PR_SET_DUMPABLE, 0)
        cells = _cells(options)
        walls = Walls(landlock.version(), seccomp.program(), 0)
        packages = preload.load(options.preload)
        settle_all()
        walls = walls._replace(base_bytes=preload.address_space())
        if preload.threads() != 1:
            raise RuntimeError("a library started threads while it was loaded")
        server = Server(control, cells, walls)
        seccomp.still()  # now, so that forks find it done
        control.send(hello(options, walls, packages, forks=way != reach.STREAM))
        child = server.serve()
        del server
    except BaseException:
        words = traceback.format_exc()
        with contextlib.suppress(OSError):
            control.send(wire.FAILED + words.encode()[-4000:])
        sys.exit(1)
    if child is not None:
        child.run()
