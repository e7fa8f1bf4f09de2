"""The engine dies: nothing is left behind and no result is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.attack import PRELUDE
from tests.attacks.ground import below, lives, roots, wait_until
from tests.attacks.own_engine import OwnEngine, own_engine
from toolenvs import engine
from toolenvs.drivers import Sleep, run
from toolenvs.errors import RuntimeFailure
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Sandbox
from toolenvs.runtimes.docker import Docker
from toolenvs.testing import run_together

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def mortal_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    """An engine to kill."""
    with own_engine(monkeypatch) as own:
        yield own


async def outcome(sandbox: Sandbox, code: str) -> str:
    """What a call printed, or the kind of the machine's failure."""
    try:
        return (await sandbox.execute(code)).stdout
    except RuntimeFailure as failure:
        return failure.kind


@pytest.mark.parametrize("transport", ["socket", "stream"])
def test_a_killed_engine_leaves_nothing(mortal_engine: OwnEngine, transport: str) -> None:
    """Calls go on where they need no engine, and fail as the machine's fault where they do.

    The containers end by themselves, also those that only a stream through the engine held; once
    an engine is back, so does the work.
    """
    before = roots()
    runtime = Docker(transport=transport, sandboxes_per_worker=2)  # type: ignore[arg-type]
    pool = SandboxPool(runtime, max_workers=1)
    sandbox = run(pool.lease(seed=0, files={}))
    run(sandbox.execute(PRELUDE + "v = 41; background(lambda: time.sleep(999))"))
    processes = set[int]().union(*map(below, roots() - before))
    assert len(processes) > 2

    async def kill() -> str:
        await Sleep(0.5)
        mortal_engine.kill()
        return ""

    printed, _ = run_together([outcome(sandbox, "time.sleep(2); print(v + 1)"), kill()])
    assert printed == ("42\n" if transport == "socket" else "sandbox_died")
    later = run(outcome(sandbox, "print(v + 2)"))
    assert later == ("43\n" if transport == "socket" else "sandbox_died")
    run(pool.release(sandbox))
    if transport == "socket":  # else the worker is known to be dead
        pool.close()
        pool = SandboxPool(runtime, max_workers=1)
    wait_until(lambda: not any(lives(pid) for pid in processes), "some live on")
    with pytest.raises(RuntimeFailure):
        run(pool.lease(seed=0, files={}))
    mortal_engine.start()
    another = run(pool.lease(seed=0, files={}))
    assert run(another.execute("print(1)")).stdout == "1\n"
    run(pool.release(another))
    pool.close()
    with engine.connect() as docker:
        assert docker.leftovers() == []
