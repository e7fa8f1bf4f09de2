"""Check that a sandbox keeps its promises: for authors of runtimes, and for our own tests.

    check_sandbox(MyRuntime())                            # raises AssertionError at the first fault
    @pytest.mark.parametrize("probe", PYTHON_PROBES, ids=lambda probe: probe.__name__)

``CONTRACT_PROBES`` hold for every runtime, ``PYTHON_PROBES`` for those that run Python: each is a
coroutine function of a started worker, its docstring is the promise, and it leaves the worker
usable. ``DATA_PROBES`` are the same for a worker that shows the folder of ``write_probe_data``
under the name ``PROBE_DATA``. ``RUNTIME_PROBES`` take the runtime and start a worker of their own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from toolenvs.drivers import Loop, run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.types import ExecResult

T = TypeVar("T")
Probe = Callable[[Worker], Coroutine[Any, Any, None]]
RuntimeProbe = Callable[[Runtime], Coroutine[Any, Any, None]]

CONTRACT_SCRIPT: Mapping[str, str] = {"print(6 * 7)": "42\n", "pass": ""}
"""All the code that the contract probes run and what it must print; for ``Scripted``."""


PROBE_DATA = "probe"
"""The data folder that the data probes read."""


def check_sandbox(runtime: Runtime, *, python: bool = True, data: bool = False) -> None:
    """Run every probe against ``runtime``.

    Args:
        runtime: what to check.
        python: False for a runtime that runs another language: then only the contract is checked.
        data: True for one that runs Python and shows the folder of ``write_probe_data``.

    Raises:
        AssertionError: A promise is broken; the message names the probe and quotes the promise.
    """
    for check in RUNTIME_PROBES:
        _named(check.__name__, check.__doc__, check(runtime))
    worker = run(runtime.start())
    try:
        more = (*(PYTHON_PROBES if python else ()), *(DATA_PROBES if data else ()))
        for probe in (*CONTRACT_PROBES, *more):
            _named(probe.__name__, probe.__doc__, probe(worker))
    finally:
        run(worker.stop())


def _named(name: str, promise: str | None, probe: Coroutine[Any, Any, None]) -> None:
    try:
        run(probe)
    except AssertionError as broken:
        raise AssertionError(f"{name}: {promise} {broken}") from broken


def run_together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Drive coroutines at once on one ``Loop`` and return their values in order.

    Raises:
        BaseException: What the first of them to fail raised.
    """
    loop = Loop()
    values: dict[int, T] = {}
    errors: list[BaseException] = []

    def keep(number: int) -> Callable[[T | None, BaseException | None], None]:
        def done(value: T | None, error: BaseException | None) -> None:
            if error is not None:
                errors.append(error)
            values[number] = value  # type: ignore[assignment]  # None only beside an error

        return done

    for number, coroutine in enumerate(coroutines):
        loop.spawn(coroutine, keep(number))
    while len(values) < len(coroutines):
        loop.pump(1.0)
    loop.close()
    if errors:
        raise errors[0]
    return [values[number] for number in range(len(coroutines))]


async def fresh(worker: Worker, *codes: str, seed: int = 0, timeout_s: float = 5.0) -> ExecResult:
    """Run pieces of code in a new sandbox, one after another, and return the last result."""
    sandbox = await worker.spawn(seed=seed, files={})
    try:
        for code in codes[:-1]:
            await sandbox.execute(code, timeout_s=timeout_s)
        return await sandbox.execute(codes[-1], timeout_s=timeout_s)
    finally:
        await sandbox.stop()


async def _refuses(attempt: Coroutine[Any, Any, object]) -> str:
    try:
        value = await attempt
    except RuntimeFailure as failure:
        return failure.kind
    raise AssertionError(f"a RuntimeFailure was due, not {value!r}")


async def code_runs(worker: Worker) -> None:
    """Code runs and its output comes back as a good result."""
    result = await fresh(worker, "print(6 * 7)")
    assert (result.status, result.stdout) == ("ok", "42\n"), result


async def a_stopped_sandbox_refuses(worker: Worker) -> None:
    """After ``stop``, which may be called twice, ``execute`` raises and the worker lives."""
    sandbox = await worker.spawn(seed=0, files={})
    await sandbox.stop()
    await sandbox.stop()
    assert await _refuses(sandbox.execute("pass"))
    assert worker.healthy()


