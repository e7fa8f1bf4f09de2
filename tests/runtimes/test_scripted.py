"""Canned results: what tests of everything else stand on."""

from __future__ import annotations

import pytest

from toolenvs import runtimes
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes.scripted import Scripted, ScriptedSandbox
from toolenvs.types import ExecResult


def spawn(runtime: Scripted, seed: int = 0) -> ScriptedSandbox:
    """A sandbox on a worker of its own."""
    return run(run(runtime.start()).spawn(seed=seed, files={"a": "b"}))


def test_results_are_looked_up_by_the_code() -> None:
    """A text is the output of good code, a result is given as it is, an exception is raised."""
    slow = ExecResult(status="timeout")
    runtime = Scripted({"a": "1\n", "b": slow, "c": ValueError("c")}, default="?")
    assert run(spawn(runtime).execute("a")) == ExecResult(status="ok", stdout="1\n")
    assert run(spawn(runtime).execute("b")) is slow
    assert run(spawn(runtime).execute("z")).stdout == "?"
    with pytest.raises(ValueError, match="c"):
        run(spawn(runtime).execute("c"))


def test_code_without_a_result_is_an_error_that_names_the_nearest() -> None:
    """A test that runs other code than it planned hears of it."""
    with pytest.raises(UsageError, match=r"'print\(2\)'. Did you mean 'print\(1\)'"):
        run(spawn(Scripted({"print(1)": ""})).execute("print(2)"))


def test_calls_are_recorded_with_what_the_sandbox_was_given() -> None:
    """``calls`` holds code, seed, files and time limit of each call, also of those that fail."""
    runtime = Scripted(default="", failures={2: RuntimeFailure("sandbox_died", "x")})
    run(spawn(runtime, seed=3).execute("a", timeout_s=2.0))
    with pytest.raises(RuntimeFailure):
        run(spawn(runtime).execute("b"))
    assert [call.code for call in runtime.calls] == ["a", "b"]
    assert runtime.calls[0][1:] == (3, {"a": "b"}, 2.0, ())


def test_the_nth_call_fails_and_ends_its_sandbox() -> None:
    """An injected failure looks like the machine's; other sandboxes go on."""
    runtime = Scripted(default="ok", failures={1: RuntimeFailure("sandbox_died", "x")})
    worker = run(runtime.start())
    first, second = (run(worker.spawn(seed=0, files={})) for _ in range(2))
    for _ in range(2):
        with pytest.raises(RuntimeFailure):
            run(first.execute("a"))
    assert run(second.execute("a")).stdout == "ok"


def test_a_worker_that_dies_takes_its_sandboxes_along() -> None:
    """``die`` is what a killed container looks like."""
    runtime = Scripted(default="")
    sandbox = spawn(runtime)
    runtime.workers[0].die()
    assert not runtime.workers[0].healthy()
    with pytest.raises(RuntimeFailure):
        run(sandbox.execute("a"))


def test_a_lost_session_is_over() -> None:
    """After a result that says so the sandbox refuses, as a real one does."""
    sandbox = spawn(Scripted({"a": ExecResult(status="killed", signal=9, session_lost=True)}))
    run(sandbox.execute("a"))
    with pytest.raises(RuntimeFailure):
        run(sandbox.execute("a"))


def test_the_fingerprint_is_the_script() -> None:
    """Equal scripts have equal fingerprints, other scripts others."""
    assert Scripted({"a": "1"}).fingerprint() == Scripted({"a": "1"}).fingerprint()
    assert Scripted({"a": "1"}).fingerprint() != Scripted({"a": "2"}).fingerprint()
    assert runtimes.make("scripted", script={"a": "1"}).fingerprint().startswith("scripted")
