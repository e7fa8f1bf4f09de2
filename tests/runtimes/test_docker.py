"""The docker runtime: what its containers are, and what is left when anything dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from toolenvs import engine, images
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import Loop, run
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.runtimes.docker import Docker
from toolenvs.types import Limits

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def worker() -> Iterator[ChannelWorker]:
    """A container that the module's tests share."""
    started = run(Docker(sandboxes_per_worker=4, limits={"timeout_s": 5.0}).start())
    yield started
    run(started.stop())


def ours() -> set[str]:
    """Ids of the containers that this process has started."""
    return {item.id for item in engine.leftovers() if item.mine}


def wait_until(true: Callable[[], bool]) -> None:
    """Poll, with a generous limit."""
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def output_of(worker: ChannelWorker, code: str) -> str:
    """What code prints in a sandbox of its own."""
    sandbox = run(worker.spawn(seed=0, files={}))
    try:
        result = run(sandbox.execute(code))
    finally:
        run(sandbox.stop())
    assert result.status == "ok", result
    return result.stdout.strip()


def test_code_runs_as_nobody_in_a_closed_place(worker: ChannelWorker) -> None:
    """No root, no capability, no network, a folder of its own and nothing else to write to."""
    code = """
import os, socket
def fails(f):
    try:
        f()
    except OSError:
        return True
    return False
print(os.getuid() != 0, fails(lambda: os.setuid(0)), fails(lambda: os.chroot(".")),
      fails(lambda: socket.create_connection(("1.1.1.1", 53), 1)),
      fails(lambda: open("/opt/x", "w")), fails(lambda: open("/tmp/x", "w")))
size = open("mine", "w").write("x")
"""
    assert output_of(worker, code) == "True True True True True True"


def test_each_worker_has_user_ids_of_its_own(worker: ChannelWorker) -> None:
    """Process limits count by user id over all containers, so no two workers share one."""
    other = run(Docker(sandboxes_per_worker=1).start())
    try:
        ids = {output_of(w, "import os; print(os.getuid())") for w in (worker, other)}
    finally:
        run(other.stop())
    assert len(ids) == 2


def test_nothing_is_left_after_stop() -> None:
    """The container and the folder of its socket are gone; twice is harmless."""
    before = ours()
    started = run(Docker(sandboxes_per_worker=2).start())
    assert len(ours() - before) == 1
    run(started.stop())
    run(started.stop())
    assert ours() == before
    assert not started.healthy()


def test_a_removed_container_is_the_machines_fault() -> None:
    """C07 c: the sandbox fails, the worker is unhealthy, and the pool replaces it."""
    pool = SandboxPool(Docker(sandboxes_per_worker=2), max_workers=1)
    before = ours()
    sandbox = run(pool.lease(seed=0, files={}))
    (container,) = ours() - before
    with engine.connect() as docker:
        docker.remove(container)
    with pytest.raises(RuntimeFailure) as caught:
        run(sandbox.execute("print(1)"))
    assert caught.value.kind == "sandbox_died"
    run(pool.release(sandbox))
    fresh = run(pool.lease(seed=0, files={}))
    assert run(fresh.execute("print(1)")).stdout == "1\n"
    pool.close()
    assert ours() == before


def test_a_killed_client_leaves_no_container() -> None:
    """C03 e: SIGKILL to the client ends the supervisor, and the engine removes the container."""
    program = (
        "import time\n"
        "from toolenvs.drivers import run\n"
        "from toolenvs.engine.owner import owner_labels\n"
        "from toolenvs.runtimes.docker import Docker\n"
        "worker = run(Docker(sandboxes_per_worker=1).start())\n"
        "sandbox = run(worker.spawn(seed=0, files={}))\n"
        "print('ready', flush=True)\n"
        "run(sandbox.execute('while True: pass'))\n"
    )
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    mark = f".{client.pid}."
    assert any(mark in owner for owner in owners())
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    wait_until(lambda: not any(mark in owner for owner in owners()))


