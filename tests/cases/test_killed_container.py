"""A container that is killed under a running episode: the episode goes on, or is never scored."""

from __future__ import annotations

import pytest

from tests.test_env import TASKS, answer, python
from toolenvs import ToolEnv, engine
from toolenvs.policies import Gold
from toolenvs.rollout import plan_jobs, run_episodes
from toolenvs.summary import EpisodeSummary
from toolenvs.tasks import load_tasks


def kill_ours() -> int:
    """Kill this process's containers; returns how many."""
    connected = engine.connect()
    ours = [left for left in connected.leftovers() if left.mine]
    for left in ours:
        connected.kill(left.id)
    return len(ours)


@pytest.mark.docker
def test_C07_an_episode_goes_on_in_a_fresh_container() -> None:
    """C07 c: the same observations as if nothing had died, and the answer is paid."""

    def play(*, kill: bool) -> list[str]:
        env = ToolEnv(tasks=TASKS, sandbox="docker", tools=["python_session", "submit"])
        env.reset(seed=0, options={"task_id": "t1"})
        seen = [env.step(python("import random\nx = random.random()", "python_session"))[0]]
        if kill:
            assert kill_ours() == 1
        seen.append(env.step(python("print(x)", "python_session"))[0])
        _, _, terminated, _, info = env.step(answer("2"))
        assert (terminated, info["failure"]) == (True, "")
        assert env.stats["restarts"] == (1.0 if kill else 0.0)
        env.close()
        return seen

    assert play(kill=True) == play(kill=False)


@pytest.mark.docker
def test_C07_a_rollout_whose_container_is_killed_is_never_scored_wrong() -> None:
    """C07 c: under a gold rollout each episode ends right, or failed without a score."""
    source = load_tasks("generated:seed=1,n=24", family="math_tir")
    killed: list[int] = []

    def progress(_: EpisodeSummary) -> None:
        if not killed:
            killed.append(kill_ours())

    episodes = run_episodes(
        lambda: ToolEnv(tasks=source, sandbox="docker"),
        Gold(),
        plan_jobs(source),
        envs=4,
        progress=progress,
    ).episodes
    assert killed[0] >= 1
    assert len(episodes) == 24
    assert all(one.failure or one.right for one in episodes)
    assert sum(not one.failure for one in episodes) >= 20
