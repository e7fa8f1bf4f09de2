"""The ways from a supervisor to its client, of which the first that works is taken."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time

from . import far, wire

STREAM = "stream"
"""Instead of a socket's path: standard input and output, which a client has attached to."""

_WELCOME_S = 5.0
_ATTEMPTS, _PAUSE_S = 100, 0.05


def reach(ways: list[str]) -> tuple[socket.socket, str]:
    """Return the control connection and the way to it.

    Args:
        ways: each is ``fd:N``, a socket's path, or ``STREAM``.

    Raises:
        OSError: No way leads to a client.
    """
    for way in ways:
        if way == STREAM:
            return far.reach_client(), way
        if way.startswith("fd:"):
            return socket.socket(fileno=int(way[3:])), way
        control = _connect(way, attempts=_ATTEMPTS if way == ways[-1] else 1)
        if control is not None:
            return control, way
    raise OSError(errno.ECONNREFUSED, f"nobody listens at {', '.join(ways)}")


def _connect(path: str, *, attempts: int) -> socket.socket | None:
    """Connect and be welcomed with a descriptor, which shows that descriptors can be passed."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for attempt in range(attempts):
        with contextlib.suppress(OSError):
            control.connect(path)
            control.settimeout(_WELCOME_S)
            letter, fds, _, _ = socket.recv_fds(control, 1, 1)
            control.settimeout(None)
            for number in fds:
                os.close(number)
            if letter == wire.WELCOME and fds:
                return control
            break
        if attempt + 1 < attempts:
            time.sleep(_PAUSE_S)
    control.close()
    return None
