"""The cases of the kind ``code_execution`` as far as a sandbox decides them: status and output.

What tools and episodes make of it (cuts, notes, masks) is tested with them.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolenvs import runtimes
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Sandbox, Worker
from toolenvs.testing import fresh, run_together

LOCAL = pytest.param("local", marks=pytest.mark.local)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)


def start(name: str) -> Worker:
    """A worker of this runtime."""
    return run(runtimes.make(name).start())


@pytest.fixture(scope="module", params=[LOCAL, DOCKER])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A started worker of each runtime that runs Python."""
    worker = start(request.param)
    yield worker
    run(worker.stop())


@pytest.fixture
def session(worker: Worker) -> Iterator[Sandbox]:
    """A sandbox that is kept for a whole test."""
    sandbox = run(worker.spawn(seed=0, files={}))
    yield sandbox
    run(sandbox.stop())


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        pytest.param("y = 20\ny + 1", "21\n", id="a"),
        pytest.param("x = 5", "", id="b"),
        pytest.param("for i in range(2):\n    i", "", id="c"),
        pytest.param("z = max(\n 1,\n 2\n)", "", id="d"),
        pytest.param("1 + 1\n# done", "2\n", id="e"),
        pytest.param("print(3)", "3\n", id="f"),
        pytest.param('import warnings; warnings.warn("old"); print(42)', "42\n", id="g"),
        pytest.param("None", "", id="h"),
        pytest.param("s = '''a\nb'''\ns", "'a\\nb'\n", id="text-over-lines"),
        pytest.param("x = 1; x", "1\n", id="semicolon"),
        pytest.param("if True:\n    7", "", id="in-a-block"),
        pytest.param("def f(): return 3\nf()  # call", "3\n", id="comment-behind"),
        pytest.param("lambda: 0\n\n\n", None, id="blank-lines-behind"),
        pytest.param("# nothing", "", id="only-a-comment"),
    ],
)
def test_C01_the_last_value_is_shown(worker: Worker, code: str, shown: str | None) -> None:
    """Values of last expressions show, by the syntax tree; what is on stderr harms nothing."""
    result = run(fresh(worker, code))
    assert result.status == "ok", result
    if shown is not None:
        assert result.stdout == shown
    assert ("UserWarning: old" in result.stderr) == ("warn" in code)


def test_C02_input_is_at_its_end(worker: Worker) -> None:
    """Reading input is an EOFError at once or empty, for the code and for its children."""
    asked = run(fresh(worker, 'n = input("n? ")', timeout_s=10.0))
    assert asked.status == "raised"
    assert asked.stderr.rstrip().endswith("EOFError: EOF when reading a line")
    for code, shown in {
        "import sys; print(repr(sys.stdin.read()))": "''\n",
        'import sys\nfor l in sys.stdin: print(l)\nprint("end")': "end\n",
        'import subprocess; subprocess.run(["cat"]); print("end")': "end\n",
        "import os; print(os.read(0, 10))": "b''\n",
        'import subprocess; subprocess.run("read x; echo got $x", shell=True)\nprint("end")': None,
    }.items():
        result = run(fresh(worker, code, timeout_s=10.0))
        assert result.status == "ok", (code, result)
        assert shown is None or result.stdout == shown


def test_C03a_a_background_process_does_not_hold_the_answer(worker: Worker) -> None:
    """``hi`` comes promptly; the process ends with the sandbox."""
    code = 'import subprocess; subprocess.Popen(["sleep","500"]); print("hi")'
    result = run(fresh(worker, code, timeout_s=60.0))
    assert (result.status, result.stdout) == ("ok", "hi\n")
    assert result.wall_s < 30.0


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "import os\nif os.fork()==0:\n    os.setsid()\n    import time; time.sleep(300)\n"
            "import time; time.sleep(300)",
            id="b",
        ),
        pytest.param('while True: print("A"*10000)', id="c"),
        pytest.param(
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", id="d"
        ),
    ],
)
def test_C03bcd_runaways_end_and_harm_nobody(worker: Worker, code: str) -> None:
    """They end at a limit, output is bounded, others answer meanwhile, no process is left."""
    runaway = run(worker.spawn(seed=0, files={}))
    other = run(worker.spawn(seed=0, files={}))
    calls = [runaway.execute(code, timeout_s=2.0), *(other.execute("print(1)") for _ in range(1))]
    result, answer = run_together(calls)
    assert result.status in ("timeout", "output", "processes")
    assert len(result.stdout) <= 1 << 20
    assert result.wall_s < 30.0
    assert answer.stdout == "1\n"
    if not result.session_lost:
        count = "import os\nn = 0\ntry:\n    while os.waitpid(-1, 0): n += 1\n"
        rest = run(runaway.execute(count + "except ChildProcessError: print('none left')"))
        assert rest.stdout == "none left\n", rest
    run(runaway.stop())
    run(other.stop())


