"""Attacks on the kernel's interfaces that code in a sandbox never needs."""

from __future__ import annotations

from tests.attacks.attack import REFUSED, Attack
from toolenvs.supervisor import seccomp, system

_NUMBERS = {
    name: numbers[int(system.ARM)]
    for name, numbers in seccomp.REFUSED.items()
    if numbers[int(system.ARM)] >= 0
}
_FORBIDDEN = f"""
for name, number in {_NUMBERS!r}.items():
    try:
        call(number, 0, 0, 0, 0, 0, 0)
    except OSError as error:  # EFAULT or EINVAL would mean that the kernel began to look
        allowed = error.errno not in (errno.EPERM, errno.EACCES, errno.ENOSYS)
        print(name, "REACHED" if allowed else "refused")
    else:
        print(name, "REACHED")
"""

KERNEL = (
    Attack("forbidden-calls", "seccomp, each by its number", _FORBIDDEN, prints=REFUSED),
    Attack(
        "namespaces",
        "seccomp",
        "numbers = {'x86_64': (272, 56)}.get(os.uname().machine, (97, 220))\n"
        "for bit in (7, 17, 25, 26, 27, 28, 29, 30):\n"
        "    attempt(f'unshare {bit}', call, numbers[0], 1 << bit)\n"
        "    if bit != 7: attempt(f'clone {bit}', call, numbers[1], 1 << bit | 17, 0, 0, 0, 0)\n"
        "attempt('clone3', call, 435, bytes(88), 88)\n"
        "for name in ('unshare -U true', 'unshare -r id', 'mount -t tmpfs x .', 'chroot . id'):\n"
        "    done = subprocess.run(name, shell=True, capture_output=True)\n"
        "    print(name, 'refused' if done.returncode else 'REACHED')",
        prints=REFUSED,
    ),
    Attack(
        "calls-of-other-instruction-sets",
        "seccomp looks at the architecture",
        "import mmap\nif os.uname().machine == 'x86_64':\n"
        "    m = mmap.mmap(-1, 4096, prot=7)\n"
        "    m.write(b'\\x53\\xb8\\x14\\0\\0\\0\\xcd\\x80\\x5b\\xc3')  # getpid by int 0x80\n"
        "    f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "    print('int 0x80', 'refused' if f() < 0 else 'REACHED')\n"
        "    attempt('x32', call, 0x40000000 + 39)\n"
        "else:\n    print('nothing refused')",
        ends=("ok", "killed"),
        prints="(?:" + REFUSED + ")?",
        lost=None,
    ),
    Attack(
        "filter-taken-off",
        "filters and rules only ever add",
        "attempt('disable', lambda: None if libc.prctl(22, 0, 0) == 0 else (_ for _ in ()).throw("
        "OSError()))\n"
        "import struct\nrules = struct.pack('QQQ', 0, 0, 0)\n"
        "libc.prctl(38, 0, 0, 0, 0)\n"
        "print(libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))\n"
        "attempt('socket', socket.socket)\nattempt('shadow', open, '/etc/shadow')",
        prints=r"disable refused\n1 2\nsocket refused\nshadow refused\n",
    ),
    Attack(
        "landlock-on-top",
        "a new set of rules cannot allow more",
        "import struct\ntry:\n"
        "    rules = call(444, struct.pack('Q', 12), 8, 0)\n"
        "    place = os.open('/', os.O_PATH)\n"
        "    call(445, rules, 1, struct.pack('=Qi', 12, place), 0); call(446, rules, 0)\n"
        "except OSError: pass\n"
        "attempt('shadow', open, '/etc/shadow')\n"
        "attempt('proc', open, '/proc/1/environ')\nattempt('write', open, '/usr/x', 'w')",
        prints=REFUSED,
        not_held={"runsc": "the variables of the supervisor can be read; they are public"},
    ),
    Attack(
        "clock-and-name",
        "seccomp, no capability",
        "attempt('clock', time.clock_settime, time.CLOCK_REALTIME, 0)\n"
        "attempt('name', socket.sethostname, 'mine')",
        prints=REFUSED,
    ),
    Attack(
        "mounts-listed-or-made",
        "seccomp; calls newer than its table are missing",
        "attempt('list', call, 458, bytes(32), bytes(4096), 512, 0)\n"
        "attempt('tree', call, 467, -100, b'/', 0, 0, 0)",
        prints=REFUSED,
    ),
    Attack(
        "secure-computing-listener",
        "it could only watch the sandbox's own processes",
        "import struct\ncode = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)\n"
        "buffer = ctypes.create_string_buffer(code, 8)\n"
        "header = struct.pack('HxxxxxxQ', 1, ctypes.addressof(buffer))\n"
        "try: call({'x86_64': 317}.get(os.uname().machine, 277), 1, 8, header)\n"
        "except OSError: pass\nattempt('socket', socket.socket)",
        prints=REFUSED,
    ),
)
