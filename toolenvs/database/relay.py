"""A socket between libpq and the server, through which no more passes than is asked for.

libpq reads as long as the server sends, and holds a value whole before it says that there is one: a
gigabyte, for a statement of twenty letters. Behind a relay it gets a portion at a time, and whoever
hands it the portions can stop.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import weakref
from typing import Any

PORTION = 64 << 10
"""Most bytes that libpq is given at once; less than a socket holds."""

_live: weakref.WeakSet[Any] = weakref.WeakSet()


def keep_from_forks(connection: Any) -> None:
    """Have a forked copy of the process lose a connection without a word to the server.

    Args:
        connection: has ``fileno()`` and ``closed``.
    """
    _live.add(connection)


def _lose_inherited() -> None:
    """In a fork: what the copy would send or close belongs to the parent's session."""
    for connection in list(_live):
        if not connection.closed:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                os.dup2(ours.fileno(), connection.fileno())


os.register_at_fork(after_in_child=_lose_inherited)


class Relay:
    """Puts itself in the place of a connection's socket.

    From then on nothing passes but by ``pass_on``.

    Args:
        link: libpq's connection.
    """

    def __init__(self, link: Any) -> None:
        self._server = socket.socket(fileno=os.dup(link.socket))
        self._link, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            os.dup2(theirs.fileno(), link.socket)
        self._unread = select.poll()
        self._unread.register(link.socket, select.POLLIN)
        self._server.setblocking(False)
        self._link.setblocking(False)
        self._outward = b""
        self.closed = False
        keep_from_forks(self)

    def fileno(self) -> int:
        """The descriptor of the server's socket."""
        return self._server.fileno()

    def pass_on(self, timeout_ms: float | None) -> int | None:
        """Wait until the server sends something, and hand on a portion of it.

        What libpq has written goes to the server meanwhile.

        Returns:
            The number of bytes; 0 at the end of the connection, and where libpq has not read the
            last portion yet; None where time ran out or something went to the server.
        """
        if self._unread.poll(0):
            return 0
        poll = select.poll()
        poll.register(self._server, select.POLLIN | (select.POLLOUT if self._outward else 0))
        if not self._outward:
            poll.register(self._link, select.POLLIN)
        ready = dict(poll.poll(timeout_ms))
        self._pass_outward()
        if not ready.get(self._server.fileno(), 0) & ~select.POLLOUT:
            return None
        try:
            portion = self._server.recv(PORTION)
        except BlockingIOError:
            return None
        except OSError:
            portion = b""
        if portion:
            self._link.sendall(portion)
        else:
            self._link.shutdown(socket.SHUT_WR)
        return len(portion)

    def close(self) -> None:
        """Leave the server. More than once is harmless."""
        self.closed = True
        self._server.close()
        self._link.close()

    def _pass_outward(self) -> None:
        with contextlib.suppress(OSError):  # nothing to send, no room, or no server: reading tells
            self._outward = self._outward or self._link.recv(PORTION)
            self._outward = self._outward[self._server.send(self._outward) :]
