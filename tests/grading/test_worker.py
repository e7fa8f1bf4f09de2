"""The killable helper: it answers, dies in time, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolenvs.errors import RuntimeFailure
from toolenvs.grading import worker
from toolenvs.grading.expression import read_expression
from toolenvs.grading.math import grade
from toolenvs.grading.nodes import TooLargeError

COT = read_expression(r"\cot x")
QUOTIENT = read_expression(r"\frac{\cos x}{\sin x}")
# Equal, agreeing at every point, and beyond sympy in the time given.
SLOW = read_expression(r"\cos\frac{\pi}{97}\cos\frac{\pi}{89}")
SLOW_TOO = read_expression(r"\frac{\cos\frac{186\pi}{8633}+\cos\frac{8\pi}{8633}}{2}")


@pytest.fixture(autouse=True)
def _own_helper() -> Iterator[None]:
    worker.stop()
    yield
    worker.stop()


def prove(left: str, right: str) -> bool | None:
    """Ask the helper about two texts."""
    return worker.prove_equal(read_expression(left), read_expression(right), timeout_s=5.0).equal


def gone(pid: int, within_s: float = 30.0) -> bool:
    """Wait until a process that is not ours to collect has ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (r"\sin^2 x + \cos^2 x", "1", True),
        (r"\sqrt{5+2\sqrt6}", r"\sqrt2+\sqrt3", True),
        (r"\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5}", "1", True),
        (r"\tan\frac{\pi}{8}", r"\sqrt2-1", True),
        (r"\log_2 8", "3", True),
        (r"\log 100", "2", True),
        (r"\ln 8", r"3\ln 2", True),
        (r"e^{i\pi}", "-1", True),
        ("n!", "n(n-1)!", True),
        (r"\cos 20^\circ\cos 40^\circ\cos 80^\circ", "1/8", True),
        (r"\sqrt{x^2}", "x", False),
        (r"\cot x", r"\tan x", False),
        (r"\sin 10^\circ", "0.17364817766693033", False),
        (r"\pi", r"\pi + 10^{-100}", False),
        (r"\frac{\pi}{2}", r"\arctan(10^{400})", None),
        (r"\ln 0", "7", None),
    ],
)
def test_equality_is_proved_or_left_open(left: str, right: str, equal: bool | None) -> None:
    """True and False are proved; what agrees to 60 digits and no more is left open."""
    assert prove(left, right) is equal


@pytest.mark.parametrize("text", ["9^{9^{9}}", "10^{9}!", r"(1+\sqrt2)^{10^{6}}", "2^{10^{9}}"])
def test_the_helper_has_size_guards_of_its_own(text: str) -> None:
    """What would never end is refused before sympy sees it, and the helper lives on."""
    assert prove("x + 1", "1 + x") is True
    pid = worker.helper_pid()
    with pytest.raises(TooLargeError):
        worker.prove_equal(read_expression(text), read_expression("7"), timeout_s=5.0)
    assert worker.helper_pid() == pid


def test_an_overrun_is_killed_and_collected_and_the_next_request_served() -> None:
    """Past its processor time the helper is gone at once, also as a zombie; a new one answers."""
    assert prove("x", "x") is True
    pid = worker.helper_pid()
    assert pid is not None
    with pytest.raises(TooLargeError):
        worker.prove_equal(SLOW, SLOW_TOO, timeout_s=0.2)
    assert worker.helper_pid() is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert worker.prove_equal(COT, QUOTIENT, timeout_s=5.0).equal is True


def test_a_helper_that_died_idle_is_replaced() -> None:
    """A helper killed by the machine between requests costs nothing but a new start."""
    assert prove("x", "x") is True
    first = worker.helper_pid()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert worker.prove_equal(COT, QUOTIENT, timeout_s=5.0).equal is True
    assert worker.helper_pid() != first


def test_a_helper_that_cannot_run_is_a_failure_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No verdict is made up where no helper can be started."""
    monkeypatch.setattr(worker, "PROGRAM", worker.PROGRAM.with_name("absent.py"))
    with pytest.raises(RuntimeFailure) as failure:
        prove("x", "x")
    assert failure.value.kind == "grader"


def test_a_helper_that_stands_still_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """C07 e: a helper that is stopped holds nobody up for long, and costs a new start."""
    monkeypatch.setattr(worker, "_LEAST_WALL_S", 0.3)
    assert prove("x", "x") is True
    first = worker.helper_pid()
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    assert worker.prove_equal(COT, QUOTIENT, timeout_s=1.0).equal is True
    assert worker.helper_pid() not in (None, first)


def test_helpers_that_stand_still_twice_are_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C07 e: nothing is known of an answer whose helper uses no processor and says nothing."""
    program = tmp_path / "sleeps.py"
    ready = b'{"why": "ready"}'
    frame = len(ready).to_bytes(4, "big") + ready
    program.write_text(f"import os, time\nos.write(1, {frame!r})\ntime.sleep(60)\n")
    worker.stop()
    monkeypatch.setattr(worker, "PROGRAM", program)
    monkeypatch.setattr(worker, "_LEAST_WALL_S", 0.2)
    with pytest.raises(RuntimeFailure, match="twice"):
        worker.prove_equal(COT, QUOTIENT, timeout_s=1e-2)
    assert worker.helper_pid() is None


def test_threads_share_one_helper() -> None:
    """Eight threads at once get right answers from one process."""
    found: list[bool | None] = []

    def ask(number: int) -> None:
        found.append(prove(rf"\sin^2 x + \cos^2 x + {number}", f"{number + number % 2} + 1"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [False] * 4 + [True] * 4
    assert worker.helper_pid() is not None


FORKED = """
import os, sys
from toolenvs.grading import worker
from toolenvs.grading.math import grade
pair = (r"\\\\cot x", r"\\\\frac{\\\\cos x}{\\\\sin x}")
assert grade(*pair).correct
first = worker.helper_pid()
child = os.fork()
if not child:
    ok = worker.helper_pid() is None and grade(*pair).correct and worker.helper_pid() != first
    print("child", worker.helper_pid(), flush=True)
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0
assert grade(*pair).correct and worker.helper_pid() == first
print("parent", first, flush=True)
if "die" in sys.argv:
    os._exit(0)
"""


@pytest.mark.parametrize("end", ["exit", "die"])
def test_a_fork_has_its_own_helper_and_no_helper_survives(end: str) -> None:
    """Parent and child each talk to their own helper; both are gone when the two are."""
    program = FORKED.replace("\\\\", "\\")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, end],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    pids = [int(line.split()[1]) for line in run.stdout.splitlines()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_an_idle_helper_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that nobody asks ends by itself."""
    monkeypatch.setattr(worker, "IDLE_S", 0.2)
    assert prove("x", "x") is True
    pid = worker.helper_pid()
    assert pid is not None
    ended, _ = os.waitpid(pid, 0)
    assert ended == pid
    assert prove("x", "x") is True


@pytest.mark.parametrize("death", ["os.abort()", "os.kill(os.getpid(), 11)", "sys.exit(3)"])
def test_a_helper_that_dies_at_its_start_is_the_machines_fault(
    death: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C07 e: before it was asked anything no answer can have killed it."""
    program = tmp_path / "dies.py"
    program.write_text(f"import os, sys\n{death}\n")
    worker.stop()
    monkeypatch.setattr(worker, "PROGRAM", program)
    with pytest.raises(RuntimeFailure, match="twice"):
        grade(r"\sin(x)^2 + \cos(x)^2", r"\tan(x)\cot(x)")
