"""Isolation levels of containers: what each shows to code, and which one is taken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolenvs import engine, images
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.engine import ContainerSpec
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes import _levels as levels
from toolenvs.runtimes._levels import LEVELS, filter_of_calls, strongest_level, what_holds
from toolenvs.runtimes._uids import UidRange
from toolenvs.runtimes.docker import Docker
from toolenvs.testing import CONTRACT_PROBES, PYTHON_PROBES, Probe, fresh

pytestmark = pytest.mark.docker


def engine_allows(name: str) -> bool:
    """Whether containers of that level work here."""
    if LEVELS[name].root:
        return True  # with any engine
    image = images.ensure_image("python").id
    uids = UidRange(remapped=False)
    with engine.connect() as docker:
        allowed = levels._works(docker, image, "", LEVELS[name], uids.first)
    uids.close()
    return allowed


@pytest.fixture(scope="module", params=["U", "N", "R"])
def worker(request: pytest.FixtureRequest) -> Iterator[ChannelWorker]:
    """A container at each level that the engine allows."""
    if not engine_allows(request.param):
        pytest.skip(f"the engine does not allow level {request.param}")
    started = run(Docker(level=request.param, sandboxes_per_worker=4).start())
    yield started
    run(started.stop())


@pytest.mark.parametrize("probe", [*CONTRACT_PROBES, *PYTHON_PROBES], ids=lambda p: p.__name__)
def test_every_level_keeps_the_promises(worker: ChannelWorker, probe: Probe) -> None:
    """The promise is the probe's docstring."""
    run(probe(worker))


def test_every_sandbox_sees_the_same_place(worker: ChannelWorker) -> None:
    """Folder, user and process number do not tell one sandbox from another, but at level U."""
    if worker.hello["level"] == "U":
        pytest.skip("each has a user and a folder of its own")
    code = "import os; print(os.getcwd(), os.getuid(), os.getgid(), os.getpid())"
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(3)]
    seen = {run(sandbox.execute(code)).stdout for sandbox in sandboxes}
    assert seen == {"/work 1000 1000 2\n"}
    for sandbox in sandboxes:
        run(sandbox.stop())


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's processes are looked at")
def test_no_process_of_the_container_is_root() -> None:
    """At level R each is one ordinary user of the machine, and may gain no capability of it."""
    if not engine_allows("R"):
        pytest.skip("the engine does not allow level R")
    before = {item.id for item in engine.leftovers() if item.mine}
    worker = run(Docker(level="R", sandboxes_per_worker=2).start())
    assert run(fresh(worker, "print(1)")).stdout == "1\n"
    (container,) = {item.id for item in engine.leftovers() if item.mine} - before
    with engine.connect() as docker:
        first = docker.state(container).pid
        facts = docker._client.api.inspect_container(container)
    assert facts["HostConfig"]["CapAdd"] in (None, [])
    status = Path(f"/proc/{first}/status").read_text()
    uid = int(re.findall(r"Uid:\s+(\d+)", status)[0])
    assert uid >= 2_000
    assert "NoNewPrivs:\t1" in status
    run(worker.stop())


def test_the_strongest_level_falls_back_to_user_ids() -> None:
    """Where the engine refuses the others, ``"auto"`` is level U; where it does not, R."""
    image = images.ensure_image("python").id
    assert strongest_level(image, "no-such-runtime", remapped=False).name == "U"
    expected = next(n for n in ("R", "N", "U") if n == "U" or engine_allows(n))
    assert strongest_level(image, "", remapped=False).name == expected
    assert Docker().allowed_level().name == expected


def test_the_fingerprint_follows_the_level() -> None:
    """What code sees depends on the level, so recorded results do."""
    assert Docker(level="R").fingerprint() != Docker(level="U").fingerprint()
    same: Any = Docker().allowed_level().name
    assert Docker().fingerprint() == Docker(level=same).fingerprint()


def test_a_level_that_is_none_is_refused() -> None:
    """The message names what is allowed."""
    with pytest.raises(UsageError, match="level is 'X'; it is one of R, N, U, auto"):
        Docker(level="X")  # type: ignore[arg-type]


def test_a_level_that_the_engine_forbids_is_a_failure_not_a_weaker_one() -> None:
    """Asked for by name it is that level or none; the container's own words tell why."""

    class Forbidding(Docker):
        def _spec_for(self, *arguments: object) -> ContainerSpec:
            spec = super()._spec_for(*arguments)  # type: ignore[arg-type]
            return msgspec.structs.replace(spec, seccomp="", capabilities=())

    with pytest.raises(RuntimeFailure, match="not permitted"):
        run(Forbidding(level="R").start())


def test_what_holds_is_said_in_a_line() -> None:
    """Level, filter and Landlock, or their absence; nothing where a worker does not tell."""
    assert what_holds({"level": "U", "landlock": 7}).startswith("level U: own user id")
    assert "no Landlock" in what_holds({"level": "R", "landlock": 0})
    assert "no control group" in what_holds({"level": "namespaces", "landlock": 7})
    assert what_holds({}) == ""


def test_the_engine_s_filter_still_lets_a_supervisor_work() -> None:
    """It refuses what children are refused, but not what makes namespaces."""
    text = filter_of_calls()
    assert '"ptrace"' in text
    assert '"unshare"' not in text
