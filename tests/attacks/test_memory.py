"""Memory that runs out: each sandbox answers for its own, and for nobody else's."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.ground import LIMITS, roots
from toolenvs import Task, ToolCall, ToolEnv
from toolenvs.drivers import Sleep, run
from toolenvs.errors import RuntimeFailure
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Sandbox
from toolenvs.runtimes.docker import Docker
from toolenvs.testing import fresh, run_together
from toolenvs.types import ExecResult

HOLD = "b = b'x' * ({0} << 20); import time; time.sleep({1}); print(len(b) >> 20)"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a container's processes are not ours")


def small_docker(*, capacity: int, memory_bytes: int) -> Docker:
    """Containers in which sandboxes of 256 MB soon have no room."""
    return Docker(limits=LIMITS, sandboxes_per_worker=capacity, memory_bytes=memory_bytes)


async def outcome(sandbox: Sandbox, code: str) -> ExecResult | str:
    """What a call gave, or the kind of the machine's failure."""
    try:
        return await sandbox.execute(code)
    except RuntimeFailure as failure:
        return failure.kind


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does not run."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def kernel_kills(root: int) -> int:
    """How often the kernel has killed in a container for lack of memory."""
    for line in Path(f"/proc/{root}/cgroup").read_text().splitlines():
        number, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(",") or number == "0":
            top = Path("/sys/fs/cgroup/memory" if kinds else "/sys/fs/cgroup") / path.lstrip("/")
            for name in ("memory.oom_control", "memory.events"):
                with contextlib.suppress(OSError):
                    words = (top / name).read_text().split()
                    return int(words[words.index("oom_kill") + 1])
    raise AssertionError("the container has no control group of memory")


@pytest.mark.docker
def test_those_within_their_limits_never_answer_for_a_full_container() -> None:
    """Eight that want 200 of 256 MB each where 1 GB is there: it is right or the machine's fault.

    Some must go, since all want it at the same time; each of these is a failure of the machine. A
    victim that holds little goes on, and so does the worker.
    """
    worker = run(small_docker(capacity=9, memory_bytes=1 << 30).start())
    victim = run(worker.spawn(seed=0, files={}))
    run(victim.execute("v = 41"))
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(8)]
    ends = run_together([outcome(sandbox, HOLD.format(200, 2)) for sandbox in sandboxes])
    failed = [end for end in ends if end == "memory"]
    right = [end for end in ends if not isinstance(end, str)]
    assert len(failed) + len(right) == 8, ends
    assert failed
    assert right
    assert {(end.status, end.stdout) for end in right} == {("ok", "200\n")}
    assert run(victim.execute("print(v + 1)")).stdout == "42\n"
    assert worker.healthy()
    assert run(fresh(worker, HOLD.format(200, 0))).stdout == "200\n"
    run(worker.stop())


@pytest.mark.docker
def test_an_episode_whose_container_was_full_goes_on() -> None:
    """A session that was ended for others' memory is brought up to date in a new sandbox."""
    pool = SandboxPool(small_docker(capacity=5, memory_bytes=640 << 20), max_workers=1)
    env = ToolEnv(
        tasks=[Task(id="t", prompt="?", answer="1")],
        sandbox=pool,
        tools=["python_session", "submit"],
    )
    env.reset(seed=0)

    def step(code: str) -> tuple[str, str]:
        call = env.format.compose([ToolCall("python_session", {"code": code})])
        observation, _, _, _, info = env.step(call)
        return str(observation), info["failure"]

    step("kept = 'as it was'; b = b'x' * (230 << 20)")
    others = [run(pool.lease(seed=n, files={})) for n in range(3)]
    ends = run_together([outcome(other, HOLD.format(150, 0)) for other in others])
    assert all(end == "memory" or end.stdout == "150\n" for end in ends), ends  # type: ignore[union-attr]
    for other in others:
        run(pool.release(other))
    observation, failure = step("print(kept)")
    assert "as it was" in observation
    assert not failure
    assert env.episode.restarts or "memory" in ends  # mostly the largest goes, and that is it
    env.close()
    pool.close()


@pytest.mark.docker
@needs_root
def test_the_kernels_choice_is_the_machines_fault() -> None:
    """Should the kernel be faster than the supervisor, whom it kills within its limit is not to
    blame, and neither the others nor a later death are taken for it.
    """
    before = roots()
    worker = run(small_docker(capacity=5, memory_bytes=512 << 20).start())
    (root,) = roots() - before
    victim = run(worker.spawn(seed=0, files={}))
    run(victim.execute("v = 41"))
    sandboxes = [run(worker.spawn(seed=n, files={})) for n in range(3)]

    async def blind() -> str:
        """The supervisor sees nothing until the kernel has acted."""
        with stopped(root):
            for _ in range(1000):
                await Sleep(0.02)
                if kernel_kills(root):
                    break
        return ""

    calls = [outcome(sandbox, HOLD.format(170, 3)) for sandbox in sandboxes]
    *ends, _ = run_together([*calls, blind()])
    assert kernel_kills(root) > 0
    assert "memory" in ends
    others = [end for end in ends if not isinstance(end, str)]
    assert {(end.status, end.stdout) for end in others} <= {("ok", "170\n")}, ends
    assert run(victim.execute("print(v + 1)")).stdout == "42\n"
    killed = run(fresh(worker, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert killed.status == "killed"
    run(worker.stop())


@pytest.mark.docker
@needs_root
def test_a_process_that_the_kernel_has_killed_spoils_no_result() -> None:
    """Code that goes on after the kernel has killed its helper gives no result, but a failure."""
    before = roots()
    worker = run(small_docker(capacity=6, memory_bytes=448 << 20).start())
    (root,) = roots() - before
    holders = [run(worker.spawn(seed=0, files={})) for _ in range(3)]
    victim = run(worker.spawn(seed=0, files={}))
    run(victim.execute("v = 41"))
    for holder in holders:  # together more, each less than the helper
        run(holder.execute("b = b'x' * (80 << 20)"))
    helper = run(worker.spawn(seed=0, files={}))
    code = (
        "import os, time\npid = os.fork()\nif not pid:\n    b = b'x' * (239 << 20); time.sleep(9)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )

    async def blind() -> str:
        with stopped(root):
            for _ in range(1000):
                await Sleep(0.02)
                if kernel_kills(root):
                    break
            await Sleep(0.5)
        return ""

    end, _ = run_together([outcome(helper, code), blind()])
    assert end == "memory"
    for sandbox, code in [(victim, "print(v + 1)"), *((h, "print(len(b) >> 20)") for h in holders)]:
        assert run(sandbox.execute(code)).stdout in ("42\n", "80\n")
    run(worker.stop())
