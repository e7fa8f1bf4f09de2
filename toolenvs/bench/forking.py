"""What it costs to continue one episode in eight ways."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from toolenvs.bench.interleave import clocked
from toolenvs.bench.ways import Payload, check_answer
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.pool import SandboxPool
from toolenvs.types import Task, ToolCall

BRANCHES = 8
_SETTLE_S = 0.15  # those of the round before still share pages while they die
_LOADED = Payload(
    name="load",
    code="import numpy as np\nloaded = np.ones(50 * 2**17)\nprint(loaded.nbytes)",
    expected=f"{50 << 20}",
)
_CHANGED = Payload(
    name="change", code="loaded[0] += 1\nprint(loaded[0], loaded[1])", expected="2.0 1.0"
)


def can_fork(pool: SandboxPool) -> bool:
    """Whether the pool's sandboxes can be forked; two are leased for a moment."""
    sandbox = run(pool.lease(seed=0, files={}))
    try:
        run(sandbox.execute("print(1)"))
        branch = run(pool.fork(sandbox))
        if branch is not None:
            run(pool.release(branch))
        return branch is not None
    finally:
        run(pool.release(sandbox))


def fork_eight(
    pool: SandboxPool, times: int, meter: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Fork an episode that holds an array of 50 MB.

    Args:
        pool: its worker holds nine sandboxes and nothing else.
        times: how often.
        meter: MB that the worker takes.

    Returns:
        Seconds of each ``fork(8)``, and MB that each branch of it added.
    """
    task = Task(id="bench", prompt="Run Python.", answer="0")
    env = ToolEnv(tasks=[task], tools=["python_session"], sandbox=pool)
    seconds, added = [], []
    with contextlib.closing(env):
        env.reset(seed=0)
        _call(env, _LOADED)
        for _ in range(times):
            branches: list[ToolEnv] = []
            time.sleep(_SETTLE_S)
            before = meter()
            seconds.append(clocked(lambda: branches.extend(env.fork(BRANCHES))))  # noqa: B023 - called at once
            added.append((meter() - before) / BRANCHES)
            for branch in branches:
                _call(branch, _CHANGED)
                branch.close()
    return seconds, added


def _call(env: ToolEnv, payload: Payload) -> None:
    info = env.act([ToolCall("python_session", {"code": payload.code})])[4]
    check_answer("fork", payload, str(info["results"][0]["data"].get("stdout", "")))