async def a_full_worker_refuses(worker: Worker) -> None:
    """The sandbox beyond ``capacity`` raises ``capacity``; a stopped one makes room."""
    sandboxes: list[Sandbox] = []
    try:
        while len(sandboxes) < worker.capacity:
            sandboxes.append(await worker.spawn(seed=0, files={}))
        assert await _refuses(worker.spawn(seed=0, files={})) == "capacity"
        await sandboxes.pop().stop()
        sandboxes.append(await worker.spawn(seed=0, files={}))
    finally:
        for sandbox in sandboxes:
            await sandbox.stop()


async def a_stopped_worker_refuses(runtime: Runtime) -> None:
    """After ``stop``, which may be called twice, a worker is not healthy and all of it raises."""
    worker = await runtime.start()
    sandbox = await worker.spawn(seed=0, files={})
    assert worker.healthy()
    await worker.stop()
    await worker.stop()
    assert not worker.healthy()
    assert await _refuses(sandbox.execute("pass"))
    assert await _refuses(worker.spawn(seed=0, files={}))
    await sandbox.stop()


async def the_fingerprint_stays(runtime: Runtime) -> None:
    """``fingerprint`` is a text that does not change and names no host path."""
    fingerprint = runtime.fingerprint()
    assert fingerprint, "it is empty"
    assert fingerprint == runtime.fingerprint()
    assert "/home/" not in fingerprint


async def names_stay(worker: Worker) -> None:
    """Variables, files and random streams go on from call to call; nothing is run twice."""
    code = "import random; log = open('log', 'a'); log.write('x'); log.close(); r = random.random()"
    result = await fresh(worker, "v = 41", code, "print(v + 1, open('log').read(), 0 <= r < 1)")
    assert result.stdout == "42 x True\n", result


async def sandboxes_are_apart(worker: Worker) -> None:
    """One sandbox sees neither variables nor files nor changed modules of another."""
    first = await worker.spawn(seed=0, files={"given.txt": "yes"})
    await first.execute("v = 1; open('mine', 'w').write('x'); import math; math.pi = 3")
    code = "import math, os; print('v' in globals(), sorted(os.listdir('.')), math.pi == 3)"
    second = await fresh(worker, code)
    assert second.stdout == "False [] False\n", second
    assert (await first.execute("print(open('given.txt').read())")).stdout == "yes\n"
    await first.stop()


async def a_reused_place_is_empty(worker: Worker) -> None:
    """What code does to its folder, the next sandbox finds it empty."""
    mess = (
        "import os\n"
        "os.makedirs('a/' + '/'.join('d' * 100)); os.symlink('/', 'link'); os.mkfifo('pipe')\n"
        "open('a/f', 'w').close(); os.chmod('a', 0); os.chmod('.', 0)"
    )
    for _ in range(worker.capacity + 3 if worker.capacity < 8 else 4):
        result = await fresh(worker, "import os; left = os.listdir('.')\n" + mess + "\nprint(left)")
        assert result.stdout == "[]\n", result


async def the_last_value_shows(worker: Worker) -> None:
    """The value of a last expression is printed, nothing else is; code is never rewritten."""
    for code, shown in {
        "y = 20\ny + 1": "21\n",
        "x = 5": "",
        "for i in range(2):\n    i": "",
        "z = max(\n 1,\n 2\n)": "",
        "1 + 1\n# done": "2\n",
        "print(3)": "3\n",
        "None": "",
        "": "",
    }.items():
        result = await fresh(worker, code)
        assert (result.status, result.stdout) == ("ok", shown), (code, result)


async def warnings_are_no_errors(worker: Worker) -> None:
    """What goes to stderr is kept apart and does not make a result bad."""
    result = await fresh(worker, 'import warnings; warnings.warn("old"); print(42)')
    assert (result.status, result.stdout) == ("ok", "42\n"), result
    assert "UserWarning: old" in result.stderr


async def a_traceback_shows_only_the_code(worker: Worker) -> None:
    """A traceback names ``<python>``, its lines are right also for earlier calls; no path shows."""
    result = await fresh(worker, "def f():\n    # one\n    return 1 / 0", "x = 1\n\nf()")
    assert result.status == "raised"
    assert result.stderr.startswith('Traceback (most recent call last):\n  File "<python>", line 3')
    assert 'File "<python>", line 3, in f\n    return 1 / 0' in result.stderr, result.stderr
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "supervisor" not in result.stderr


