"""The relay beside the supervisor: the client's hands, where no descriptor can be passed to it.

A process of its own, forked before the supervisor has loaded or learnt anything. It makes the
sockets and memory files of each sandbox, keeps the client's ends and gives the others to the
supervisor, as a client on the same machine would. So the supervisor sees no payload here either,
and no child gets at another's: this process shares no memory and no user with a child.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from functools import partial
from typing import NoReturn

from . import frames, system, wire
from .frames import Frame, Frames, Outlet, Watch, frame
from .sealed import sealed_file

_PACKET = 1 << 16
_SHORT = 64
"""Bytes of one packet of a slot, and bytes that a child may send for each request: a good answer
is shorter, and a client reads no more."""


def reach_client() -> socket.socket:
    """Start the relay on this process's standard input and output; return the control connection.

    Both are taken from this process: whatever it prints goes to its standard error.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _relay(theirs)
    theirs.close()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return ours


def _relay(control: socket.socket) -> NoReturn:
    try:
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        system.prctl(system.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        system.drop_capabilities()
        Far(control, source=0, sink=1).serve()
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"relay: {error!r}\n".encode())
    os._exit(0)


class _Line:
    """The client's ends of one sandbox.

    Args:
        data: socket to the child.
        slot: socket to the supervisor.
        files: stdout and stderr.
        watch: what calls back for them.
    """

    def __init__(self, data: int, slot: int, files: tuple[int, int], watch: Watch) -> None:
        self.data = data
        self.slot = slot
        self.files = files
        self.requests = Outlet(data, watch)
        self.credit = 0  # bytes that the child may still send for this request
        self._watch = watch
        self._told = [False, False]
        os.set_blocking(slot, False)

    def begin(self) -> None:
        """A request begins: what was printed since the last one is dropped."""
        for number in self.files:
            os.lseek(number, 0, os.SEEK_SET)
        self._told = [False, False]
        self.credit = _SHORT

    def output(self, number: int) -> bytes:
        """What was printed since ``begin``, as frames."""
        found = []
        for place, kind in enumerate((frames.STDOUT, frames.STDERR)):
            file = self.files[place]
            # The child shares the offset and can set it to anything: the file's size is the limit.
            text = os.pread(file, min(os.lseek(file, 0, os.SEEK_CUR), os.fstat(file).st_size), 0)
            if text or self._told[place]:
                self._told[place] = True
                found.append(frame(number, kind, text))
        return b"".join(found)

    def close(self) -> None:
        self.requests.close()
        for number in (self.data, self.slot):
            self._watch.read(number, None)
        for number in (self.data, self.slot, *self.files):
            os.close(number)


class Far:
    """The loop.

    Args:
        control: connection to the supervisor.
        source: where the near relay's frames come from.
        sink: where those for it go.
    """

    def __init__(self, control: socket.socket, *, source: int, sink: int) -> None:
        self._control = control
        self._source = source
        self._watch = Watch()
        self._sink = Outlet(sink, self._watch)
        self._frames = Frames(2 * frames.PIECE)
        self._lines: dict[int, _Line] = {}
        self._last = 0
        self._over = False
        self._heard_at = time.monotonic()

    def serve(self) -> None:
        """Work until the client, the supervisor or the stream has ended.

        Raises:
            Damaged: The stream is; nothing sensible can follow.
        """
        os.set_blocking(self._source, False)
        self._sink.put(frames.ANNOUNCEMENT.encode())
        self._watch.read(self._source, self._from_client)
        while not (self._over or self._sink.broken):
            self._watch.wait(frames.BEAT_S)
            # What came while this stood still has been read by now.
            self._over = self._over or self._heard_at + frames.SILENCE_S < time.monotonic()

    def _from_client(self) -> None:
        piece = frames.read(self._source, frames.PIECE)
        self._over = not piece
        self._heard_at = time.monotonic()
        for item in self._frames.feed(piece):
            self._take(item)

    def _take(self, item: Frame) -> None:
        number, kind, payload = item
        if kind == frames.BEAT:
            return
        if kind == frames.OPENING:
            self._watch.read(self._control.fileno(), self._from_supervisor)
            return
        if kind == frames.SPAWN:
            self._spawn(number, payload)
            return
        line = self._lines.get(number)
        if line is None:
            if number > self._last:
                raise frames.Damaged(f"a frame for sandbox {number}, which there never was")
        elif kind == frames.REQUEST:
            line.begin()
            line.requests.put(payload)
            self._watch.read(line.data, partial(self._from_child, number, line))
        elif kind == frames.MORE:
            line.requests.put(payload)
        elif kind == frames.LETTER:
            with contextlib.suppress(OSError):  # it has ended: that is told by itself
                os.write(line.slot, payload)
        elif kind == frames.CLOSE:
            self._close(number, line)
        else:
            raise frames.Damaged(f"a frame of kind {kind}")

    def _spawn(self, number: int, payload: bytes) -> None:
        message, sizes = payload[: wire.SPAWN.size], payload[wire.SPAWN.size :]
        data, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        slot, supervisor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child, supervisor:
            one, two = (sealed_file(size) for size in frames.SIZES.unpack(sizes))
            line = _Line(data.detach(), slot.detach(), (one, two), self._watch)
            self._lines[number], self._last = line, number
            self._watch.read(line.slot, partial(self._from_slot, number, line))
            self._watch.read(line.data, partial(self._from_child, number, line))
            socket.send_fds(
                self._control, [message], [child.fileno(), one, two, supervisor.fileno()]
            )

    def _from_child(self, number: int, line: _Line) -> None:
        """Pass on what the child sent, after what it printed."""
        if not line.credit:  # it speaks out of turn or too much: no more until the next request
            self._watch.read(line.data, None)
            return
        piece = frames.read(line.data, line.credit)
        line.credit -= len(piece)
        kind = frames.ANSWER if piece else frames.END
        self._sink.put(line.output(number) + frame(number, kind, piece))
        if not piece:
            self._watch.read(line.data, None)

    def _from_slot(self, number: int, line: _Line) -> None:
        packet = frames.read(line.slot, _SHORT)
        if not packet:
            self._sink.put(frame(number, frames.CLOSE))
            self._close(number, line)
            return
        output = line.output(number) if packet[:1] == wire.DEATH else b""
        self._sink.put(output + frame(number, frames.LETTER, packet))

    def _from_supervisor(self) -> None:
        packet = self._control.recv(_PACKET, socket.MSG_DONTWAIT)
        self._over = not packet
        if packet:
            self._sink.put(frame(0, frames.CONTROL, packet))

    def _close(self, number: int, line: _Line) -> None:
        del self._lines[number]
        line.close()
