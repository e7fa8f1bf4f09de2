"""Runtimes to test, each with one started worker for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.promises import missing
from toolenvs import runtimes
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.scripted import Scripted
from toolenvs.testing import CONTRACT_SCRIPT
from toolenvs.types import ExecResult

LOCAL = pytest.param("local", marks=pytest.mark.local)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)
DOCKER_STREAM = pytest.param("docker-stream", marks=pytest.mark.docker)
DOCKER_ALONE = pytest.param("docker-alone", marks=pytest.mark.docker)
DOCKER_RUNSC = pytest.param("docker-runsc", marks=[pytest.mark.docker, pytest.mark.runsc])
_DOCKERS: dict[str, dict[str, Any]] = {
    "docker-stream": {"transport": "stream"},
    "docker-runsc": {"oci_runtime": "runsc"},
}


class Leases:
    """A pool as one worker: many containers of one sandbox each, seen together."""

    def __init__(self, pool: SandboxPool, capacity: int) -> None:
        self.pool = pool
        self.capacity = capacity
        self.used = 0

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        if self.used >= self.capacity:
            raise RuntimeFailure("capacity", f"all {self.capacity} are in use")
        self.used += 1
        try:
            leased = await self.pool.lease(seed=seed, files=files, data=data, now=now)
            return _Leased(leased, self)
        except BaseException:
            self.used -= 1
            raise

    def healthy(self) -> bool:
        return not self.pool.closed

    async def stop(self) -> None:
        self.pool.close()


class _Leased:
    def __init__(self, sandbox: Sandbox, leases: Leases) -> None:
        self._sandbox = sandbox
        self._leases: Leases | None = leases

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        result = await self._sandbox.execute(code, timeout_s=timeout_s)
        if result.session_lost:  # it takes no place any more
            await self.stop()
        return result

    async def stop(self) -> None:
        leases, self._leases = self._leases, None
        if leases is not None:
            leases.used -= 1
            await leases.pool.release(self._sandbox)


class _Alone:
    """The container runtime at ``isolation="container"``, with a few containers as one worker."""

    name = "docker"

    def __init__(self, **options: Any) -> None:
        self._docker = Docker(isolation="container", **options)

    def fingerprint(self) -> str:
        return self._docker.fingerprint()

    async def start(self) -> Leases:
        pool = SandboxPool(self._docker, max_workers=3, prewarm=1)
        await pool.warm()
        return Leases(pool, 3)


def make_runtime(name: str, **options: Any) -> Runtime:
    """The runtime as a user makes it; ``scripted`` with the answers that the probes expect."""
    if name == "scripted":
        return Scripted(dict(CONTRACT_SCRIPT), capacity=4)
    if name == "docker-alone":
        return _Alone(**options)
    if name in _DOCKERS:
        return Docker(**_DOCKERS[name], **options)
    return runtimes.make(name, **options)


def start(runtime: Runtime) -> Worker:
    """Start a worker; skip where the machine cannot, fail where it was promised that it can."""
    try:
        return run(runtime.start())
    except RuntimeFailure as failure:
        if failure.kind in ("no_engine", "no_sandbox", "image_missing"):
            missing(runtime.name, f"{runtime.name}: {failure}")
        raise


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of what needs gVisor."""
    config.addinivalue_line("markers", "runsc: needs an engine that has the runtime runsc")


@pytest.fixture(scope="module")
def docker_runtime() -> Runtime:
    """The container runtime with its defaults."""
    return runtimes.make("docker")


@pytest.fixture(
    scope="module", params=["scripted", LOCAL, DOCKER, DOCKER_STREAM, DOCKER_ALONE, DOCKER_RUNSC]
)
def any_runtime(request: pytest.FixtureRequest) -> Runtime:
    """Every runtime in turn."""
    return make_runtime(request.param)


@pytest.fixture(scope="module")
def any_worker(any_runtime: Runtime) -> Iterator[Worker]:
    """A started worker of every runtime in turn."""
    worker = start(any_runtime)
    yield worker
    run(worker.stop())


@pytest.fixture(scope="module", params=[LOCAL, DOCKER, DOCKER_STREAM, DOCKER_ALONE, DOCKER_RUNSC])
def python_worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A started worker of every runtime that runs Python."""
    worker = start(make_runtime(request.param))
    yield worker
    run(worker.stop())