async def code_that_does_not_parse_raises(worker: Worker) -> None:
    """A syntax error, a zero byte, a lone surrogate are ordinary errors of the code."""
    for code in ("x = (", "x = '\0'", "x = '\ud800'", "return 1", "(" * 10_000):
        result = await fresh(worker, code)
        assert result.status in ("raised", "memory"), (code[:20], result)
        assert not result.session_lost


async def stdin_is_at_its_end(worker: Worker) -> None:
    """``input``, reads and children meet the end of input at once."""
    result = await fresh(worker, "n = input('n? ')")
    assert result.status == "raised", result
    assert "EOFError" in result.stderr
    code = (
        "import sys, subprocess\nprint(repr(sys.stdin.read()))\n"
        "for line in sys.stdin: print(line)\nsubprocess.run(['cat']); print('end')"
    )
    assert (await fresh(worker, code)).stdout == "''\nend\n"


async def time_is_limited(worker: Worker) -> None:
    """Sleeping, computing and ignoring interrupts all end with ``timeout``; others go on."""
    stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
    for code in ("import time; time.sleep(60)", "while True: pass", "9**9**9", stubborn):
        sandbox = await worker.spawn(seed=0, files={})
        await sandbox.execute("v = 41")
        result = await sandbox.execute(code, timeout_s=0.5)
        assert result.status == "timeout", (code, result)
        assert result.wall_s < 20.0
        if not result.session_lost:
            assert (await sandbox.execute("print(v + 1)")).stdout == "42\n"
        await sandbox.stop()


async def an_interrupt_keeps_the_session(worker: Worker) -> None:
    """Code that can be interrupted loses its time, not its variables."""
    sandbox = await worker.spawn(seed=0, files={})
    await sandbox.execute("v = 41")
    result = await sandbox.execute("import time; time.sleep(60)", timeout_s=0.3)
    assert (result.status, result.session_lost) == ("timeout", False), result
    assert (await sandbox.execute("print(v + 1)")).stdout == "42\n"
    await sandbox.stop()


async def children_die_with_the_call(worker: Worker) -> None:
    """At a timeout grandchildren in sessions of their own die too; no process stays behind."""
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        while True: open('beat', 'a').write('x'); time.sleep(0.02)\n"
        "time.sleep(60)"
    )
    sandbox = await worker.spawn(seed=0, files={})
    assert (await sandbox.execute(code, timeout_s=0.5)).status == "timeout"
    beats = "import os, time; a = os.path.getsize('beat'); time.sleep(0.3)\n"
    result = await sandbox.execute(beats + "print(a > 0, os.path.getsize('beat') - a)")
    assert result.stdout == "True 0\n", result
    await sandbox.stop()


async def background_processes_hold_nothing_up(worker: Worker) -> None:
    """A process left in the background does not delay the answer."""
    code = "import subprocess; subprocess.Popen(['sleep', '500']); print('hi')"
    result = await fresh(worker, code, timeout_s=30.0)
    assert (result.status, result.stdout) == ("ok", "hi\n"), result
    assert result.wall_s < 20.0


async def a_forked_copy_does_not_answer(worker: Worker) -> None:
    """When the code forks and both copies reach its end, one answer comes; the next is right."""
    sandbox = await worker.spawn(seed=0, files={})
    result = await sandbox.execute("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)")
    assert result.status == "ok", result
    for number in range(3):
        assert (await sandbox.execute(f"print({number})")).stdout == f"{number}\n"
    await sandbox.stop()


async def a_fork_bomb_is_contained(worker: Worker) -> None:
    """Endless forking ends at the limit of time and of processes; others answer meanwhile."""
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    bomb = await worker.spawn(seed=0, files={})
    other = await worker.spawn(seed=0, files={})
    ends = run_together([bomb.execute(code, timeout_s=0.5), other.execute("print(1)")])
    assert ends[0].status in ("timeout", "processes"), ends[0]
    assert ends[1].stdout == "1\n"
    await bomb.stop()
    assert (await other.execute("print(2)")).stdout == "2\n"
    await other.stop()


async def processes_are_limited(worker: Worker) -> None:
    """Starting too many processes or threads is an error that says so."""
    threads = (
        "import threading, time\n"
        "for _ in range(5000): threading.Thread(target=time.sleep, args=(9,)).start()"
    )
    forks = "import os, time\nfor _ in range(5000):\n    if os.fork() == 0: time.sleep(9)"
    for code in (threads, forks):
        result = await fresh(worker, code)
        assert result.status in ("processes", "memory"), result


