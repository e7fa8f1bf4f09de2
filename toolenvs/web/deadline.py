"""A moment beyond which no connection goes on."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Deadline:
    """A moment at which every connection that it watches is cut.

    Time-outs of sockets begin anew with each byte, so a server that sends a byte now and then could
    hold a fetch for days. Use it as a context; it ends with the block.
    """

    def __init__(self, timeout_s: float) -> None:
        self._at = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._watched: list[socket.socket] = []
        self._timer = threading.Timer(timeout_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for watched in self._watched:
                watched.close()
            self._watched.clear()

    @property
    def left_s(self) -> float:
        """Seconds until it passes, at least a millisecond."""
        return max(0.001, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self._at

    def watch(self, connected: socket.socket) -> None:
        """Cut this connection too. TLS takes the socket over, hence a descriptor of its own."""
        with self._lock:
            self._watched.append(connected.dup())

    def _cut(self) -> None:
        with self._lock:
            for watched in self._watched:
                with contextlib.suppress(OSError):  # the other side has hung up
                    watched.shutdown(socket.SHUT_RDWR)
