"""Trees of rollouts: paths that share a beginning, each recorded as a trajectory of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeRuntime
from tests.test_replay import COUNT, RAISE, TASK, call
from toolenvs.env import ToolEnv
from toolenvs.errors import EpisodeOverError, UsageError
from toolenvs.records import RunWriter, read_trajectories
from toolenvs.replay import replay_run
from toolenvs.tree import play_tree
from toolenvs.types import Trajectory


def act(so_far: Trajectory) -> str:
    """Count, and raise in odd branches; submit at the fourth step."""
    if len(so_far.steps) == 3:
        return call("submit", answer="1")
    odd = bool(so_far.branch) and so_far.branch[-1][1] % 2
    return RAISE if odd else COUNT


def make_env(runtime: FakeRuntime | None = None) -> ToolEnv:
    """An environment in which an episode has begun."""
    tools = ["python_session", "submit"]
    env = ToolEnv(tasks=[TASK], tools=tools, sandbox=runtime or FakeRuntime())
    env.reset(seed=1)
    return env


def test_a_tree_is_recorded_as_paths_that_share_their_beginning(tmp_path: Path) -> None:
    """Each says where it branched, holds the shared steps, and replays to the byte."""
    runtime = FakeRuntime()
    env = make_env(runtime)
    with RunWriter(tmp_path, {"policy": "odd"}) as run:
        leaves = play_tree(env, act, forks={1: 2, 2: 3}, out=run)
    assert list(read_trajectories(tmp_path)) == leaves
    expected = [((1, first), (2, second)) for first in range(2) for second in range(3)]
    assert [leaf.branch for leaf in leaves] == expected
    assert [leaf.steps[:1] for leaf in leaves] == [env.episode.trajectory.steps] * 6
    assert len({str(leaf.steps[:2]) for leaf in leaves}) == 2
    assert len({str(leaf.steps) for leaf in leaves}) == 4
    report = replay_run(tmp_path)
    assert (report.episodes, report.identical) == (6, 6)
    assert replay_run(tmp_path, live=FakeRuntime()).clean
    assert env.episode.trajectory.branch == ()
    assert env.stats["steps"] == 1 + sum(1 for _ in range(2)) + sum(
        len(leaf.steps) - 2 for leaf in leaves
    )
    assert len([one for one in runtime.sandboxes if not one.stopped]) == 1  # the origin's
    env.close()


def test_without_a_fork_the_one_path_is_played() -> None:
    """As the environment itself would, unmarked; a fork that no path reaches is none."""
    env = make_env()
    (leaf,) = play_tree(env, act, forks={9: 2})
    assert leaf == env.episode.trajectory
    assert (leaf.branch, leaf.ended) == ((), True)
    env.close()


def test_branches_of_one_fork_are_numbered_on() -> None:
    """However many forks it took; the origin stays unmarked, a branch counts its own."""
    env = make_env()
    branches = [*env.fork(2), *env.fork(1)]
    assert [one.episode.trajectory.branch for one in branches] == [((0, n),) for n in range(3)]
    (inner,) = branches[2].fork(1)
    assert inner.episode.trajectory.branch == ((0, 2), (0, 0))
    env.step(COUNT)
    (later,) = env.fork(1)
    marks = [later.episode.trajectory.branch]
    later.reset()
    marks.append(later.episode.trajectory.branch)
    assert marks == [((1, 0),), ()]
    for one in (env, *branches, inner, later):
        one.close()


@pytest.mark.parametrize("at", [-1, "0", True])
def test_a_place_that_no_path_comes_to_is_refused(at: Any) -> None:
    """It would part nothing, in silence."""
    env = make_env()
    with pytest.raises(UsageError, match="a key of forks="):
        play_tree(env, act, forks={at: 2})
    env.close()


@pytest.mark.parametrize("ways", [0, -1, True, 2.0, 10**6])
def test_a_number_of_ways_without_meaning_is_refused(ways: int) -> None:
    """Before anything is played."""
    env = make_env()
    with pytest.raises(UsageError, match=r"forks\[1\]="):
        play_tree(env, act, forks={1: ways})
    assert env.episode.trajectory.steps == ()
    env.close()
    with pytest.raises(EpisodeOverError):
        play_tree(ToolEnv(tasks=[TASK], sandbox=FakeRuntime()), act, forks={})
