"""Attacks that use up: processes, memory, disk, descriptors, time, output."""

from __future__ import annotations

from tests.attacks.attack import REFUSED, Attack

_NPROC = "RLIMIT_NPROC; the supervisor kills the whole user or process namespace"
_TIME = "processor time and wall time are watched from outside: SIGINT, then SIGKILL"
_SEAL = "stdout and stderr are memory files sealed at the limit"
_SUM = "the supervisor adds up what a sandbox's processes hold, and ends it"
_NO_SUM = {"runsc": "there only the container bounds the sum of a sandbox's memory"}

EXHAUSTION = (
    Attack(
        "fork-bomb",
        _NPROC,
        "while True:\n    try: os.fork()\n    except OSError: pass",
        ends=("timeout", "processes"),
        lost=None,
        timeout_s=0.5,
    ),
    Attack(
        "fork-bomb-of-a-shell",
        _NPROC,
        "subprocess.run(['sh', '-c', 'b() { b | b & }; b; sleep 9'])",
        ends=("timeout", "ok"),
        lost=None,
        timeout_s=0.5,
    ),
    Attack(
        "thread-bomb",
        "RLIMIT_NPROC and RLIMIT_AS",
        "while True: threading.Thread(target=time.sleep, args=(9,)).start()",
        ends=("processes", "memory"),
    ),
    Attack(
        "zombies",
        "they count until the sandbox ends, and end with it",
        "n = 0\ntry:\n    while True:\n        if os.fork() == 0: os._exit(0)\n        n += 1\n"
        "except OSError: print(n < 64)",
        prints="True\n",
    ),
    Attack("memory-at-once", "RLIMIT_AS", "b = bytearray(10**11)", ends=("memory",), then="ok"),
    Attack(
        "memory-bit-by-bit",
        "RLIMIT_AS",
        "b = []\nwhile True: b.append(bytearray(1 << 20))",
        ends=("memory",),
        lost=None,
    ),
    Attack(
        "memory-shared-mapping",
        "RLIMIT_AS",
        "m = []\nwhile True: m.append(mmap.mmap(-1, 1 << 26)); m[-1].write(bytes(1 << 26))",
        ends=("memory", "raised"),
    ),
    Attack(
        "memory-in-six-processes",
        _SUM,
        "for _ in range(6):\n    if os.fork() == 0:\n        b = b'x' * (190 << 20); "
        "time.sleep(9)\nos.waitpid(-1, 0)\ntime.sleep(9)",
        ends=("memory",),
        lost=True,
        not_held=_NO_SUM,
        unheld_ends=("timeout", "ok"),
    ),
    Attack(
        "memory-in-many-small-processes",
        _SUM,
        "for _ in range(28):\n    if os.fork() == 0: b = b'x' * (24 << 20); time.sleep(9)\n"
        "time.sleep(9)",
        ends=("memory",),
        lost=True,
        not_held=_NO_SUM,
        unheld_ends=("timeout", "processes"),
    ),
    Attack(
        "memory-in-processes-that-hide-it",
        _SUM,
        "for _ in range(8):\n    if os.fork() == 0:\n        libc.prctl(4, 0)  # not dumpable\n"
        "        b = b'x' * (60 << 20); time.sleep(9)\ntime.sleep(9)",
        ends=("memory",),
        lost=True,
        not_held=_NO_SUM,
        unheld_ends=("timeout",),
    ),
    Attack(
        "memory-of-programs",
        _SUM,
        "hold = 'b = bytearray(60 << 20); import time; time.sleep(9)'\n"
        "for _ in range(8): subprocess.Popen([sys.executable, '-S', '-c', hold])\ntime.sleep(9)",
        ends=("memory",),
        lost=True,
        not_held=_NO_SUM,
        unheld_ends=("timeout",),
    ),
    Attack(
        "memory-that-is-shared",
        "nothing: a page that processes share counts once",
        "b = b'x' * (150 << 20)\nps = []\nfor _ in range(6):\n    ps.append(os.fork())\n"
        "    if not ps[-1]: time.sleep(1); os._exit(len(b) >> 20)\n"
        "print([os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in ps])",
        prints=r"\[150, 150, 150, 150, 150, 150\]\n",
    ),
    Attack(
        "pinned-memory",
        "RLIMIT_MEMLOCK, no capability",
        "m = mmap.mmap(-1, 64 << 20)\n"
        "attempt('mlockall', lambda: call({'x86_64': 151}.get(os.uname().machine, 230), 3))",
        prints=REFUSED,
    ),
    Attack(
        "memory-files",
        "seccomp",
        "attempt('memfd', os.memfd_create, 'x')\nattempt('shm', open, '/dev/shm/x', 'w')",
        prints=REFUSED,
    ),
    Attack(
        "disk-in-one-file",
        "RLIMIT_FSIZE",
        "with open('x', 'wb') as f:\n    while True: f.write(bytes(1 << 20))",
        ends=("disk",),
        then="ok",
    ),
    Attack(
        "disk-in-many-files",
        "the folder is a memory file system with a size",
        "n = 0\nwhile True:\n    n += 1\n    open(f'{n}', 'wb').write(bytes(1 << 20))",
        ends=("disk",),
    ),
    Attack(
        "disk-inodes",
        "the folder is a memory file system with a number of inodes",
        "n = 0\nwhile True:\n    n += 1\n    open(f'{n}', 'w').close()",
        ends=("disk",),
        not_held={"runsc": "the number of files is bounded by time and memory only"},
    ),
    Attack(
        "disk-attributes",
        "extended attributes count against the folder",
        "open('x', 'w').close()\nn = 0\ntry:\n    while n < 4000:\n        n += 1\n"
        "        os.setxattr('x', f'user.{n}', bytes(1 << 15))\nexcept OSError: pass\n"
        "print(n < 4000)",
        prints="True\n",
        not_held={"runsc": "attributes are bounded by memory only"},
    ),
    Attack(
        "disk-sparse-file",
        "RLIMIT_FSIZE",
        "attempt('truncate', os.truncate, os.open('x', os.O_CREAT | os.O_WRONLY), 1 << 40)",
        prints=REFUSED,
    ),
    Attack(
        "disk-file-without-a-name",
        "the folder's size",
        "fs = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(40)]\n"
        "for f in fs: os.write(f, bytes(1 << 20))",
        ends=("disk",),
        not_held={"runsc": "there are no such files"},
    ),
    Attack("output-of-print", _SEAL, "while True: print('A' * 10_000)", ends=("output",)),
    Attack(
        "output-of-write", _SEAL, "while True: os.write(2, b'x' * 5_000)", ends=("output", "raised")
    ),
    Attack(
        "output-of-a-program", _SEAL, "subprocess.run(['yes'])", ends=("output",), timeout_s=3.0
    ),
    Attack(
        "output-in-one-line",
        _SEAL,
        "part = 'x' * (1 << 20)\nfor _ in range(1 << 10): sys.stdout.write(part)",
        ends=("output",),
    ),
    Attack(
        "output-that-is-not-text",
        "undecodable bytes are replaced, within the limit",
        "while True: os.write(1, bytes(range(256)) * 16)",
        ends=("output", "raised"),
    ),
    Attack(
        "output-by-a-seek",
        "no more is read than the limit",
        "os.lseek(1, 1 << 50, 0)",
        ends=("output",),
        then="ok",
    ),
    Attack(
        "output-file-grown",
        "the seals cannot be taken off",
        "for fd in (1, 2):\n"
        "    attempt('truncate', os.ftruncate, fd, 1 << 30)\n"
        "    attempt('shrink', os.ftruncate, fd, 0)\n"
        "    attempt('unseal', fcntl.fcntl, fd, fcntl.F_ADD_SEALS, 0)",
        prints=REFUSED,
    ),
    Attack("busy-loop", _TIME, "while True: pass", ends=("timeout",), timeout_s=0.3, then="ok"),
    Attack("busy-in-c", _TIME, "9 ** 9 ** 9", ends=("timeout",), lost=None, timeout_s=0.3),
    Attack(
        "busy-in-many-processes",
        "processor time of all processes counts",
        "for _ in range(8): os.fork()  # as many as may be\nwhile True: pass",
        ends=("timeout", "processes"),
        lost=None,
        timeout_s=0.4,
    ),
    Attack(
        "busy-and-deaf",
        _TIME,
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        ends=("timeout",),
        lost=None,
        timeout_s=0.3,
    ),
    Attack(
        "asleep-and-deaf",
        _TIME,
        "for n in (signal.SIGINT, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
        "time.sleep(99)",
        ends=("timeout",),
        lost=True,
        timeout_s=0.3,
    ),
    Attack(
        "asleep-in-a-pipe",
        _TIME,
        "os.mkfifo('p'); open('p')",
        ends=("timeout",),
        timeout_s=0.3,
        then="ok",
    ),
    Attack(
        "stopped",
        _TIME,
        "os.kill(os.getpid(), signal.SIGSTOP)",
        ends=("timeout",),
        timeout_s=0.3,
        then="ok",
    ),
    Attack(
        "recursion-without-end",
        "the stack's limit, the kernel",
        "sys.setrecursionlimit(1 << 30)\nclass A:\n    def __repr__(self): return repr([self])\n"
        "repr(A())",
        ends=("killed", "memory", "timeout", "raised"),
        lost=None,
        timeout_s=3.0,
    ),
    Attack(
        "cpu-limit-of-its-own",
        "it ends as any other that is out of time",
        "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
        ends=("timeout", "killed"),
        lost=True,
        timeout_s=3.0,
    ),
    Attack(
        "limits-raised",
        "no capability",
        "for kind in ('AS', 'NPROC', 'FSIZE', 'NOFILE', 'CPU', 'CORE', 'MEMLOCK'):\n"
        "    number = getattr(resource, 'RLIMIT_' + kind)\n"
        "    try: resource.setrlimit(number, (1 << 40, 1 << 40))\n"
        "    except (OSError, ValueError): print(kind, 'refused')\n"
        "    else: print(kind, 'REACHED')",
        prints=REFUSED,
    ),
    Attack(
        "descriptors",
        "RLIMIT_NOFILE",
        "fs = []\nwhile True: fs.append(open('/dev/null'))",
        ends=("raised",),
        then="ok",
    ),
    Attack(
        "pipes-full-of-bytes",
        "RLIMIT_NOFILE, and the kernel's limit of pipe buffers for a user",
        "fs = []\ntry:\n    while True:\n        fs += os.pipe()\n"
        "        os.set_blocking(fs[-1], False); os.write(fs[-1], bytes(1 << 20))\n"
        "except OSError: print(len(fs) < 300)",
        prints="True\n",
    ),
    Attack(
        "timers-and-signals",
        "RLIMIT_SIGPENDING; only its own process gets them",
        "signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\nwhile True: pass",
        ends=("timeout",),
        lost=None,
        timeout_s=0.3,
    ),
    Attack(
        "priority",
        "no capability",
        "attempt('nice', os.nice, -5)\n"
        "attempt('fifo', os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))\n"
        "attempt('victim', os.setpriority, os.PRIO_PROCESS, VICTIM_PID, 19)"
        " if VICTIM_PID not in (os.getpid(), 1) else None",
        prints=REFUSED,
        not_held={"runsc": "priorities can be set, and have no effect"},
    ),
)
