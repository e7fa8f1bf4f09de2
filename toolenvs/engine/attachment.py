"""A container's attached stream: what it prints, and optionally its standard input."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from typing import Any

_KEPT = 4000  # bytes of what a container prints before it is up
_PIECE = 1 << 16
_RETRY_S = 0.002
_NOT_YET = (BlockingIOError, TimeoutError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Attachment:
    """The stream to a container, until ``close`` or ``hand_over``.

    Args:
        stream: what docker-py hands out for a hijacked connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._raw = b""

    def fileno(self) -> int:
        """The descriptor that becomes readable when there is output, or the container ended."""
        return int(self._connection().fileno())

    def drain(self, *, wait_s: float = 0.0) -> bool:
        """Take in what has arrived, waiting at most so long for more; False at the stream's end."""
        source = self._connection()
        source.settimeout(wait_s)
        try:
            while part := source.recv(_PIECE):
                self._raw = (self._raw + part)[:_KEPT]
        except _NOT_YET:
            return True
        except OSError:
            return False
        return False

    @property
    def text(self) -> str:
        """The beginning of what was taken in."""
        return _without_frames(self._raw).decode("utf-8", "replace").strip()

    def hand_over(self) -> socket.socket:
        """Return the stream as a plain socket, for another process to go on with; this one ends."""
        inner = self._connection()
        if type(inner) is socket.socket:  # not a subclass: those encrypt, or are none in truth
            plain = inner.dup()
            self.close()
        else:
            plain, ours = socket.socketpair()
            pump = threading.Thread(target=_pump, args=(self, inner, ours), daemon=True)
            pump.start()
        plain.setblocking(False)
        return plain

    def close(self) -> None:
        """Stop listening."""
        inner, response = self._connection(), getattr(self._stream, "_response", None)
        if response is not None:
            response.close()
        self._stream.close()
        inner.close()  # the connection would keep it open for another request

    def _connection(self) -> Any:
        """A socket, or an object with its methods: TLS or SSH stand between."""
        return getattr(self._stream, "_sock", self._stream)


def _pump(attachment: Attachment, far: Any, near: socket.socket) -> None:
    """Copy both ways between an encrypted connection and a socket, until either ends.

    Neither direction waits for the other.
    """
    far.settimeout(0.0)
    near.setblocking(False)
    to_near = to_far = b""
    with contextlib.suppress(OSError), near:
        while True:
            decrypted = getattr(far, "pending", int)()  # which select cannot see
            if to_near or not decrypted:
                reading = [] if to_near else [far]
                reading += [] if to_far else [near]
                # Not every kind of connection can tell when it takes more: try again soon.
                select.select(reading, [near] if to_near else [], [], _RETRY_S if to_far else None)
            to_near = to_near or _received(far)
            to_far = to_far or _received(near)
            to_near = to_near[_sent(near, to_near) :]
            to_far = to_far[_sent(far, to_far) :]
    attachment.close()


def _received(source: Any) -> bytes:
    """What has arrived, if anything.

    Raises:
        ConnectionResetError: The connection has ended.
    """
    try:
        part = bytes(source.recv(_PIECE))
    except _NOT_YET:
        return b""
    if not part:
        raise ConnectionResetError
    return part


def _sent(target: Any, data: bytes) -> int:
    """How much of ``data`` was taken."""
    if not data:
        return 0
    try:
        return int(target.send(data))
    except _NOT_YET:
        return 0


def _without_frames(raw: bytes) -> bytes:
    """Drop the 8-byte headers (stream, three zeros, big-endian size) of an attached stream."""
    text = b""
    while len(raw) >= 8:
        size = int.from_bytes(raw[4:8], "big")
        text += raw[8 : 8 + size]
        raw = raw[8 + size :]
    return text
