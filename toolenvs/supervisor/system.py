"""System calls that Python does not offer, by ctypes; each raises OSError when it fails."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import platform
import signal
import struct
from pathlib import Path

ARM = platform.machine() == "aarch64"

CLONE_PARENT = 0x00008000
CLONE_THREAD = 0x00010000
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38

_NR_CLONE = 220 if ARM else 56
_NR_PIVOT_ROOT = 41 if ARM else 155
_NR_CAPSET = 91 if ARM else 126
_NR_MOUNT_SETATTR = 442
_CAPABILITY_VERSION_3 = 0x20080522
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_MOUNT_ATTR_RDONLY = 1
_MOUNT_ATTR_NOSUID = 2

_MADV_DONTFORK = 10
_LARGE_PAGES = 32

_libc = ctypes.CDLL(None, use_errno=True)
_python = ctypes.PyDLL(None, use_errno=True)  # whose calls keep the interpreter's lock
_stack = mmap.mmap(
    -1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
)  # of sleeping processes: each has its own copy


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call by number; integers are passed as 64 bits."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(int(_libc.syscall(ctypes.c_long(number), *wide)))


def prctl(option: int, value: int, third: int = 0) -> None:
    """Set an attribute of this process."""
    wide = [ctypes.c_ulong(number) for number in (value, third, 0, 0)]
    _checked(_libc.prctl(ctypes.c_int(option), *wide))


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _checked(_libc.unshare(ctypes.c_int(flags)))


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace."""
    _checked(_libc.setns(descriptor, kind))


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount ``source`` at ``target``."""
    data = options.encode() or None
    raw = source.encode(), target.encode(), kind.encode()
    _checked(_libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), data))


def unmount(target: str) -> None:
    """Take a mount away, at once from the tree, in truth once nobody uses it."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH))


def bind(source: str, target: str) -> None:
    """Show ``source`` with all mounted below it at ``target``, read-only, no set-user-id."""
    mount(source, target, "", MS_BIND | MS_REC)
    read_only(target)


def read_only(target: str, *, deep: bool = True) -> None:
    """Refuse writing, and set-user-id programs, at a mount and (``deep``) all mounts below it."""
    packed = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    flags = _AT_RECURSIVE if deep else 0
    syscall(_NR_MOUNT_SETATTR, _AT_FDCWD, target.encode(), flags, packed, len(packed))


def pivot_root(new: str, old: str) -> None:
    """Make ``new`` the root and move the present one to ``old``."""
    syscall(_NR_PIVOT_ROOT, new.encode(), old.encode())


def sethostname(name: str) -> None:
    """Name this machine, in its own namespace."""
    _checked(_libc.sethostname(name.encode(), ctypes.c_size_t(len(name))))


def shutdown(descriptor: int) -> None:
    """End both directions of a socket, for all who hold it."""
    _checked(_libc.shutdown(descriptor, 2))


def set_file_ids(uid: int) -> None:
    """Be this user and group where files are concerned, /proc among them; 0 undoes it.

    The calls tell nothing of failure: what is refused then shows when a file is opened.
    """
    _libc.setfsgid(ctypes.c_uint(uid))
    _libc.setfsuid(ctypes.c_uint(uid))


def drop_capabilities() -> None:
    """Give up every capability."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    syscall(_NR_CAPSET, header, struct.pack("6I", 0, 0, 0, 0, 0, 0))


def map_ids(inside: int, uid: int, gid: int, *, process: str = "self") -> None:
    """In a new user namespace: user and group ``inside`` stand for ``uid`` and ``gid`` outside.

    Args:
        inside: number of both inside.
        uid: the user's number outside.
        gid: the group's number outside.
        process: a process that is in the namespace, as /proc names it.
    """
    Path(f"/proc/{process}/setgroups").write_text("deny")
    Path(f"/proc/{process}/uid_map").write_text(f"{inside} {uid} 1")
    Path(f"/proc/{process}/gid_map").write_text(f"{inside} {gid} 1")


def fork() -> int:
    """Fork without Python's knowledge: 0 in the new process.

    ``os.fork`` also calls what modules have registered for it and makes locks anew. A process of
    one thread needs none of that, and the pages that it would touch are a quarter of an idle
    child's memory. Forks of the child itself are ordinary ones.
    """
    return _checked(_python.fork())


def fork_beside() -> int:
    """Fork a child of our own parent: 0 in it, else its number. Nobody here will wait for it.

    As with ``fork``, Python is not told, so random streams go on in both where they stand. The C
    library is not told either: what it knows as the number of the first thread is then wrong.
    """
    flags = CLONE_PARENT | signal.SIGCHLD
    wide = [ctypes.c_long(number) for number in (_NR_CLONE, flags, 0, 0, 0, 0)]
    return _checked(_python.syscall(*wide))


def clone_asleep(flags: int) -> int:
    """Make a process in new namespaces that sleeps for ever and runs nothing of ours.

    Args:
        flags: the namespaces.

    Returns:
        Its number.
    """
    top = ctypes.c_void_p(_stack_address() + mmap.PAGESIZE - 64)
    asleep = ctypes.cast(_libc.pause, ctypes.c_void_p)
    return _checked(_libc.clone(asleep, top, ctypes.c_int(flags | signal.SIGCHLD), None))


def _stack_address() -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(_stack))


def travel_light() -> None:
    """Give what ``clone_asleep`` makes hardly any memory of this process; fork no other way then.

    It would keep each page alive as it was when it was made. A sleeper needs its stack, what the C
    library knows of the thread, and some variables of the library: those are in small pieces.
    """
    _libc.pthread_self.restype = ctypes.c_void_p
    thread = int(_libc.pthread_self()) // mmap.PAGESIZE
    stack = _stack_address() // mmap.PAGESIZE  # the kernel may have joined it to a large mapping
    kept = sorted({thread - 1, thread, thread + 1, stack})
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        low, high = (int(end, 16) // mmap.PAGESIZE for end in fields[0].split("-"))
        if fields[1] != "rw-p" or fields[5:] == ["[stack]"] or high - low < _LARGE_PAGES:
            continue
        ends = [low - 1, *(page for page in kept if low <= page < high), high]
        for before, after in itertools.pairwise(ends):
            size = ctypes.c_size_t((after - before - 1) * mmap.PAGESIZE)
            _libc.madvise(ctypes.c_void_p((before + 1) * mmap.PAGESIZE), size, _MADV_DONTFORK)