async def memory_is_limited(worker: Worker) -> None:
    """Taking too much memory is ``memory``, and the session goes on."""
    sandbox = await worker.spawn(seed=0, files={})
    assert (await sandbox.execute("b = bytearray(10**11)")).status == "memory"
    grow = await sandbox.execute("b = []\nwhile True: b.append(bytearray(1 << 24))")
    assert grow.status == "memory", grow
    if not grow.session_lost:
        assert (await sandbox.execute("b = None; print(1)")).stdout == "1\n"
    await sandbox.stop()


async def disk_is_limited(worker: Worker) -> None:
    """Writing too much, in one file or in many, is ``disk``; so is making too many files."""
    one = "f = open('x', 'wb')\nwhile True: f.write(bytes(1 << 20))"
    many = "n = 0\nwhile True:\n    n += 1\n    open(f'{n}', 'wb').write(bytes(1 << 20))"
    names = "n = 0\nwhile True:\n    n += 1\n    open(f'{n}', 'w').close()"
    for code in (one, many, names):
        assert (await fresh(worker, code, timeout_s=30.0)).status == "disk", code


async def output_is_limited(worker: Worker) -> None:
    """Endless output, by any road, ends with what was kept of it, as valid text."""
    for code in (
        "while True: print('é' * 10_000)",
        "import os\nwhile True: os.write(2, b'x' * 5_000)",
        "import subprocess; subprocess.run(['yes'])",
        "while True:\n    try: print('A' * 10_000)\n    except Exception: pass",
    ):
        result = await fresh(worker, code)
        assert result.status == "output", (code, result.status)
        assert result.output_cut
        assert result.stdout or result.stderr
        result.stdout.encode()


async def output_starts_anew(worker: Worker) -> None:
    """A call's output holds nothing of an earlier call, also after one that was cut."""
    result = await fresh(worker, "print('x' * 5000)", "print('y')")
    assert result.stdout == "y\n"
    result = await fresh(worker, "while True: print('x' * 5000)", "print('y')")
    assert (result.status, result.stdout) == ("ok", "y\n"), result


async def any_bytes_are_text(worker: Worker) -> None:
    """Bytes that are not UTF-8 are replaced; zero bytes and surrogates do no harm."""
    code = 'import sys; sys.stdout.buffer.write(b"ok \\xff\\xfe 7\\n")'
    assert (await fresh(worker, code)).stdout.startswith("ok \ufffd\ufffd 7\n")
    assert (await fresh(worker, "print('a\\x00\\u20ac')")).stdout == "a\0€\n"
    assert (await fresh(worker, "print('\\ud800')")).status == "ok"


async def exits_are_told(worker: Worker) -> None:
    """``sys.exit`` ends a call; a dead interpreter is told by its status or signal."""
    for code, expected in {
        "import sys; sys.exit()": ("ok", 0, 0, False),
        "import sys; sys.exit(3)": ("exited", 3, 0, False),
        "import os; os._exit(3)": ("exited", 3, 0, True),
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": ("killed", 0, 9, True),
        "import ctypes; ctypes.string_at(0)": ("killed", 0, 11, True),
    }.items():
        result = await fresh(worker, code)
        told = (result.status, result.exit_code, result.signal, result.session_lost)
        assert told == expected, (code, told)


async def a_lost_session_refuses(worker: Worker) -> None:
    """Once the interpreter is gone the sandbox raises; the worker gives a new one."""
    sandbox = await worker.spawn(seed=0, files={})
    result = await sandbox.execute("print('last'); import os; os._exit(3)")
    assert (result.stdout, result.session_lost) == ("last\n", True)
    assert await _refuses(sandbox.execute("print(1)"))
    assert (await fresh(worker, "print(1)")).stdout == "1\n"


async def broken_streams_are_mended(worker: Worker) -> None:
    """Closing or replacing the standard streams does not silence later calls."""
    breaks = "import sys, io; sys.stdout.close(); sys.stderr = None; sys.stdin = io.StringIO('x')"
    result = await fresh(worker, breaks, "print(1); import sys; print(repr(sys.stdin.read()))")
    assert (result.status, result.stdout) == ("ok", "1\n''\n"), result


