"""How the traffic of many sandboxes shares one stream of bytes, where descriptors cannot be passed.

Two relays stand at the ends of the stream: ``near`` beside the client, ``far`` beside the
supervisor. Each holds the sockets and memory files that would otherwise lead straight across, and
puts what comes out of them into frames: ``FRAME`` and a payload. Nothing else is read of what a
sandbox sends.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

ANNOUNCEMENT = "[toolenvs stream 1]"
"""What the far relay writes before anything else. It then waits for ``OPENING``."""

FRAME = struct.Struct("!IBI")
"""Number of the sandbox (0: the control connection), kind, length of the payload in bytes."""

OPENING = 0
"""Near to far, once: the near relay is there."""
CONTROL = 1
"""Far to near: a packet of the control connection."""
SPAWN = 2
"""Near to far: ``wire.SPAWN``, then ``SIZES`` of the files of stdout and stderr."""
REQUEST = 3
"""Near to far: the first bytes of a request."""
MORE = 4
"""Near to far: its further bytes."""
ANSWER = 5
"""Far to near: bytes that the child has written to its data socket."""
END = 6
"""Far to near: the data socket has ended."""
STDOUT = 7
"""Far to near: all that the child has written to this file since the request began."""
STDERR = 8
"""The same."""
LETTER = 9
"""Both ways: a packet of the slot socket."""
CLOSE = 10
"""Both ways: whoever is behind this end has let go of the sandbox."""

BEAT = 11
"""Near to far, every ``BEAT_S`` seconds: the client is still there."""
BEAT_S = 4.0
SILENCE_S = 20.0
"""After so many seconds without anything from the near relay the far one gives up, and with it the
container: an engine or a client's machine that is gone may leave the stream open for ever."""

SIZES = struct.Struct("!QQ")

PIECE = 1 << 16
"""Bytes that a relay reads at once."""


class Damaged(Exception):  # noqa: N818 - it names the state of the stream
    """The stream holds what no relay writes; nothing that follows can be trusted."""


class Frame(NamedTuple):
    """One frame."""

    number: int
    kind: int
    payload: bytes


class Frames:
    """Takes a stream of bytes apart, whatever the pieces in which it arrives.

    Args:
        longest: length of the longest payload that may come; it bounds the memory this takes.
    """

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._buffer = bytearray()

    @property
    def torn(self) -> bool:
        """True in the middle of a frame."""
        return bool(self._buffer)

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that ``piece`` completes.

        Raises:
            Damaged: A frame is longer than allowed.
        """
        self._buffer += piece
        place = 0
        try:
            while len(self._buffer) - place >= FRAME.size:
                number, kind, length = FRAME.unpack_from(self._buffer, place)
                if length > self.longest:
                    raise Damaged(f"a frame of {length} bytes; at most {self.longest} may come")
                end = place + FRAME.size + length
                if len(self._buffer) < end:
                    return
                payload = bytes(self._buffer[place + FRAME.size : end])
                place = end
                yield Frame(number, kind, payload)
        finally:
            del self._buffer[:place]


def frame(number: int, kind: int, payload: bytes = b"") -> bytes:
    """Write one frame."""
    return FRAME.pack(number, kind, len(payload)) + payload


def read(number: int, size: int) -> bytes:
    """Read what has arrived; nothing at the end, also when the other side went with bytes unread.

    Raises:
        BlockingIOError: Nothing has.
    """
    try:
        return os.read(number, size)
    except ConnectionResetError:
        return b""


class Watch:
    """Calls back when descriptors can be read or written.

    A callback may be called in vain: reading must not block and may raise ``BlockingIOError``.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}
        self._known: dict[int, int] = {}

    def read(self, number: int, callback: Callable[[], None] | None) -> None:
        """Call back whenever ``number`` can be read; None: no more."""
        _put(self._readers, number, callback)
        self._update(number)

    def write(self, number: int, callback: Callable[[], None] | None) -> None:
        """Call back whenever ``number`` can be written; None: no more."""
        _put(self._writers, number, callback)
        self._update(number)

    def wait(self, timeout_s: float) -> None:
        """Wait for something, but not for ever, and call back for all that is ready."""
        for number, events in self._epoll.poll(timeout_s):
            for wanted, callbacks in (
                (select.EPOLLOUT, self._writers),
                (select.EPOLLIN, self._readers),
            ):
                callback = callbacks.get(number)
                if callback is not None and events & (wanted | select.EPOLLHUP | select.EPOLLERR):
                    with contextlib.suppress(BlockingIOError):
                        callback()

    def _update(self, number: int) -> None:
        events = select.EPOLLIN if number in self._readers else 0
        events |= select.EPOLLOUT if number in self._writers else 0
        before = self._known.get(number, 0)
        if events and before:
            self._epoll.modify(number, events)
        elif events:
            self._epoll.register(number, events)
        elif before:
            self._epoll.unregister(number)
        self._known[number] = events
        if not events:
            del self._known[number]


def _put(
    callbacks: dict[int, Callable[[], None]], number: int, callback: Callable[[], None] | None
) -> None:
    if callback is None:
        callbacks.pop(number, None)
    else:
        callbacks[number] = callback


class Outlet:
    """Writes to a descriptor without waiting: what does not fit at once is kept and follows.

    How much is kept is bounded by what the client asked for: its code, the answers to its requests.

    Attributes:
        broken: nobody reads any more; whatever is put in is lost.
    """

    def __init__(self, number: int, watch: Watch) -> None:
        os.set_blocking(number, False)
        self.broken = False
        self._number = number
        self._watch = watch
        self._kept = bytearray()

    def put(self, data: bytes) -> None:
        """Write ``data``, now or as soon as it can be."""
        if not self._kept:
            done = self._write(data)
            if done == len(data):
                return
            data = data[done:]
            self._watch.write(self._number, self._go_on)
        self._kept += data

    def close(self) -> None:
        """Forget what is kept. The descriptor stays open."""
        self._kept.clear()
        self._watch.write(self._number, None)

    def _go_on(self) -> None:
        del self._kept[: self._write(self._kept)]
        if not self._kept:
            self._watch.write(self._number, None)

    def _write(self, data: bytes | bytearray) -> int:
        done = 0
        try:
            with memoryview(data) as view:
                while done < len(view):
                    done += os.write(self._number, view[done:])
        except BlockingIOError:
            return done
        except OSError:
            self.broken = True
            return len(data)
        return done
