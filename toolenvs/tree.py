"""Trees of rollouts: paths that share a beginning, forked where they part.

    leaves = play_tree(env, lambda so_far: sample(so_far), forks={0: 2, 3: 4})   # 2 * 4 paths
    [leaf.branch for leaf in leaves]      # ((0, 0), (3, 0)), ((0, 0), (3, 1)), ...

Each path is a whole trajectory with the shared steps in it, so it is read, scored and replayed as
any other; ``Trajectory.branch`` tells which paths share what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from toolenvs.env import MAX_BRANCHES, ToolEnv
from toolenvs.ranges import checked_whole
from toolenvs.types import Trajectory

if TYPE_CHECKING:
    from toolenvs.records import RunWriter

Act = Callable[[Trajectory], str]
"""Gives the next message for an episode so far: a ``str`` or ``Turn``."""


def play_tree(
    env: ToolEnv, act: Act, *, forks: Mapping[int, int], out: RunWriter | None = None
) -> list[Trajectory]:
    """Play the episode of ``env`` on, in several ways, each to its end.

    Args:
        env: an environment after ``reset``. It is left where its episode is forked first; without
            a fork it plays the one path itself. Its ``stats`` count what all paths did.
        act: who plays. It is given all that it may go by, so that each path is played for itself.
        forks: into how many ways every path parts, by the number of its steps so far: ``{2: 4}``
            parts into four after the second step. A path that ends earlier does not part.
        out: gets each path as it ends, in the order of the list.

    Returns:
        The paths, depth first.

    Raises:
        EpisodeOverError: No episode has begun.
        UsageError: A number of ways is below 1 or above ``MAX_BRANCHES``, or of steps below 0.
        RuntimeFailure: A fork's sandbox cannot be had; the paths that ended are in ``out``.
    """
    ways = {
        checked_whole("a key of forks", at): checked_whole(
            f"forks[{at}]", n, least=1, most=MAX_BRANCHES
        )
        for at, n in forks.items()
    }
    leaves = []
    for leaf in _paths(env, act, ways, forked_at=-1):
        if out is not None:
            out.write(leaf)
        leaves.append(leaf)
    return leaves


def _paths(
    env: ToolEnv, act: Act, ways: Mapping[int, int], *, forked_at: int
) -> Iterator[Trajectory]:
    """Play on from where ``env`` stands; it was itself forked after ``forked_at`` steps."""
    while not (so_far := env.episode.trajectory).ended:
        at = len(so_far.steps)
        if at in ways and at > forked_at:
            for _ in range(ways[at]):
                with closing(env.fork(1)[0]) as branch:
                    yield from _paths(branch, act, ways, forked_at=at)
                for name, value in branch.stats.items():
                    env.stats[name] += value
            return
        env.step(act(so_far))
    yield env.episode.trajectory
