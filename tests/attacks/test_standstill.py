"""A worker that stands still: no call pays for time in which it could not run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.attacks.ground import below, roots
from toolenvs import engine
from toolenvs.drivers import Blocking, Sleep, run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Runtime, Sandbox
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.local import Local
from toolenvs.testing import run_together
from toolenvs.types import ExecResult, Limits

LIMITS = Limits(timeout_s=1.0, backstop=2.0)
STANDS_S = 2.5  # longer than a call may take by either of its clocks
Freeze = Callable[[bool], None]


def make_runtime(kind: str) -> Runtime:
    """A runtime whose calls have little time."""
    if kind == "local":
        return Local(LIMITS, capacity=2)
    return Docker(
        limits=LIMITS,
        sandboxes_per_worker=2,
        transport="stream" if kind == "docker-stream" else "socket",
    )


def _signal_all(root: int, stand: bool) -> None:
    for pid in sorted(below(root)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if stand else signal.SIGCONT)


def _containers() -> set[str]:
    with contextlib.suppress(RuntimeFailure), engine.connect() as docker:
        return {item.id for item in docker.leftovers() if item.mine}
    return set()


def _pause(container: str, stand: bool) -> None:
    with engine.connect() as docker:
        act = docker._client.api.pause if stand else docker._client.api.unpause
        act(container)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("docker-stream", marks=pytest.mark.docker),
        pytest.param("local", marks=pytest.mark.local),
    ],
)
def standing(request: pytest.FixtureRequest) -> Iterator[tuple[Sandbox, Freeze]]:
    """A sandbox, and what makes its worker stand still and go on."""
    before, containers = roots(), _containers()
    worker = run(make_runtime(request.param).start())
    if request.param == "local":
        (root,) = roots() - before
        act = partial(_signal_all, root)
    else:
        (container,) = _containers() - containers
        act = partial(_pause, container)
    yield run(worker.spawn(seed=0, files={})), act
    run(worker.stop())


async def hold(freeze: Freeze, *, after_s: float) -> None:
    """Let the worker stand still once, a while from now."""
    await Sleep(after_s)
    await Blocking(partial(freeze, True))
    await Sleep(STANDS_S)
    await Blocking(partial(freeze, False))


def call_during(sandbox: Sandbox, code: str, freeze: Freeze, *, after_s: float) -> ExecResult:
    """Run a call during which the worker stands still."""
    ended: list[ExecResult] = []

    async def call() -> None:
        ended.append(await sandbox.execute(code))

    run_together([call(), hold(freeze, after_s=after_s)])
    return ended[0]


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.3])
def test_a_call_does_not_pay_for_a_standstill(
    standing: tuple[Sandbox, Freeze], after_s: float
) -> None:
    """Paused for longer than its time and its backstop, a call goes on and ends right."""
    sandbox, freeze = standing
    result = call_during(
        sandbox, "import time; time.sleep(0.4); print('on')", freeze, after_s=after_s
    )
    assert (result.status, result.stdout) == ("ok", "on\n"), result
    assert result.wall_s >= STANDS_S / 2


def test_what_is_out_of_time_is_so_after_a_standstill(standing: tuple[Sandbox, Freeze]) -> None:
    """A standstill gives no more time than it took: an endless loop ends as ever."""
    sandbox, freeze = standing
    result = call_during(sandbox, "while True: pass", freeze, after_s=0.2)
    assert result.status == "timeout"
    assert run(sandbox.execute("print('after')")).stdout == "after\n"
