"""Every runtime keeps the promises of ``toolenvs.testing``."""

from __future__ import annotations

import pytest

from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.runtimes.scripted import Scripted
from toolenvs.testing import (
    CONTRACT_PROBES,
    CONTRACT_SCRIPT,
    PYTHON_PROBES,
    RUNTIME_PROBES,
    Probe,
    RuntimeProbe,
    check_sandbox,
)

from .conftest import start

NOT_HELD = {
    ("docker-runsc", "disk_is_limited"): "gVisor does not limit the number of files",
    ("docker-runsc", "nothing_is_reached"): "gVisor has no Landlock: /proc/1/environ can be read",
}


@pytest.mark.parametrize("probe", CONTRACT_PROBES, ids=lambda probe: probe.__name__)
def test_every_runtime_keeps_the_contract(any_worker: Worker, probe: Probe) -> None:
    """The promise is the probe's docstring."""
    run(probe(any_worker))


@pytest.mark.parametrize("probe", RUNTIME_PROBES, ids=lambda probe: probe.__name__)
def test_every_runtime_starts_and_stops(any_runtime: Runtime, probe: RuntimeProbe) -> None:
    """The promise is the probe's docstring."""
    run(start(any_runtime).stop())
    run(probe(any_runtime))


@pytest.mark.parametrize("probe", PYTHON_PROBES, ids=lambda probe: probe.__name__)
def test_every_python_runtime_keeps_the_promises(
    python_worker: Worker, probe: Probe, request: pytest.FixtureRequest
) -> None:
    """The promise is the probe's docstring; what is known not to hold must not hold by accident."""
    reason = NOT_HELD.get((request.node.callspec.params["python_worker"], probe.__name__))
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    run(probe(python_worker))


def test_runtimes_are_what_the_protocols_say(any_runtime: Runtime, any_worker: Worker) -> None:
    """A runtime, its workers and their sandboxes have every member of their protocols."""
    assert isinstance(any_runtime, Runtime)
    assert isinstance(any_worker, Worker)
    sandbox = run(any_worker.spawn(seed=0, files={}))
    assert isinstance(sandbox, Sandbox)
    run(sandbox.stop())


def test_the_suite_finds_a_broken_promise() -> None:
    """``check_sandbox`` passes a runtime that keeps the contract and names what one breaks."""
    good = Scripted(dict(CONTRACT_SCRIPT), capacity=2)
    check_sandbox(good, python=False)
    liar = Scripted(dict(CONTRACT_SCRIPT) | {"print(6 * 7)": "43\n"}, capacity=2)
    with pytest.raises(AssertionError, match="code_runs: Code runs and its output comes back"):
        check_sandbox(liar, python=False)


def test_no_suite_passes_a_runtime_that_cannot_start() -> None:
    """A failure of the machine is not turned into a broken promise."""

    class Broken(Scripted):
        async def start(self) -> Worker:  # type: ignore[override]
            raise RuntimeFailure("no_sandbox", "nothing here")

    with pytest.raises(RuntimeFailure, match="nothing here"):
        check_sandbox(Broken(), python=False)