async def awkward_objects_do_no_harm(worker: Worker) -> None:
    """Exceptions and exit codes that cannot be looked at are ordinary ends of a call."""
    for code, status in {
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E": "raised",
        "class E(OSError):\n    errno = property(lambda self: 1 / 0)\nraise E": "raised",
        "class E:\n    def __str__(self): 1 / 0\nraise SystemExit(E())": "exited",
        "class E(int):\n    __and__ = __eq__ = None\nraise SystemExit(E(3))": "exited",
        "class E:\n    def __repr__(self): raise SystemExit\nE()": "ok",
        "class E(BaseException): pass\nraise E": "raised",
        "raise ExceptionGroup('g', [ValueError(1), OSError(28, 'x')])": "raised",
        "import sys; del sys.stdout, sys.stderr, sys.stdin": "ok",
        "import sys\nclass S:\n    def flush(self): raise SystemExit\nsys.stdout = S()": "ok",
        "import builtins; del builtins.print": "ok",
    }.items():
        sandbox = await worker.spawn(seed=0, files={})
        result = await sandbox.execute(code)
        assert (result.status, result.session_lost) == (status, False), (code, result)
        assert (await sandbox.execute("import sys; _ = sys.stdout.write('y')")).stdout == "y"
        await sandbox.stop()


async def a_forged_answer_ends_only_its_own_sandbox(worker: Worker) -> None:
    """Writing to any descriptor spoils at most the sandbox that does it, as its own doing."""
    other = await worker.spawn(seed=0, files={})
    code = (
        "import os\nfor n in range(3, 64):\n"
        "    try: os.write(n, b'forged' * 9)\n    except OSError: pass"
    )
    result = await fresh(worker, code)
    assert result.status in ("ok", "killed"), result
    assert (await other.execute("print(1)")).stdout == "1\n"
    await other.stop()


async def large_code_arrives(worker: Worker) -> None:
    """Code of megabytes arrives whole and runs once."""
    code = f"s = '{'x' * 3_000_000}'\nprint(len(s))"
    assert (await fresh(worker, code, timeout_s=60.0)).stdout == "3000000\n"


async def equal_seeds_repeat(worker: Worker) -> None:
    """The same seed gives the same random numbers, by every usual road; another gives others."""
    code = (
        "import os, random, secrets, tempfile, uuid\n"
        "print(random.random(), random.Random().random(), os.urandom(4), secrets.token_hex(4))\n"
        "print(uuid.uuid4(), tempfile.mktemp()[-8:], {*'abcdef'})\n"
        "try:\n    import numpy; print(numpy.random.rand(), numpy.random.default_rng().random())\n"
        "except ImportError: pass"
    )
    first = await fresh(worker, code, seed=7)
    assert first.status == "ok", first
    assert (await fresh(worker, code, seed=7)).stdout == first.stdout
    other = (await fresh(worker, code, seed=8)).stdout.split("\n")
    for line, different in zip(first.stdout.split("\n"), other, strict=True):
        assert line != different or not line


async def nothing_is_reached(worker: Worker) -> None:
    """No network, no other sandbox's folder, no way to write to the system."""
    for code in (
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import socket; socket.socket(socket.AF_UNIX).connect('/run/control/s')",
        "open('/usr/x', 'w')",
        "open('/etc/shadow')",
        "import os; os.listdir('/work')",
        "open('/proc/1/environ').read()",
        "import os; os.kill(1, 0); os.setuid(0)",
    ):
        result = await fresh(worker, code)
        if "listdir" not in code:  # where each sandbox has a private /work, it is its own
            assert result.status == "raised", (code, result)


async def nothing_of_the_host_shows(worker: Worker) -> None:
    """Paths and environment name no user, host folder or this package."""
    code = (
        "import sys, os\n"
        "print(sys.path, sys.argv, dict(os.environ), os.uname().nodename, '__file__' in dir())"
    )
    result = await fresh(worker, code)
    assert result.status == "ok"
    assert "toolenvs" not in result.stdout.lower()
    assert "/root" not in result.stdout
    assert "/home" not in result.stdout
    assert result.stdout.endswith("sandbox False\n"), result.stdout


async def many_at_once_keep_apart(worker: Worker) -> None:
    """Calls of many sandboxes at once each get their own answer."""
    count = min(8, worker.capacity)
    sandboxes = [await worker.spawn(seed=n, files={}) for n in range(count)]

    async def count_up(sandbox: Sandbox, number: int) -> list[str]:
        await sandbox.execute(f"n = {number}")
        return [(await sandbox.execute("n += 100; n")).stdout for _ in range(20)]

    outputs = run_together([count_up(s, n) for n, s in enumerate(sandboxes)])
    for number, output in enumerate(outputs):
        assert output == [f"{number + 100 * k}\n" for k in range(1, 21)]
    for sandbox in sandboxes:
        await sandbox.stop()


