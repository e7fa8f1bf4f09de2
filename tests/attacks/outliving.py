"""Attacks that end badly, or that are meant to outlive the sandbox."""

from __future__ import annotations

from tests.attacks.attack import Attack

_KILL = "everything of the user id or process namespace is killed with the sandbox"
_OWN = "only its own process; the sandbox says so"
_WIPE = "the folder is emptied as its owner, never through links; or it vanishes with its mount"
_FOREVER = "def forever():\n    while True: time.sleep(0.01)\n"

OUTLIVING = (
    Attack("daemon", _KILL, _FOREVER + "background(forever)"),
    Attack(
        "daemon-that-forks-on",
        _KILL,
        "def hop():\n    while True:\n        if os.fork(): os._exit(0)\nbackground(hop)",
    ),
    Attack(
        "daemon-deaf-to-signals",
        _KILL,
        _FOREVER + "def deaf():\n    for n in range(1, 64):\n"
        "        try: signal.signal(n, signal.SIG_IGN)\n"
        "        except (OSError, ValueError): pass\n"
        "    forever()\nbackground(deaf)",
    ),
    Attack(
        "daemon-that-is-stopped",
        _KILL,
        "background(lambda: os.kill(os.getpid(), signal.SIGSTOP))",
    ),
    Attack(
        "daemon-without-a-death-signal",
        _KILL,
        _FOREVER + "libc.prctl(1, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0)\nbackground(forever)",
    ),
    Attack(
        "daemon-program",
        _KILL,
        "background(lambda: os.execvp('setsid', ['setsid', 'sh', '-c', 'trap \"\" TERM; "
        "while :; do sleep 1; done']))",
    ),
    Attack("exit-of-the-process", _OWN, "os._exit(0)", ends=("exited",), lost=True),
    Attack("exit", "it ends the call only", "sys.exit(3)", ends=("exited",), then="ok"),
    Attack("crash", _OWN, "ctypes.string_at(0)", ends=("killed",), lost=True),
    Attack("abort", _OWN, "os.abort()", ends=("killed",), lost=True),
    Attack("suicide", _OWN, "os.kill(os.getpid(), signal.SIGKILL)", ends=("killed",), lost=True),
    Attack(
        "another-program",
        _OWN,
        "os.execv('/bin/sh', ['sh', '-c', 'exit 0'])",
        ends=("exited",),
        lost=True,
    ),
    Attack(
        "another-program-that-stays",
        "its silence ends at the timeout",
        "os.execv('/bin/sh', ['sh', '-c', 'sleep 99'])",
        ends=("timeout", "exited"),
        lost=True,
        timeout_s=0.3,
    ),
    Attack("channel-closed", _OWN, "os.close(3)", ends=("exited",), lost=True),
    Attack(
        "everything-closed",
        _OWN,
        "os.closerange(0, 1024)",
        ends=("exited",),
        lost=True,
    ),
    Attack(
        "streams-closed",
        "they are made anew for the next call",
        "sys.stdout.close(); sys.stderr = None; sys.stdin = None",
        then="ok",
    ),
    Attack(
        "runner-patched",
        "its silence ends at the timeout; other sandboxes have their own copy",
        "os.write = lambda number, data: len(data)",
        ends=("timeout",),
        lost=None,
        timeout_s=0.3,
    ),
    Attack(
        "modules-patched",
        "each sandbox has its own memory",
        "import builtins, math, numpy\nmath.pi = numpy.pi = 3\nnumpy.random.seed = None\n"
        "builtins.len = lambda x: 0\nbuiltins.print = None",
    ),
    Attack(
        "wipe-of-a-closed-tree",
        _WIPE,
        "os.makedirs('a/b/c'); open('a/b/c/f', 'w').close(); os.mkdir('e')\n"
        "for p in ('a/b/c', 'a/b', 'a', 'e', '.'): os.chmod(p, 0)",
    ),
    Attack(
        "wipe-through-links",
        _WIPE,
        "os.symlink('/', 'root'); os.symlink(VICTIM_FOLDER, 'victim')\n"
        "os.symlink('loop', 'loop'); os.symlink('..', 'up')\n"
        "open('f', 'w').close(); os.link('f', 'hard')",
    ),
    Attack(
        "wipe-of-odd-files",
        _WIPE,
        "os.mkfifo('pipe'); open(b'\\xff\\n', 'w').close(); open(' ', 'w').close()\n"
        "open('-rf', 'w').close()\n_ = os.open('pipe', os.O_RDWR)",
    ),
    Attack(
        "wipe-of-a-deep-tree",
        _WIPE,
        "for _ in range(700): os.mkdir('d' * 200); os.chdir('d' * 200)",
    ),
    Attack(
        "wipe-of-a-folder-that-grows",
        _WIPE,
        "def grow():\n    n = 0\n    while True:\n        n += 1\n"
        "        try: open(f'{n % 500}', 'w').close()\n        except OSError: pass\n"
        "background(grow); background(grow)",
    ),
    Attack(
        "wipe-of-files-that-cannot-change",
        "setting the flag needs a capability",
        "open('f', 'w').close()\nimport array\nflags = array.array('l', [0x10])\n"
        "attempt('immutable', fcntl.ioctl, os.open('f', os.O_RDONLY), 0x40086602, flags)",
        prints="immutable refused\n",
    ),
    Attack(
        "output-after-the-call",
        "it is dropped",
        "threading.Thread(target=lambda: [print('late') or time.sleep(0.001) for _ in range(99)])"
        ".start()",
        then="ok",
    ),
)
