"""Landlock: which files a child may open, whatever their permissions say.

It reads the interpreter, the libraries, the programs and its places of the data, and writes in its
own folder; it can reach no /proc, /sys, /run, other data or another sandbox's folder. Where the
kernel has no Landlock (before 5.13, or switched off) nothing is restricted here and the other walls
stand alone: all data of the worker can then be read.

Source: Linux, ``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import contextlib
import os
import struct

from . import system

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # flag of create_ruleset
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many of the bits there are
_SCOPED = 3  # abstract sockets and signals stay inside; version 6

_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"),
    *("/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime"),
    *("/etc/mime.types", "/etc/alternatives", "/dev/zero", "/dev/random", "/dev/urandom"),
)
_WRITABLE_DEVICES = ("/dev/null", "/dev/full")


def version() -> int:
    """The kernel's version of Landlock, 0 where there is none."""
    try:
        return system.syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


class Rules:
    """What this process will be allowed to open, once ``enforce`` is called; nothing holds before.

    Args:
        folder: what it may write: its own folder.
        landlock: what ``version`` returned.
    """

    def __init__(self, folder: str, landlock: int) -> None:
        self._ruleset = -1
        if not landlock:
            return
        handled = (1 << _RIGHTS_BY_VERSION[min(landlock, 5)]) - 1
        attributes = struct.pack("QQQ", handled, 0, _SCOPED if landlock >= 6 else 0)
        size = 24 if landlock >= 6 else 8
        self._ruleset = system.syscall(_CREATE_RULESET, attributes, size, 0)
        read = _EXECUTE | _READ_FILE | _READ_DIR
        self._add_path(folder, handled)
        for path in _READABLE:
            self._add_path(path, read & handled)
        for path in _WRITABLE_DEVICES:
            self._add_path(path, (_READ_FILE | _WRITE_FILE | _TRUNCATE) & handled)

    def admit(self, place: int, *, folder: bool) -> None:
        """Allow reading one file, or all that is in a folder.

        Args:
            place: a descriptor of it.
            folder: which of the two it is.
        """
        if self._ruleset >= 0:
            self._add(place, _READ_FILE | _READ_DIR if folder else _READ_FILE)

    def enforce(self) -> None:
        """Let this process, and all it will start, open nothing else from here on, for good."""
        if self._ruleset >= 0:
            system.syscall(_RESTRICT_SELF, self._ruleset, 0)
            os.close(self._ruleset)
            self._ruleset = -1

    def _add_path(self, path: str, rights: int) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs more, in each fork
                rights &= _ON_FILES
            self._add(place, rights)
            os.close(place)

    def _add(self, place: int, rights: int) -> None:
        rule = struct.pack("=Qi", rights, place)
        system.syscall(_ADD_RULE, self._ruleset, _PATH_BENEATH, rule, 0)
