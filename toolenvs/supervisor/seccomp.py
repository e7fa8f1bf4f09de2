"""The filter of system calls that a child runs under: what it never needs is refused.

The refused calls open channels to other processes (sockets, System V objects, message queues,
ptrace), make namespaces or mounts, reach the kernel's larger interfaces (bpf, io_uring, perf,
keys, userfaultfd), or take memory past the limits (memfd_create).

Source: Linux, ``Documentation/userspace-api/seccomp_filter.rst``; call numbers from
``asm/unistd_64.h`` (x86_64) and ``asm-generic/unistd.h`` (aarch64).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Mapping

from . import system

_X86, _ARM = 0xC000003E, 0xC00000B7  # AUDIT_ARCH_*

# name: number on x86_64, on aarch64; -1: not there
REFUSED: dict[str, tuple[int, int]] = {
    "socket": (41, 198),
    "bind": (49, 200),
    "listen": (50, 201),
    "connect": (42, 203),
    "accept": (43, 202),
    "accept4": (288, 242),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "personality": (135, 92),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
    "uselib": (134, -1),
}
CHANGING: dict[str, tuple[int, int]] = {
    "creat": (85, -1),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "mkdir": (83, -1),
    "mkdirat": (258, 34),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "rmdir": (84, -1),
    "unlink": (87, -1),
    "unlinkat": (263, 35),
    "rename": (82, -1),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, -1),
    "linkat": (265, 37),
    "symlink": (88, -1),
    "symlinkat": (266, 36),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "flock": (73, 32),
    "fork": (57, -1),
    "vfork": (58, -1),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
"""What changes files, starts or signals a process, or changes how another one is run."""
_OPEN, _OPENAT, _PRLIMIT = (2, -1), (257, 56), (302, 261)
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)
_OURS = system.CLONE_THREAD | system.CLONE_PARENT  # threads, and what ``system.fork_beside`` does
_CLONE = (56, 220)
_CLONE3 = 435
_UNKNOWN = 463  # calls from here on are newer than this table (Linux 6.12): nobody judged them
_SOCKETPAIR = (53, 199)
_NAMESPACES = 0x7E020000  # CLONE_NEW*
_SOCK_TYPE, _SOCK_DGRAM = 0xF, 2

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_FIRST, _SECOND, _THIRD = 16, 24, 32
_Step = tuple[int, int, str, str]  # code, operand, where to go if true and if false
_ALLOW, _ERRNO, _END = 0x7FFF0000, 0x00050000, 0x80000000


def program() -> bytes:
    """The filter as BPF instructions, eight bytes each.

    The answers stand at the end; every test jumps forward to one of them.
    """
    column = 1 if system.ARM else 0
    refused = [n[column] for n in REFUSED.values() if n[column] >= 0]
    body: list[_Step] = [
        (_LOAD, _ARCHITECTURE, "", ""),
        (_EQUAL, _ARM if system.ARM else _X86, "", "refuse"),
        (_LOAD, _NUMBER, "", ""),
        (_AT_LEAST, 0x40000000, "refuse", ""),  # the x32 twins of the calls on x86_64
        (_AT_LEAST, _UNKNOWN, "missing", ""),
        (_EQUAL, _CLONE3, "missing", ""),  # its flags cannot be seen: glibc goes back to clone
        *((_EQUAL, number, "refuse", "") for number in refused),
        (_EQUAL, _CLONE[column], "clone", ""),
        (_EQUAL, _SOCKETPAIR[column], "pair", "allow"),
    ]
    clone: list[_Step] = [(_LOAD, _FIRST, "", ""), (_ANY_BIT, _NAMESPACES, "refuse", "allow")]
    pair: list[
        _Step
    ] = [  # a datagram socket could be given a name that other sandboxes can send to
        (_LOAD, _SECOND, "", ""),
        (_AND, _SOCK_TYPE, "", ""),
        (_EQUAL, _SOCK_DGRAM, "refuse", "allow"),
    ]
    answers = {"allow": _ALLOW, "refuse": _ERRNO | errno.EPERM, "missing": _ERRNO | errno.ENOSYS}
    return _assembled(body, {"clone": clone, "pair": pair}, answers)


@functools.cache
def still() -> bytes:
    """A second filter, for a branch: what is in ``CHANGING`` ends it."""
    column = 1 if system.ARM else 0
    numbers = [n[column] for n in CHANGING.values() if n[column] >= 0]
    body: list[_Step] = [
        (_LOAD, _NUMBER, "", ""),  # calls of another architecture are refused by the first filter
        *((_EQUAL, number, "end", "") for number in numbers),
        *((_EQUAL, _OPEN[0], "open", "") for _ in range(1 - column)),
        (_EQUAL, _OPENAT[column], "openat", ""),
        (_EQUAL, _CLONE[column], "clone", ""),
        (_EQUAL, _PRLIMIT[column], "prlimit", "allow"),
    ]
    blocks: dict[str, list[_Step]] = {
        "open": [(_LOAD, _SECOND, "", ""), (_ANY_BIT, _TO_WRITE, "end", "allow")],
        "openat": [(_LOAD, _THIRD, "", ""), (_ANY_BIT, _TO_WRITE, "end", "allow")],
        "clone": [(_LOAD, _FIRST, "", ""), (_ANY_BIT, _OURS, "allow", "end")],
        "prlimit": [(_LOAD, _FIRST, "", ""), (_EQUAL, 0, "allow", "end")],  # 0: this process
    }
    return _assembled(body, blocks, {"allow": _ALLOW, "end": _END})


def _assembled(
    body: list[_Step], blocks: Mapping[str, list[_Step]], answers: Mapping[str, int]
) -> bytes:
    """The instructions of a filter: its body, then blocks that it jumps to, then the answers."""
    places = {}
    for name, block in blocks.items():
        places[name] = len(body)
        body = body + block
    places |= {name: len(body) + i for i, name in enumerate(answers)}

    def jump(place: int, name: str) -> int:
        return places[name] - place - 1 if name else 0

    code = [
        struct.pack("HBBI", op, jump(i, yes), jump(i, no), operand)
        for i, (op, operand, yes, no) in enumerate(body)
    ]
    code += [struct.pack("HBBI", _RETURN, 0, 0, value) for value in answers.values()]
    whole = b"".join(code)
    _laid_out(whole)  # now, so that forks find it done
    return whole


def restrict(code: bytes) -> None:
    """Put this process and all it will start under the filter, for good.

    Needs no-new-privileges.
    """
    filter_mode = 2
    system.prctl(system.PR_SET_SECCOMP, filter_mode, ctypes.addressof(_laid_out(code)[0]))


@functools.cache
def _laid_out(code: bytes) -> tuple[ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char]]:
    """``struct sock_fprog`` and the instructions that it points to."""
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    return ctypes.create_string_buffer(header, len(header)), buffer
