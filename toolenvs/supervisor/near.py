"""The relay beside the client: it plays the supervisor to it, over a stream to the far relay.

A process of its own, so that a client that computes does not hold up its sandboxes' traffic, and
so that nothing but lengths and numbers of what a container sends is looked at, and that not in the
client. It ends when the client closes the control connection or dies; then the stream ends, and
with it the container.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
import time
from functools import partial

from . import frames, wire
from .frames import Damaged, Frame, Frames, Outlet, Watch, frame

_LONGEST = 1 << 20  # until a sandbox may print more
_MESSAGE = 64
_WORDS = 2000

_CHUNK = struct.Struct("!B3xI")
_STDOUT, _STDERR = 1, 2


class Attached:
    """Takes a container engine's attached stream apart: stdout and stderr, in chunks with headers.

    Attributes:
        words: the end of what came on stderr.

    Source: Docker Engine API, "Attach to a container", stream format.
    """

    def __init__(self) -> None:
        self.words = b""
        self._header = b""
        self._kind = 0
        self._left = 0  # bytes of the present chunk that are still to come

    @property
    def torn(self) -> bool:
        """True in the middle of a chunk."""
        return bool(self._left or self._header)

    def feed(self, piece: bytes) -> bytes:
        """Return what of ``piece`` is stdout.

        Raises:
            Damaged: There is a chunk of another stream.
        """
        found = []
        while piece:
            if not self._left:
                missing = _CHUNK.size - len(self._header)
                self._header += piece[:missing]
                piece = piece[missing:]
                if len(self._header) < _CHUNK.size:
                    break
                self._kind, self._left = _CHUNK.unpack(self._header)
                self._header = b""
                if self._kind not in (_STDOUT, _STDERR):
                    raise Damaged(f"a chunk of stream {self._kind}")
                continue
            part, piece = piece[: self._left], piece[self._left :]
            self._left -= len(part)
            if self._kind == _STDOUT:
                found.append(part)
            else:
                self.words = (self.words + part)[-_WORDS:]
        return b"".join(found)


class _Line:
    """The supervisor's and the child's ends of one sandbox, as the client made them.

    Args:
        fds: as ``wire.SPAWN`` has them.
        watch: what calls back for them.
    """

    def __init__(self, fds: list[int], watch: Watch) -> None:
        self.data, *self.files, self.slot = fds
        self.request_left = 0  # bytes of the present request that are still to come
        self.header = b""
        self._watch = watch
        self._open = fds
        for number in (self.data, self.slot):
            os.set_blocking(number, False)

    def write(self, place: int, text: bytes) -> None:
        """Make a file's content ``text``; seals keep it in bounds."""
        number = self.files[place]
        os.lseek(number, 0, os.SEEK_SET)
        with contextlib.suppress(PermissionError), memoryview(text) as rest:
            done = 0
            while done < len(rest):
                done += os.write(number, rest[done:])

    def end(self) -> None:
        """The child's end has ended."""
        self._watch.read(self.data, None)
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.data)) as data:
            data.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for number in (self.data, self.slot):
            self._watch.read(number, None)
        for number in self._open:
            os.close(number)


