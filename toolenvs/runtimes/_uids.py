"""Ranges of user ids, each of one worker alone on this machine.

The kernel counts processes by user id over all containers, and what a user may signal or trace is
decided by it too. A range is claimed by a name in the abstract socket namespace, which the kernel
gives to one process only and frees with it.
"""

from __future__ import annotations

import contextlib
import random
import socket

from toolenvs.descriptors import Descriptors
from toolenvs.errors import RuntimeFailure

# Above the ids of users and of systemd's containers, below 2**31.
_IDS = range(1_879_048_192, 2_147_483_000)
# All that a remapped or rootless engine has; without the ids of the image's own users.
_IDS_REMAPPED = range(2_000, 60_000)
_BLOCK = 512  # a worker has at most 256 sandboxes and spares
_TRIES = 1000


class UidRange:
    """Up to 512 user ids from ``first`` on that are no other worker's until ``close``.

    Args:
        remapped: whether the engine gives its containers other ids than the machine's.

    Raises:
        RuntimeFailure: All ranges are taken (kind ``"capacity"``).
    """

    def __init__(self, *, remapped: bool) -> None:
        ids = _IDS_REMAPPED if remapped else _IDS
        choice = random.SystemRandom()  # not a seeded stream, which would repeat
        for _ in range(_TRIES):
            first = ids.start + _BLOCK * choice.randrange(len(ids) // _BLOCK)
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.suppress(OSError), claim:
                claim.bind(f"\0toolenvs-uids-{first}")
                self.first = first
                self._claim = Descriptors(claim.detach())
                return
        raise RuntimeFailure("capacity", "every range of user ids is a running worker's already")

    def close(self) -> None:
        """Let others have them. More than once is harmless."""
        self._claim.close()
