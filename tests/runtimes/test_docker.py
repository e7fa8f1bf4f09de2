"""The docker runtime: what its containers are, and what is left when anything dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from toolenvs import engine, images
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import Loop, run
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.runtimes.docker import Docker
from toolenvs.testing import fresh
from toolenvs.types import Limits

pytestmark = pytest.mark.docker
Transport = Literal["auto", "socket", "stream"]
TRANSPORTS: list[Transport] = ["socket", "stream"]


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


def test_each_worker_has_user_ids_of_its_own() -> None:
    """Process limits count by user id over all containers, so no two workers share one."""
    workers = [run(Docker(level="U", sandboxes_per_worker=1).start()) for _ in range(2)]
    try:
        ids = {output_of(worker, "import os; print(os.getuid())") for worker in workers}
    finally:
        for worker in workers:
            run(worker.stop())
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


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_removed_container_is_the_machines_fault(transport: Transport) -> None:
    """C07 c: the sandbox fails, the worker is unhealthy, and the pool replaces it."""
    pool = SandboxPool(Docker(sandboxes_per_worker=2, transport=transport), max_workers=1)
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


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_killed_client_leaves_no_container(transport: Transport) -> None:
    """C03 e: SIGKILL to the client ends the supervisor, and the engine removes the container."""
    program = (
        "import time\n"
        "from toolenvs.drivers import run\n"
        "from toolenvs.engine.owner import owner_labels\n"
        "from toolenvs.runtimes.docker import Docker\n"
        f"worker = run(Docker(sandboxes_per_worker=1, transport={transport!r}).start())\n"
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

    def _command(self, *arguments: object) -> tuple[str, ...]:
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


def relay_of(worker: ChannelWorker) -> int:
    """The process of the relay beside this client, 0 if there is none."""
    relay = worker._end.__self__._relay  # type: ignore[union-attr]
    return relay._process.pid if relay else 0


def test_a_client_that_shares_no_socket_is_reached_by_the_stream() -> None:
    """``auto`` takes the socket where it leads to the client, else the attached stream."""

    class Elsewhere(Docker):
        def _spec_for(self, *arguments: Any) -> ContainerSpec:
            *others, folder = arguments
            spec: Callable[..., ContainerSpec] = super()._spec_for
            return spec(*others, self.changed(folder) if folder else None)

        def changed(self, folder: Path) -> Path:
            return folder.parent  # as where the engine has another folder of that name

    class Nowhere(Elsewhere):
        def changed(self, folder: Path) -> Path:
            return folder / "not here"  # as where the engine has none

    for kind, streams in ((Docker, False), (Elsewhere, True), (Nowhere, True)):
        worker = run(kind(sandboxes_per_worker=1, spares=0).start())
        assert (relay_of(worker) > 0) == streams, kind
        assert output_of(worker, "print(1)") == "1"
        run(worker.stop())


def test_a_dead_relay_is_a_failure_of_all_its_sandboxes() -> None:
    """Calls that run fail at once, and the container goes."""
    before = ours()
    worker = run(Docker(sandboxes_per_worker=2, transport="stream").start())
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(2)]
    killing = threading.Timer(0.3, os.kill, (relay_of(worker), signal.SIGKILL))
    killing.start()
    with pytest.raises(RuntimeFailure) as caught:
        run(sandboxes[0].execute("while True: pass"))
    assert caught.value.kind == "sandbox_died"
    with pytest.raises(RuntimeFailure):
        run(sandboxes[1].execute("print(1)"))
    assert not worker.healthy()
    wait_until(lambda: ours() == before)
    run(worker.stop())


def test_threads_may_share_a_streaming_worker() -> None:
    """Spawning, running and stopping from many threads mixes nothing up."""
    worker = run(Docker(sandboxes_per_worker=6, transport="stream").start())
    outputs: dict[int, list[str]] = {n: [] for n in range(worker.capacity)}

    def play(number: int) -> None:
        for turn in range(5):
            code = f"print({number} * 1000 + {turn}, 'x' * {number * 9000})"
            outputs[number].append(run(fresh(worker, code)).stdout)

    threads = [threading.Thread(target=play, args=(n,)) for n in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, found in outputs.items():
        assert found == [f"{number * 1000 + turn} {'x' * (number * 9000)}\n" for turn in range(5)]
    run(worker.stop())


def test_options_that_mean_nothing_are_refused() -> None:
    """Each message names the option, the value and what is allowed."""
    with pytest.raises(UsageError, match="isolation is 'vm'"):
        Docker(isolation="vm")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="transport is 'pigeon'; it is one of auto, socket"):
        Docker(transport="pigeon")  # type: ignore[arg-type]
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
