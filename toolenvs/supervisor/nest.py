"""Start a program as the root of a user namespace in which one ordinary user is all there is.

For containers whose root holds nothing: the process is an ordinary user of the container without
any capability, and what it may do to namespaces it may do to its own alone.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from . import system

_SINCE = (5, 14)


def main(arguments: list[str]) -> None:
    """Enter the namespace and become the program.

    Args:
        arguments: for ``boot.py``: the program's name and its own.

    Raises:
        OSError: The engine's filter or the kernel's settings forbid it, or the kernel is too old.
    """
    if _release() < _SINCE:
        raise OSError("before Linux 5.14 process limits count over all namespaces of a user")
    uid, gid = os.geteuid(), os.getegid()
    system.unshare(system.CLONE_NEWUSER)
    system.map_ids(0, uid, gid)
    boot = str(Path(__file__).with_name("boot.py"))
    os.execv(sys.executable, [sys.executable, "-s", "-P", boot, *arguments])


def _release() -> tuple[int, ...]:
    numbers = platform.release().replace("-", ".").split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdigit())
