"""Forks that cost little: a child that Python does not know of, and sleepers without memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from toolenvs.supervisor import system

_LOAD = f"""
    import importlib.util, os, random, signal, sys, threading, time
    spec = importlib.util.spec_from_file_location("system", {system.__file__!r})
    system = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(system)
"""


def run_alone(program: str) -> str:
    """What a program prints that runs in an interpreter of its own, beside ``system``."""
    code = textwrap.dedent(_LOAD) + textwrap.dedent(program)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("attempt", range(8))
def test_a_sleeper_lives_and_holds_next_to_nothing(attempt: int) -> None:
    """Wherever the kernel has put the libraries, and whatever its maker does afterwards."""
    program = """
        heap = [bytes(1000) for _ in range(5000)]
        system.travel_light()
        sleepers = [system.clone_asleep(0) for _ in range(5)]
        heap = [bytes(1000) for _ in range(5000)]
        time.sleep(0.05)
        for pid in sleepers:
            with open(f"/proc/{pid}/smaps_rollup") as told:
                facts = dict(line.split(":", 1) for line in told if "Private_Dirty" in line)
            assert int(facts["Private_Dirty"].split()[0]) < 400, facts
            os.kill(pid, signal.SIGKILL)
            assert os.waitpid(pid, 0) == (pid, signal.SIGKILL)
        print("all lived")
    """
    assert run_alone(program) == "all lived\n"


def test_a_sleepers_stack_is_its_own_wherever_it_lies() -> None:
    """Also where the kernel has joined it to large mappings beside it."""
    program = """
        import mmap
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        system._stack = mmap.mmap(-1, 64 * mmap.PAGESIZE, kind)  # as if joined to its neighbours
        system.travel_light()
        pid = system.clone_asleep(0)
        time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0) == (pid, signal.SIGKILL)
        print("lived")
    """
    assert run_alone(program) == "lived\n"


def test_a_fork_that_python_does_not_know_of_is_a_whole_interpreter() -> None:
    """It collects, raises, starts threads, forks as usual, and calls what waits for such forks."""
    program = """
        os.register_at_fork(after_in_child=lambda: print("forked", flush=True))
        pid = system.fork()
        if pid == 0:
            heard = []
            thread = threading.Thread(target=heard.append, args=(os.getpid(),))
            thread.start()
            thread.join()
            assert heard == [os.getpid()] != [os.getppid()]
            if os.fork() == 0:
                os._exit(3)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
            os._exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    """
    assert run_alone(program) == "forked\n"