def write_probe_data(folder: Path) -> None:
    """Fill an empty folder with what the data probes read; other users can read it."""
    for place in ("one", "two"):
        (folder / place).mkdir()
        with closing(sqlite3.connect(folder / place / "small.sqlite")) as database:
            database.execute("CREATE TABLE t (a)")
            database.execute("INSERT INTO t VALUES (?)", (place,))
            database.commit()
        (folder / place / "beside.txt").write_text(place)
    (folder / "link").symlink_to("one/beside.txt")
    (folder / "out").symlink_to("../../usr")
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


_COUNT_READS = (
    "import os\n"
    "def reads(*attempts):\n"
    "    done = []\n"
    "    for attempt in attempts:\n"
    "        try: done.append(attempt())\n"
    "        except OSError: pass\n"
    "    return done\n"
)


async def _with_data(worker: Worker, code: str, *places: str) -> ExecResult:
    """Run code in a new sandbox that may read these places of the probes' data."""
    sandbox = await worker.spawn(
        seed=0, files={}, data=[f"{PROBE_DATA}/{place}" for place in places]
    )
    try:
        return await sandbox.execute(_COUNT_READS + code)
    finally:
        await sandbox.stop()


async def places_are_read(worker: Worker) -> None:
    """A sandbox reads its places: files, whole folders, links that stay inside."""
    code = "print([open(f'/data/probe/{n}').read() for n in ('one/beside.txt', 'two/beside.txt')])"
    result = await _with_data(worker, code, "one/beside.txt", "two")
    assert result.stdout == "['one', 'two']\n", result
    code = "print(sorted(os.listdir('/data/probe/two')), open('/data/probe/link').read())"
    result = await _with_data(worker, code, "link", "two")
    assert result.stdout == "['beside.txt', 'small.sqlite'] one\n", result


async def a_database_is_read(worker: Worker) -> None:
    """SQLite opens a file of the data, reads and locks it, and cannot change it."""
    code = (
        "import sqlite3\nplace = '/data/probe/one/small.sqlite'\n"
        "database = sqlite3.connect(f'file:{place}?mode=ro', uri=True)\n"
        "database.execute('BEGIN'); print(database.execute('SELECT a FROM t').fetchall())\n"
        "database = sqlite3.connect(place)\n"
        "try: database.execute('DELETE FROM t'); database.commit(); print('changed')\n"
        "except sqlite3.OperationalError: pass"
    )
    result = await _with_data(worker, code, "one/small.sqlite")
    assert result.stdout == "[('one',)]\n", result


async def other_data_is_out_of_reach(worker: Worker) -> None:
    """Neither a neighbour of its place nor any list of the data can be read."""
    code = (
        "os.symlink('/data/probe/two/beside.txt', 'link')\n"
        "files = ('/data/probe/one/small.sqlite', '/data/probe/two/beside.txt', 'link',\n"
        "         '/data/probe/one/../two/beside.txt')\n"
        "print(reads(*(lambda f=f: open(f, 'rb').read(1) for f in files)))\n"
        "folders = ('/data', '/data/probe', '/data/probe/one', '/data/probe/two')\n"
        "print(reads(*(lambda f=f: os.listdir(f) for f in folders)))"
    )
    for places in (("one/beside.txt",), ()):
        result = await _with_data(worker, code, *places)
        assert result.stdout == "[]\n[]\n", (places, result)


