"""What an environment's episodes run on: its tools, the runtimes they need, and the replay mode."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from toolenvs.episode import Episode
from toolenvs.executor import Executor
from toolenvs.freshness import Watch
from toolenvs.playback import Playback
from toolenvs.pools import Pools
from toolenvs.settings import ReplaySetting
from toolenvs.toolbox import Toolbox
from toolenvs.types import Branch, Task


class Staging:
    """Makes ready what episodes need, and the executors that run their calls.

    Args:
        toolbox: the tools.
        pools: the runtimes that they need; closed here.
        replay: the replay mode; closed here.
        counts: where the replay counts, see ``playback.COUNTS``.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        pools: Pools,
        replay: ReplaySetting,
        *,
        counts: MutableMapping[str, float],
    ) -> None:
        self.toolbox = toolbox
        self.pools = pools
        self.replay = replay
        self._counts = counts
        self._playback: Playback | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the settings and nothing that runs."""
        return {**self.__dict__, "_playback": None}

    async def make_ready(self, task: Task) -> dict[str, Any]:
        """Start what calls of this task need, unless the cache may spare it.

        Returns:
            The facts of each runtime that the results depend on, by what tools ``need``.

        Raises:
            RuntimeFailure: Something cannot be started here; the message says what to do.
        """
        own, private = (
            {tool.needs for tool in self.toolbox.bound(task, self.pools, whose).values()}
            for whose in ("agent", "referee")
        )
        await self.pools.make_ready(own, self.replay, private=private)
        if self._playback is None:
            self._playback = self._make_playback()
        return {needs: self.pools.facts[needs] for needs in sorted(own | private) if needs}

    def executors(
        self,
        task: Task,
        seed: int,
        sample: int,
        *,
        branch: Branch = (),
        like: Executor | None = None,
    ) -> tuple[Executor, Executor]:
        """What runs the agent's calls of one episode, and what runs the private ones of rewards.

        Args:
            task: the task.
            seed: the sandbox seed.
            sample: number of the attempt in its group.
            branch: the episode's path, if it is a fork's.
            like: runs the agent's calls of the episode that it was forked from.
        """
        agent = self._executor(task, seed, sample, "agent", branch, like)
        return agent, self._executor(task, seed, sample, "referee", branch)

    async def branch(self, episode: Episode) -> Episode:
        """A second episode that goes on from where one stands, on forks of its sandboxes.

        Raises:
            RuntimeFailure: A fork cannot be had; then none is left.
        """
        begun = episode.trajectory
        executor, referee = self.executors(
            begun.task,
            begun.seed,
            begun.sample,
            branch=episode.next_branch,
            like=episode.executor,
        )
        async with AsyncExitStack() as undone:
            undone.push_async_callback(executor.close)
            await executor.fork_from(episode.executor)
            branch = episode.fork(executor, referee)
            undone.pop_all()
        return branch

    def twin(self, counts: MutableMapping[str, float]) -> Staging:
        """The same for a second environment, with shares of its own in the pools."""
        twin = Staging(self.toolbox, self.pools.twin(), self.replay.twin(), counts=counts)
        with ExitStack() as undone:
            undone.callback(twin.close)
            twin._playback = twin._make_playback()
            undone.pop_all()
        return twin

    def close(self) -> None:
        """End the shares in the pools and let go of the cache. Twice is harmless."""
        self._playback = None
        with ExitStack() as rest:  # whatever one of them raises, both are closed
            rest.callback(self.replay.close)
            rest.callback(self.pools.close)

    # -- inside ---------------------------------

    def _make_playback(self) -> Playback | None:
        return self.replay.playback(runtimes=self.pools.facts, counts=self._counts)

    def _executor(
        self,
        task: Task,
        seed: int,
        sample: int,
        whose: str,
        branch: Branch,
        like: Executor | None = None,
    ) -> Executor:
        tools = self.toolbox.bound(task, self.pools, whose)
        handles = self.pools.all_for({tool.needs for tool in tools.values()}, whose)
        watch: Watch | None = None
        if task.database is not None and task.database.needs in handles:
            watch = Watch(task.database, handles[task.database.needs].runtime)
        # A branch has a name of its own: its calls of the outside world are not its origin's.
        path = "".join(f" {steps}.{number}" for steps, number in branch)
        return Executor(
            tools,
            task=task,
            sandboxes=handles,
            seed=seed,
            playback=self._playback,
            episode=f"{task.id} {seed} {sample} {whose}{path}",
            private=whose == "referee",
            like=like,
            watch=watch,
        )