class Near:
    """The loop.

    Args:
        control: connection to the client.
        stream: socket of the attached stream, after the far relay's announcement.
    """

    def __init__(self, control: socket.socket, stream: int) -> None:
        self._control = control
        self._stream = stream
        self._watch = Watch()
        self._sink = Outlet(stream, self._watch)
        self._attached = Attached()
        self._frames = Frames(_LONGEST)
        self._lines: dict[int, _Line] = {}
        self._last = 0
        self._greeted = False
        self._over = False

    def serve(self) -> None:
        """Work until the client or the stream has ended; say why the stream has, if it has."""
        self._sink.put(frame(0, frames.OPENING))
        self._watch.read(self._stream, self._from_container)
        self._watch.read(self._control.fileno(), self._from_client)
        try:
            beats_at = time.monotonic() + frames.BEAT_S
            while not self._over:  # a broken sink shows as the stream's end, after its last words
                self._watch.wait(max(0.0, beats_at - time.monotonic()))
                if beats_at <= time.monotonic():
                    self._sink.put(frame(0, frames.BEAT))
                    beats_at = time.monotonic() + frames.BEAT_S
        except Damaged as damaged:
            self._farewell(f"the stream to the container is damaged: {damaged}")
        except OSError as error:
            self._farewell(f"the relay to the container failed: {error}")

    def _farewell(self, words: str) -> None:
        if self._greeted:  # else there is no worker yet, and its start has failed
            said = self._attached.words.decode("utf-8", "replace")
            words += f"; the container said: {said}" if said else ""
            with contextlib.suppress(OSError):
                self._control.send(wire.FAILED + words.encode())

    def _from_client(self) -> None:
        """Take one message of the control connection."""
        message, fds, _, _ = socket.recv_fds(
            self._control, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
        )
        if len(message) != wire.SPAWN.size or len(fds) != 4:
            self._over = True
            return
        self._last += 1
        number, line = self._last, _Line(fds, self._watch)
        self._lines[number] = line
        sizes = [os.fstat(file).st_size for file in line.files]
        self._frames.longest = max(self._frames.longest, *sizes)
        self._sink.put(frame(number, frames.SPAWN, message + frames.SIZES.pack(*sizes)))
        self._watch.read(line.slot, partial(self._from_slot, number, line))
        self._watch.read(line.data, partial(self._from_data, number, line))

    def _from_data(self, number: int, line: _Line) -> None:
        """Pass on a piece of a request; a new request is told from the rest of one."""
        piece = frames.read(line.data, min(frames.PIECE, line.request_left or frames.PIECE))
        if not piece:  # the client has let go of it: the slot socket tells, too
            self._watch.read(line.data, None)
            return
        if line.request_left:
            line.request_left -= len(piece)
            self._sink.put(frame(number, frames.MORE, piece))
            return
        piece = line.header + piece
        if len(piece) < wire.REQUEST.size:
            line.header = piece
            return
        line.header = b""
        length, _, _ = wire.REQUEST.unpack_from(piece)
        line.request_left = length + wire.REQUEST.size - len(piece)
        self._sink.put(frame(number, frames.REQUEST, piece))

    def _from_slot(self, number: int, line: _Line) -> None:
        packet = frames.read(line.slot, _MESSAGE)
        if packet:
            self._sink.put(frame(number, frames.LETTER, packet))
            return
        self._sink.put(frame(number, frames.CLOSE))
        self._close(number, line)

    def _from_container(self) -> None:
        piece = frames.read(self._stream, frames.PIECE)
        if not piece:
            self._over = True
            torn = self._attached.torn or self._frames.torn
            self._farewell(f"the stream to the container ended{' amid a frame' * torn}")
            return
        for item in self._frames.feed(self._attached.feed(piece)):
            self._take(item)

    def _take(self, item: Frame) -> None:
        number, kind, payload = item
        if kind == frames.CONTROL:
            self._greeted = True
            self._control.send(payload)
            return
        line = self._lines.get(number)
        if line is None:
            if not 0 < number <= self._last:
                raise Damaged(f"a frame for sandbox {number}, which there never was")
        elif kind == frames.ANSWER:
            self._pass_on(line.data, payload, number, line)
        elif kind == frames.LETTER:
            self._pass_on(line.slot, payload, number, line)
        elif kind in (frames.STDOUT, frames.STDERR):
            line.write(kind - frames.STDOUT, payload)
        elif kind == frames.END:
            line.end()
        elif kind == frames.CLOSE:
            self._close(number, line)
        else:
            raise Damaged(f"a frame of kind {kind}")

    def _pass_on(self, to: int, payload: bytes, number: int, line: _Line) -> None:
        """Write to the client, which may be gone; more than it can ever have asked for is a fault.

        Raises:
            Damaged: The client's socket is full.
        """
        try:
            os.write(to, payload)
        except BlockingIOError:
            raise Damaged(f"more answers for sandbox {number} than questions") from None
        except OSError:
            self._close(number, line)
            self._sink.put(frame(number, frames.CLOSE))

    def _close(self, number: int, line: _Line) -> None:
        del self._lines[number]
        line.close()


def main(arguments: list[str]) -> None:
    """Run until the client or the stream has ended.

    Args:
        arguments: the descriptors of the control connection and of the stream.
    """
    control, stream = (int(number) for number in arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Near(socket.socket(fileno=control), stream).serve()
    sys.exit(0)