@pytest.mark.local
def test_C03e_abandoned_sandboxes_are_ended() -> None:
    """Fifty sandboxes that nobody stopped leave no process once they are forgotten."""
    worker = start("local")
    marker = f"400000{os.getpid()}"
    for _ in range(50):
        sandbox = run(worker.spawn(seed=0, files={}))
        run(sandbox.execute(f"import subprocess; subprocess.Popen(['sleep', '{marker}'])"))
    del sandbox
    run(worker.stop())
    assert not processes_of(marker)


def processes_of(marker: str) -> list[str]:
    """Process numbers of this machine whose command line holds ``marker``."""
    listing = subprocess.run(["pgrep", "-f", f"^sleep {marker}"], capture_output=True, check=False)
    return listing.stdout.decode().split()


def test_C05_a_session_keeps_its_state(session: Sandbox) -> None:
    """Each turn runs once; a timeout costs the variables or it does not, and says which."""
    turns = [
        "doc = '''note'''\nv = 41",
        "print(v + 1)",
        "import random; r = random.random(); open('log','a').write('x')",
        "print(len(open('log').read()), r == r)",
    ]
    results = [run(session.execute(code)) for code in turns]
    assert results[1].stdout == "42\n"
    assert results[3].stdout == "1 True\n"
    slept = run(session.execute("import time; time.sleep(999)", timeout_s=1.0))
    assert slept.status == "timeout"
    assert slept.session_lost is False
    assert run(session.execute("print(v)")).stdout == "41\n"


def test_C06_any_output_is_valid_text(worker: Worker) -> None:
    """Bad bytes have a fixed replacement, long and odd output arrives as printed."""
    bad = run(fresh(worker, 'import sys; _ = sys.stdout.buffer.write(b"ok \\xff\\xfe 7\\n")'))
    assert (bad.status, bad.stdout) == ("ok", "ok \ufffd\ufffd 7\n")
    assert run(fresh(worker, 'print("é"*1000)')).stdout == "é" * 1000 + "\n"
    long = run(fresh(worker, 'print("HEAD"+"-"*5000+"TAIL")'))
    assert (long.stdout, long.output_cut) == ("HEAD" + "-" * 5000 + "TAIL\n", False)
    odd = run(fresh(worker, 'print("x\\x00y\\x1b[31mred\\x1b[0m")'))
    assert odd.stdout == "x\0y\x1b[31mred\x1b[0m\n"


def test_C07a_too_much_memory_is_the_code_s_own_doing(session: Sandbox) -> None:
    """It is a result, and the session goes on."""
    result = run(session.execute("b = bytearray(10**11)"))
    assert (result.status, result.session_lost) == ("memory", False)
    assert "MemoryError" in result.stderr
    assert run(session.execute("print(1)")).stdout == "1\n"


def test_C07b_suicide_is_the_code_s_own_doing(session: Sandbox) -> None:
    """It is a result that names the signal and says that the session is gone."""
    result = run(session.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert (result.status, result.signal, result.session_lost) == ("killed", 9, True)


@pytest.mark.local
def test_C07c_a_machine_that_dies_is_a_failure() -> None:
    """When the worker is ended under a running call, that is never a result."""
    worker = start("local")
    sandbox = run(worker.spawn(seed=0, files={}))
    house = worker._end.__self__._process.pid  # type: ignore[attr-defined]
    supervisor = Path(f"/proc/{house}/task/{house}/children").read_text().split()[0]

    async def kill() -> None:
        os.kill(int(supervisor), 9)

    began = time.monotonic()
    with pytest.raises(RuntimeFailure):
        run_together([sandbox.execute("import time; time.sleep(60)"), kill()])
    assert time.monotonic() - began < 30.0
    run(worker.stop())


@pytest.mark.parametrize(
    ("code", "end"),
    [
        pytest.param("1/0", "ZeroDivisionError: division by zero\n", id="a"),
        pytest.param("int('x')", "base 10: 'x'\n", id="value"),
        pytest.param("import nowhere", "No module named 'nowhere'\n", id="import"),
        pytest.param("open('nowhere')", "No such file or directory: 'nowhere'\n", id="file"),
        pytest.param("x = (", "SyntaxError: '(' was never closed\n", id="syntax"),
        pytest.param("raise KeyboardInterrupt", "KeyboardInterrupt\n", id="interrupt"),
        pytest.param("raise ValueError from OSError()", "ValueError\n", id="chain"),
    ],
)
def test_C08a_errors_show_nothing_of_the_host(worker: Worker, code: str, end: str) -> None:
    """The useful part is there, and no path, user or stack of this package."""
    result = run(fresh(worker, code))
    assert result.status == "raised"
    assert 'File "<python>", line 1' in result.stderr
    assert result.stderr.endswith(end)
    for secret in ("supervisor", "toolenvs", "/root", "/home", "/tmp", str(Path.cwd())):
        assert secret not in result.stderr


def test_C08d_the_program_does_not_know_where_it_is(worker: Worker) -> None:
    """``sys.path`` and ``__file__`` name no place of the host."""
    code = 'import traceback, sys; print(sys.path, __file__ if "__file__" in globals() else "")'
    result = run(fresh(worker, code))
    assert result.status == "ok"
    for secret in ("supervisor", "toolenvs", "/root", "/home", "/tmp", str(Path.cwd())):
        assert secret not in result.stdout
