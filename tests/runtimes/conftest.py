"""Runtimes to test, each with one started worker for a module's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from toolenvs import runtimes
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Runtime, Worker
from toolenvs.runtimes.scripted import Scripted
from toolenvs.testing import CONTRACT_SCRIPT

LOCAL = pytest.param("local", marks=pytest.mark.local)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)


def make_runtime(name: str) -> Runtime:
    """The runtime as a user makes it; ``scripted`` with the answers that the probes expect."""
    if name == "scripted":
        return Scripted(dict(CONTRACT_SCRIPT), capacity=4)
    return runtimes.make(name)


def start(runtime: Runtime) -> Worker:
    """Start a worker; skip where the machine cannot, fail where it was promised that it can."""
    try:
        return run(runtime.start())
    except RuntimeFailure as failure:
        if os.environ.get(f"TOOLENVS_REQUIRE_{runtime.name.upper()}") == "1":
            raise
        if failure.kind in ("no_engine", "no_sandbox", "image_missing"):
            pytest.skip(f"{runtime.name}: {failure}")
        raise


@pytest.fixture(scope="module")
def docker_runtime() -> Runtime:
    """The container runtime with its defaults."""
    return runtimes.make("docker")


@pytest.fixture(scope="module", params=["scripted", LOCAL, DOCKER])
def any_runtime(request: pytest.FixtureRequest) -> Runtime:
    """Every runtime in turn."""
    return make_runtime(request.param)


@pytest.fixture(scope="module")
def any_worker(any_runtime: Runtime) -> Iterator[Worker]:
    """A started worker of every runtime in turn."""
    worker = start(any_runtime)
    yield worker
    run(worker.stop())


@pytest.fixture(scope="module", params=[LOCAL, DOCKER])
def python_worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A started worker of every runtime that runs Python."""
    worker = start(make_runtime(request.param))
    yield worker
    run(worker.stop())
