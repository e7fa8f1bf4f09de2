"""What code sees depends on task and seed, not on the sandbox, its place or the day."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.runtimes.conftest import DOCKER, LOCAL, make_runtime, start
from toolenvs.determinism import check_determinism
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.pool import SandboxPool
from toolenvs.types import Task, ToolCall

TASKS = [Task(id="t", prompt="p", answer="1", now="2024-06-15T12:00:00Z")]
LOOK = """
import datetime, os, random, tempfile, time, uuid
class A: pass
print(datetime.datetime.now(), datetime.date.today(), time.time(), time.ctime(), uuid.uuid1())
print(os.getcwd(), tempfile.mkdtemp(), os.getuid(), random.random(), os.urandom(4), uuid.uuid4())
print([A(), A()], A, map(str, []))
raise ValueError(A())
"""
CLOCK = "print(datetime.datetime.now(), time.time())"


@pytest.fixture(scope="module", params=[LOCAL, DOCKER])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """One worker of each runtime."""
    runtime = make_runtime(request.param)
    worker = start(runtime)
    level = getattr(worker, "hello", {}).get("level")
    run(worker.stop())
    if level == "U":
        pytest.skip("the engine allows level U only, where folders differ")
    with closing(SandboxPool(runtime)) as made:
        yield made


def begun(pool: SandboxPool, **options: Any) -> ToolEnv:
    """An environment in its first episode."""
    env = ToolEnv(
        tasks=TASKS, tools=["python", "python_session", "submit"], sandbox=pool, **options
    )
    env.reset(options={"task_id": 0, "sandbox_seed": 5})
    return env


def said(env: ToolEnv, code: str, tool: str = "python_session") -> str:
    """What the agent reads of one call."""
    info = env.act([ToolCall(tool, {"code": code})])[4]
    assert info["failure"] == ""
    return str(info["results"][0]["text"])


def test_equal_calls_read_the_same_in_every_sandbox(pool: SandboxPool) -> None:
    """Fresh or kept, one beside the other; the clock is the task's, goes on, and forks with it."""
    with closing(begun(pool)) as one, closing(begun(pool)) as other:
        first = said(one, LOOK)
        assert first.startswith("2024-06-15 12:00:00 2024-06-15 1718452800.002 Sat Jun 15")
        assert "[<__main__.A object at 0x1>, <__main__.A object at 0x2>]" in first
        assert [said(other, LOOK), said(one, LOOK, "python"), said(one, LOOK, "python")] == [
            first
        ] * 3
        branches = one.fork(2)
        told = {said(env, CLOCK) for env in (one, other, *branches)}
        for branch in branches:
            branch.close()
        assert len(told) == 1
        assert told.pop().startswith("2024-06-15 12:00:00")


def test_a_served_call_that_shows_its_place_is_caught_up_with(
    pool: SandboxPool, tmp_path: Any
) -> None:
    """Cached and uncached episodes are equal, whichever place of the worker each has."""
    cached = {"replay": "auto", "cache": f"sqlite:///{tmp_path / 'cache.db'}"}
    with closing(begun(pool)) as plain:
        wanted = [said(plain, LOOK), said(plain, CLOCK)]
    with closing(begun(pool, **cached)) as first:
        assert said(first, LOOK) == wanted[0]
        with closing(begun(pool, **cached)) as second:
            assert [said(second, LOOK), said(second, CLOCK)] == wanted
            assert second.stats["cache_hits"] == second.stats["caught_up"] == 1


@pytest.mark.docker
def test_at_level_u_a_served_call_never_makes_an_episode_diverge(tmp_path: Any) -> None:
    """Each sandbox there has a folder of its own: a result that tells it is run again."""
    runtime = make_runtime("docker", level="U", sandboxes_per_worker=4)
    run(start(runtime).stop())
    cached: dict[str, Any] = {"replay": "auto", "cache": f"sqlite:///{tmp_path / 'cache.db'}"}
    with closing(SandboxPool(runtime)) as pool:
        envs = [begun(pool, **cached) for _ in range(3)]
        folders = {said(env, "import os; x = 5; print(os.getcwd())") for env in envs}
        assert len(folders) == 3
        assert {said(env, "print(x)") for env in envs} == {"5"}
        for env in envs:
            env.close()


PLANTED = {
    "clock": "import time; print(time.time())",
    "addresses": "print(id([]), hex(id([])))",
    "order": (
        "class N:\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __repr__(self): return f'N{self.n}'\n"
        "import time\n"
        "keep = [bytearray(time.time_ns() % 4000) for _ in range(time.time_ns() % 97)]\n"
        "print({N(i) for i in range(40)})"
    ),
    "numbers": "import time; print(time.perf_counter())",
    "none": "class A: pass\nprint(A(), [A(), print], sorted({'b', 'a'}), {'x', 'y', 'z'})",
}


@pytest.mark.local
def test_planted_differences_are_named_by_their_kind() -> None:
    """``check determinism`` tells what varies, and takes nothing for varying that does not."""
    start_or_skip = start(make_runtime("local"))
    run(start_or_skip.stop())
    tasks = [
        Task(
            id=kind,
            prompt="p",
            answer="1",
            gold_calls=({"name": "python", "arguments": {"code": code}},),
        )
        for kind, code in PLANTED.items()
    ]
    report = check_determinism("math_tir", tasks=tasks, sandbox="local", repeats=3)
    assert {one.task_id: one.kind for one in report.first} == {
        kind: kind for kind in PLANTED if kind != "none"
    }