async def data_is_not_written(worker: Worker) -> None:
    """No way of writing, linking or reopening changes a place, nor adds a file to its folder."""
    code = (
        "place = '/data/probe/one/beside.txt'; folder = os.path.dirname(place)\n"
        "os.symlink(place, 'symbolic'); number = os.open(place, os.O_RDONLY)\n"
        "def hard(): os.link(place, 'hard'); return open('hard', 'w').write('x')\n"
        "print(reads(\n"
        "    *(lambda m=m: open(place, m) for m in ('w', 'a', 'r+', 'x')),\n"
        "    lambda: open('symbolic', 'a'), hard,\n"
        "    lambda: os.open(f'/proc/self/fd/{number}', os.O_RDWR),\n"
        "    lambda: os.open(f'/dev/fd/{number}', os.O_RDWR),\n"
        "    lambda: os.write(number, b'x'), lambda: os.truncate(place, 0),\n"
        "    lambda: os.ftruncate(number, 0), lambda: os.fchmod(number, 0o666),\n"
        "    lambda: os.utime(place, (0, 0)), lambda: os.setxattr(place, 'user.x', b'x'),\n"
        "    lambda: os.remove(place), lambda: os.rename(place, 'mine'),\n"
        "    lambda: os.rename('symbolic', place), lambda: open(folder + '/new', 'w'),\n"
        "    lambda: os.mkdir(folder + '/new'), lambda: os.rename(folder, folder + '2'),\n"
        "))"
    )
    result = await _with_data(worker, code, "one")
    assert result.stdout == "[]\n", result
    code = "print(open('/data/probe/one/beside.txt').read(), len(os.listdir('/data/probe/one')))"
    assert (await _with_data(worker, code, "one")).stdout == "one 2\n"


async def each_sandbox_has_its_own_data(worker: Worker) -> None:
    """Sandboxes that live at once, also those forked ahead of need, read what each was given."""
    code = "print([r[0] for r in reads(*(lambda n=n: open(n).read() for n in names))])"
    names = "names = ['/data/probe/one/beside.txt', '/data/probe/two/beside.txt']\n"
    sandboxes = []
    for place in ("one", "two")[: worker.capacity] * min(2, max(1, worker.capacity // 2)):
        given = [f"{PROBE_DATA}/{place}/beside.txt"]
        sandboxes.append((place, await worker.spawn(seed=0, files={}, data=given)))
    for place, sandbox in sandboxes:
        result = await sandbox.execute(_COUNT_READS + names + code)
        assert result.stdout == f"{[place[0]]}\n", (place, result)
        await sandbox.stop()


async def bad_places_are_refused(worker: Worker) -> None:
    """A place that is no relative path, is not there or leads out is refused, and names itself."""
    for place in ("/data/probe/one", "../probe/one", "probe/../probe/one", "", "other/one"):
        await _refused(worker, place, UsageError)
    for place in ("probe/three", "probe/one/beside.txt/x", "probe/out", "probe/out/bin/env"):
        await _refused(worker, place, RuntimeFailure)
    assert (await fresh(worker, "print(6 * 7)")).stdout == "42\n"


async def _refused(worker: Worker, place: str, kind: type[Exception]) -> None:
    try:
        sandbox = await worker.spawn(seed=0, files={}, data=[f"{PROBE_DATA}/one", place])
    except kind as refused:
        told = str(refused)
    else:
        await sandbox.stop()
        raise AssertionError(f"{place!r} was not refused")
    assert place.partition("/")[0] in told, (place, told)


RUNTIME_PROBES: tuple[RuntimeProbe, ...] = (the_fingerprint_stays, a_stopped_worker_refuses)
CONTRACT_PROBES: tuple[Probe, ...] = (code_runs, a_stopped_sandbox_refuses, a_full_worker_refuses)
PYTHON_PROBES: tuple[Probe, ...] = (
    names_stay,
    sandboxes_are_apart,
    a_reused_place_is_empty,
    the_last_value_shows,
    warnings_are_no_errors,
    a_traceback_shows_only_the_code,
    code_that_does_not_parse_raises,
    stdin_is_at_its_end,
    time_is_limited,
    an_interrupt_keeps_the_session,
    children_die_with_the_call,
    background_processes_hold_nothing_up,
    a_forked_copy_does_not_answer,
    a_fork_bomb_is_contained,
    processes_are_limited,
    memory_is_limited,
    disk_is_limited,
    output_is_limited,
    output_starts_anew,
    any_bytes_are_text,
    exits_are_told,
    a_lost_session_refuses,
    broken_streams_are_mended,
    awkward_objects_do_no_harm,
    a_forged_answer_ends_only_its_own_sandbox,
    large_code_arrives,
    equal_seeds_repeat,
    nothing_is_reached,
    nothing_of_the_host_shows,
    many_at_once_keep_apart,
)
DATA_PROBES: tuple[Probe, ...] = (
    places_are_read,
    a_database_is_read,
    other_data_is_out_of_reach,
    data_is_not_written,
    each_sandbox_has_its_own_data,
    bad_places_are_refused,
)