def owners() -> list[str]:
    """The owner labels of all containers."""
    with engine.connect() as docker:
        found = docker._client.api.containers(all=True, filters={"label": engine.LABEL})
    return [item["Labels"][engine.LABEL] for item in found]


def test_many_workers_start_at_once_under_the_loop() -> None:
    """Starts overlap and do not disturb each other."""
    loop = Loop()
    outcomes: list[ChannelWorker | BaseException | None] = []
    runtime = Docker(sandboxes_per_worker=1, spares=0)
    for _ in range(2):
        loop.spawn(runtime.start(), lambda value, error: outcomes.append(error or value))
    give_up = time.monotonic() + 120
    while len(outcomes) < 2:
        assert time.monotonic() < give_up
        loop.pump(0.1)
    for started in outcomes:
        assert isinstance(started, ChannelWorker)
        assert output_of(started, "print(2)") == "2"
        run(started.stop())
    loop.close()


def test_a_start_that_is_given_up_leaves_no_container() -> None:
    """Closing the loop in the middle of a start removes what the start made."""
    before = ours()
    loop = Loop()
    loop.spawn(Docker(sandboxes_per_worker=1).start(), lambda value, error: None)
    loop.pump(0.05)
    loop.close()
    wait_until(lambda: ours() == before)


def test_the_fingerprint_follows_image_and_limits() -> None:
    """Equal settings give an equal fingerprint, other limits another."""
    first, same = Docker(), Docker(limits=Limits())
    assert first.fingerprint() == same.fingerprint()
    assert Docker(limits={"timeout_s": 1.0}).fingerprint() != first.fingerprint()
    by_id = Docker(image=images.ensure_image("python").id)
    assert by_id.fingerprint() != first.fingerprint()


class OtherProgram(Docker):
    """Starts another program than the supervisor."""

    program: tuple[str, ...] = ()

    def _command(self, number: int, first_uid: int) -> tuple[str, ...]:
        return self.program


def test_a_container_that_ends_at_once_is_noticed_at_once() -> None:
    """Its own words are passed on, without waiting for the time limit."""
    runtime = OtherProgram(start_timeout_s=600)
    runtime.program = ("python3", "-c", "import nothing_of_the_kind")
    with pytest.raises(RuntimeFailure, match="nothing_of_the_kind") as caught:
        run(runtime.start())
    assert caught.value.kind == "start"


def test_a_client_that_cannot_be_reached_is_told_so() -> None:
    """A container that runs but never connects: kind ``transport``, and what to do instead."""
    runtime = OtherProgram(start_timeout_s=1.5)
    runtime.program = ("sleep", "600")
    before = ours()
    with pytest.raises(RuntimeFailure, match="unix socket") as caught:
        run(runtime.start())
    assert caught.value.kind == "transport"
    assert ours() == before


def test_options_that_mean_nothing_are_refused() -> None:
    """Each message names the option, the value and what is allowed."""
    with pytest.raises(UsageError, match="isolation is 'vm'"):
        Docker(isolation="vm")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="sandboxes_per_worker is 0"):
        Docker(sandboxes_per_worker=0)
    with pytest.raises(UnknownNameError, match="'timeout_s'"):
        Docker(limits={"timeout": 3})
    with pytest.raises(UsageError, match="limits"):
        Docker(limits={"timeout_s": "long"})
    with pytest.raises(RuntimeFailure, match="there/is-none:1"):
        run(Docker(image="there/is-none:1").start())


def test_a_container_of_its_own_holds_one_sandbox() -> None:
    """``isolation="container"`` gives each sandbox a container."""
    pool = SandboxPool(Docker(isolation="container"), max_workers=2)
    before = ours()
    leased = [run(pool.lease(seed=0, files={})) for _ in range(2)]
    assert len(ours() - before) == 2
    for sandbox in leased:
        run(pool.release(sandbox))
    pool.close()
    assert ours() == before
