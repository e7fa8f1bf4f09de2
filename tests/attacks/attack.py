"""One attack as data, and the few names that its code may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

REFUSED = r"(?:[^\n]* refused\n)+"
"""What code prints whose every attempt is refused."""

PRELUDE = '''
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what, action, *arguments):
    """Say what came of something that must be refused."""
    try:
        value = action(*arguments)
    except (OSError, MemoryError):
        print(what, "refused")
    else:
        print(what, "REACHED", repr(value)[:200])

def call(number, *arguments):
    """Make a system call; OSError when it fails."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result

def others():
    """Numbers of processes that are not this sandbox's, as far as it can name any."""
    first = 1 if os.getppid() else 99_999  # where the parent cannot be seen, 1 is its own
    return {first, VICTIM_PID, os.getppid()} - {os.getpid(), 0}

def background(action):
    """Do something in a process that nobody waits for, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            action()
        os._exit(0)
    os.wait()
'''


class Attack(NamedTuple):
    """Hostile code and its stated outcome.

    Attributes:
        name: unique, for the test's id and the table.
        stops: what stops it, in a few words, for the table.
        code: run after ``PRELUDE`` in a session of its own; it also finds ``VICTIM_PID``,
            ``VICTIM_UID`` and ``VICTIM_FOLDER``.
        ends: statuses that the call may end with.
        prints: what its whole stdout must match; None: anything within the limit.
        lost: whether the session must be gone after it, or must not; None: either.
        then: status of a second, harmless call in the same session; ``""``: none is made.
        timeout_s: of the call.
        landlock: whether at level U only Landlock refuses a part: names and what is public.
        not_held: where it is not held (``"local"``, ``"runsc"``), and why.
        unheld_ends: statuses there; none: any.
    """

    name: str
    stops: str
    code: str
    ends: Sequence[str] = ("ok",)
    prints: str | None = None
    lost: bool | None = False
    then: str = ""
    timeout_s: float = 5.0
    landlock: bool = False
    not_held: Mapping[str, str] = MappingProxyType({})
    unheld_ends: Sequence[str] = ()
