"""Workers to attack, each with what it may leave behind in a place of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.ground import LIMITS, Ground
from tests.promises import missing
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Runtime
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.local import Local

KINDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("docker-R", marks=pytest.mark.docker),
    pytest.param("local", marks=pytest.mark.local),
    pytest.param("runsc", marks=[pytest.mark.docker, pytest.mark.runsc]),
]


def make_runtime(kind: str) -> Runtime:
    """A runtime with little room, so that attacks reach its limits soon."""
    if kind == "local":
        return Local(LIMITS, capacity=4)
    return Docker(
        level="R" if kind == "docker-R" else "U",
        limits=LIMITS,
        sandboxes_per_worker=4,
        memory_bytes=1 << 30,
        oci_runtime="runsc" if kind == "runsc" else "",
    )


def open_ground(kind: str) -> Ground:
    """Start a worker to attack; skip where the machine cannot, unless it was promised."""
    try:
        return Ground(make_runtime(kind))
    except RuntimeFailure as failure:
        if failure.kind == "no_sandbox":
            missing(kind.partition("-")[0], f"{kind}: {failure}")
        raise


@pytest.fixture(scope="package")
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for temporary files, to see that none is left."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("tmp"))
    yield Path(tempfile.tempdir)
    tempfile.tempdir = before


@pytest.fixture(scope="package", params=KINDS)
def ground(request: pytest.FixtureRequest, own_folder: Path) -> Iterator[Ground]:
    """One worker for all attacks that must not break a worker, which is all of them."""
    mounts = Path("/proc/self/mountinfo").read_text().count("toolenvs")
    ground = open_ground(request.param)
    yield ground
    ground.close()
    assert list(own_folder.iterdir()) == []
    assert Path("/proc/self/mountinfo").read_text().count("toolenvs") <= mounts
