"""``ToolEnv``: a task family as a ``gymnasium.Env`` whose actions and observations are texts."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import gymnasium as gym
import msgspec

from toolenvs import formats
from toolenvs.dealer import Dealer
from toolenvs.drivers import run
from toolenvs.episode import Budgets, Episode
from toolenvs.errors import EpisodeOverError, RuntimeFailure, UnknownNameError, UsageError
from toolenvs.families import FAMILIES
from toolenvs.info import step_info
from toolenvs.playback import COUNTS, Mode
from toolenvs.pool import SandboxPool
from toolenvs.pools import Pools
from toolenvs.protocols import Runtime, Tool, ToolFormat
from toolenvs.ranges import checked_whole
from toolenvs.rubric import Rubric, make_rubric
from toolenvs.settings import CachePlace, ReplaySetting, describe_rubric, describe_setup
from toolenvs.spaces import Unicode
from toolenvs.staging import Staging
from toolenvs.tasks import Draw, TaskSampler, TaskSpec, load_tasks, resources_of
from toolenvs.toolbox import Toolbox
from toolenvs.types import Step, ToolCall, ToolSpec

StepTuple = tuple[str, float, bool, bool, dict[str, Any]]

MAX_BRANCHES = 1024
"""Of one ``fork``."""

_COUNTS = ("episodes", "steps", "calls", "failures", "restarts", "step_s", *COUNTS)


class ToolEnv(gym.Env[str, str]):
    """One agent, one task at a time, real tools.

    An action is the model's own message (``str`` or ``Turn``); the observation is the text that
    goes back to it. Rewards are decomposed: ``info["reward_terms"]`` sum to the reward, the rewards
    of an episode to its score. ``terminated`` means that the agent submitted, ``truncated`` that
    turns, sizes, ``finish`` or the machine ended the episode.

    Construction starts nothing; the sandbox pool starts in ``reset`` and is shared by all
    environments of the process with the same sandbox settings.

    Args:
        family: ``"math_tir"``, ``"sql"`` or ``"search"``.
        tasks: a source such as ``"gsm8k:PATH"``, a ``TaskSource`` or a list of ``Task``: see
            ``load_tasks``; the family's own small tasks when empty.
        tools: names or ``Tool`` objects; the family's own when None.
        tool_options: keyword options by tool name, such as ``{"python": {"timeout_s": 2}}``; also
            of the tools that only private calls use, such as ``{"sql_rows": {"timeout_s": 60}}``.
        sandbox: ``"docker"``, ``"local"``, ``"auto"`` (docker where an engine answers, else local),
            a ``Runtime``, or a ``SandboxPool`` that the caller keeps and closes.
        sandbox_options: keyword options of the sandbox's runtime.
        runtimes: what else tools need and how to have it, by ``needs``: a ``Runtime`` or keyword
            options, such as ``{"index": {"backend": "bm25"}}`` or
            ``{"service:postgres": {"url": "postgresql://..."}}``; the tasks' source says the rest.
        format: a format's name or a ``ToolFormat``. format_options: its keyword options.
        rewards: a preset's name, a rubric as a mapping, or a ``Rubric``.
        replay: ``"off"``, ``"record"``, ``"auto"`` (serve what was recorded in the same state, else
            run and record), ``"replay"`` (a miss raises ``CacheMissError``; no sandbox is started)
            or ``"verify"`` (run, compare, and count differences in ``stats``).
        cache: where results are, for all modes but off: ``"sqlite:///FILE"``,
            ``"postgresql://USER@HOST/NAME"``, the path of a SQLite file, or a ``ReplayCache``
            that the caller keeps.
        share_external: serve results of the outside world (tools of kind ``external``) to other
            episodes too.
        max_turns, max_calls, max_obs_tokens, max_turn_tokens, max_episode_tokens: see ``Budgets``.
        tokenizer: size of a text in tokens; UTF-8 bytes when None.
        group: samples of one task, with one sandbox seed, before the next task.
        shuffle, rank, world, split: see ``TaskSampler``.
        reveal_gold: put the gold answer into ``info["gold"]`` once the episode is over.
        render_mode: ``"ansi"`` or None.

    Raises:
        UsageError: A setting has no meaning; the message says what is allowed.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as Env declares it

    def __init__(
        self,
        family: str = "math_tir",
        *,
        tasks: TaskSpec = "",
        tools: Sequence[str | Tool] | None = None,
        tool_options: Mapping[str, Mapping[str, Any]] | None = None,
        sandbox: str | Runtime | SandboxPool = "auto",
        sandbox_options: Mapping[str, Any] | None = None,
        runtimes: Mapping[str, Runtime | Mapping[str, Any]] | None = None,
        format: str | ToolFormat = "",  # noqa: A002 - the name of the setting
        format_options: Mapping[str, Any] | None = None,
        rewards: str | Mapping[str, Any] | Rubric = "",
        replay: Mode = "off",
        cache: CachePlace = "",
        share_external: bool = False,
        max_turns: int = 10,
        max_calls: int = 16,
        max_obs_tokens: int = 20_000,
        max_turn_tokens: int = -1,
        max_episode_tokens: int = -1,
        tokenizer: Callable[[str], int] | None = None,
        group: int = 1,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        split: str | tuple[float, float] = "",
        reveal_gold: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if family not in FAMILIES:
            raise UnknownNameError("a task family", family, FAMILIES)
        if render_mode not in (None, "ansi"):
            raise UnknownNameError("a render mode", render_mode, ["ansi"])
        preset = FAMILIES[family]
        self.family, self.render_mode = family, render_mode
        self.observation_space, self.action_space = Unicode(), Unicode()
        toolbox = Toolbox(preset, tools, tool_options or {})
        self.tools = toolbox.own
        self.format = _make_format(format or preset.format, format_options or {})
        self.rubric = make_rubric(rewards or preset.rewards)
        self.source = load_tasks(tasks, family=family)
        self.budgets = Budgets(
            max_turns=max_turns,
            max_calls=max_calls,
            max_obs_tokens=max_obs_tokens,
            max_turn_tokens=max_turn_tokens,
            max_episode_tokens=max_episode_tokens,
        )
        self.stats: dict[str, float] = dict.fromkeys(_COUNTS, 0.0)
        self._staging = Staging(
            toolbox,
            Pools(sandbox, sandbox_options, runtimes=runtimes, resources=resources_of(self.source)),
            ReplaySetting(replay, cache, share_external=share_external),
            counts=self.stats,
        )
        self._specs = toolbox.specs
        sampler = TaskSampler(
            self.source, group=group, shuffle=shuffle, rank=rank, world=world, split=split
        )
        self._dealer = Dealer(sampler)
        self._tokenizer = tokenizer
        self._setup = describe_setup(
            family=family,
            format=self.format,
            format_options=(format_options or {}) if isinstance(format, str) else None,
            tools=self.tools,
            tool_options=toolbox.options,
            specs=self._specs,
            budgets=self.budgets,
            tokenizer=tokenizer,
        )
        self._reveal = reveal_gold
        self._episode: Episode | None = None
        self._begun = 0  # episodes, for schedules of the rubric

    # -- the gymnasium contract ---------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin the next episode.

        Args:
            seed: the same seed gives the same task in any process; without one the environment
                goes on through a shuffled epoch of its own.
            options: ``task_id`` (a text, or an int for the row) chooses the task and wins over the
                seed; ``group`` (int n): the next n - 1 resets without seed and options play the
                same task with the same sandbox seed; ``sandbox_seed`` and ``sample`` (ints)
                override the draw's.

        Returns:
            The tools' description and the prompt as one text, and info.

        Raises:
            RuntimeFailure: No sandbox can be started here; the message says what to do.
            UnknownNameError: No task has that id.
        """
        return run(self.areset(seed=seed, options=options))

    def step(self, action: str) -> StepTuple:
        """Take one message of the model; see ``Turn`` for what else a sampler may tell.

        Raises:
            EpisodeOverError: The episode has ended, or none has begun.
        """
        return run(self.astep(action))

    def close(self) -> None:
        """End the episode's sandboxes and this environment's shares of the pools."""
        run(self.aclose())

    def render(self) -> str | None:
        """The episode so far as readable text, for ``render_mode="ansi"``."""
        if self.render_mode is None:
            return None
        if self._episode is None:
            return ""
        trajectory = self._episode.trajectory
        turns = (f"[agent]\n{s.action}\n\n[tools]\n{s.observation}" for s in trajectory.steps)
        return "\n\n".join([f"[prompt]\n{trajectory.prompt}", *turns])

    # -- what code that knows more uses ---------------------------------

    async def areset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """``reset`` as a coroutine for ``drivers.Loop``."""
        super().reset(seed=seed)
        draw = self._dealer.deal(self.np_random, seed=seed, options=options or {})
        if self._episode is not None:
            await self._episode.close()
            self._episode = None
        try:
            self._episode = await self._begin(draw)
        except RuntimeFailure as failure:
            if failure.kind == "data":  # this task's alone: the next reset has another
                self._dealer.taken()
            raise
        self._dealer.taken()
        self.stats["episodes"] += 1
        return self._episode.trajectory.prompt, self._info(None)

    async def astep(self, action: str) -> StepTuple:
        """``step`` as a coroutine for ``drivers.Loop``."""
        self.check_action(action)
        return await self._take(self.episode.step(action))

    def act(self, calls: Sequence[ToolCall]) -> StepTuple:
        """Take calls that are structured already; returns what ``step`` returns."""
        return run(self._take(self.episode.act(calls)))

    def finish(self, reason: str) -> StepTuple:
        """End an episode that the trainer gives up, so that terminal terms settle."""
        return run(self.afinish(reason))

    async def afinish(self, reason: str) -> StepTuple:
        """``finish`` as a coroutine for ``drivers.Loop``."""
        return await self._take(self.episode.finish(reason))

    async def afail(self, kind: str) -> StepTuple:
        """End an episode that a machine keeps from going on, such as the sampler's: unscored.

        Without an episode, since none could begin, this is a step that belongs to none.

        Args:
            kind: what failed, as in ``RuntimeFailure.kind``.
        """
        if self._episode is not None and not self._episode.trajectory.ended:
            return await self._take(self._episode.fail(kind))
        self._dealer.taken()
        self.stats["failures"] += 1
        unpaid = dict.fromkeys(self.rubric.names, 0.0)
        step = Step(action="", terms=unpaid, truncated=True, end_reason="failure", failure=kind)
        return "", 0.0, False, True, self._info(step)

    async def aclose(self) -> None:
        """``close`` as a coroutine for ``drivers.Loop``."""
        episode, self._episode = self._episode, None
        try:
            if episode is not None:
                await episode.close()
        finally:
            self._staging.close()

    def check_action(self, action: object) -> None:
        """Refuse what is no text; a text of a model's is never refused, however long.

        Raises:
            UsageError: The message tells what was given and what is allowed.
        """
        if not isinstance(action, str):
            raise UsageError(f"an action is a text (str or Turn), not {type(action).__name__}.")

    def fork(self, n: int) -> list[ToolEnv]:
        """Continue this episode's state in ``n`` further environments, each independent.

        Where the sandbox can be forked, each has a fork of it at once, and with it a place of the
        pool: ``close`` those that are not needed. Where it cannot, a branch leases a sandbox at its
        first call and plays the earlier stateful calls again; the results are the same.

        Each branch's trajectory says where it left this one: see ``Trajectory.branch``.

        Args:
            n: how many, 0 to ``MAX_BRANCHES``.

        Raises:
            EpisodeOverError: No episode has begun.
            UsageError: ``n`` is no such number.
            RuntimeFailure: A branch's sandbox cannot be had; then none is left open.
        """
        return run(self.afork(n))

    async def afork(self, n: int) -> list[ToolEnv]:
        """``fork`` as a coroutine for ``drivers.Loop``."""
        n = checked_whole("fork: n", n, most=MAX_BRANCHES)
        branches: list[ToolEnv] = []
        async with AsyncExitStack() as undone:
            for _ in range(n):
                branches.append(await self._twin())
                undone.push_async_callback(branches[-1].aclose)
            undone.pop_all()
        return branches

    @property
    def episode(self) -> Episode:
        """The episode at hand.

        Raises:
            EpisodeOverError: ``reset`` was not called yet.
        """
        if self._episode is None:
            raise EpisodeOverError("no episode has begun: call reset() first.")
        return self._episode

    @property
    def stop(self) -> list[str]:
        """Strings at which a sampler should stop."""
        return list(self.format.stop)

    @property
    def sandbox_name(self) -> str:
        """The kind of sandbox in use; before the first ``reset``, the one asked for."""
        return self._staging.pools.sandbox_name

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the agent is told of the tools."""
        return tuple(self._specs)

    def tool_specs(self) -> list[dict[str, Any]]:
        """The tools in OpenAI's schema: a list of ``{"type": "function", "function": {...}}``."""
        return [{"type": "function", "function": msgspec.to_builtins(spec)} for spec in self._specs]

    # -- inside ---------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """A copy has the settings, the place in the stream of tasks, and no episode."""
        return {**self.__dict__, "_episode": None}

    async def _begin(self, draw: Draw) -> Episode:
        runtimes = await self._staging.make_ready(draw.task)
        rubric = self.rubric.at(self._begun)
        executor, referee = self._staging.executors(draw.task, draw.sandbox_seed, draw.sample)
        self._begun += 1
        return Episode(
            draw.task,
            specs=self._specs,
            format=self.format,
            rubric=rubric,
            executor=executor,
            referee=referee,
            budgets=self.budgets,
            tokenizer=self._tokenizer,
            seed=draw.sandbox_seed,
            sample=draw.sample,
            settings={**self._setup, **describe_rubric(rubric), "runtimes": runtimes},
        )

    async def _twin(self) -> ToolEnv:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.stats = dict.fromkeys(self.stats, 0.0)
        twin._dealer = self._dealer.twin()
        twin._np_random = copy.deepcopy(self._np_random)
        twin._staging = self._staging.twin(twin.stats)
        async with AsyncExitStack() as undone:
            undone.callback(twin._staging.close)
            twin._episode = await twin._staging.branch(self.episode)
            undone.pop_all()
        return twin

    async def _take(self, step: Any) -> StepTuple:
        began, restarts = time.perf_counter(), self.episode.restarts
        done: Step = await step
        self.stats["steps"] += 1
        self.stats["calls"] += len(done.calls)
        self.stats["failures"] += bool(done.failure)
        self.stats["restarts"] += self.episode.restarts - restarts
        self.stats["step_s"] += time.perf_counter() - began
        if done.terminated or done.truncated:
            await self.episode.close()
        return done.observation, done.reward, done.terminated, done.truncated, self._info(done)

    def _info(self, step: Step | None) -> dict[str, Any]:
        return step_info(
            self._episode,
            step,
            rubric=self.rubric,
            replay=self._staging.replay.mode,
            reveal_gold=self._reveal,
        )


def _make_format(chosen: str | ToolFormat, options: Mapping[str, Any]) -> ToolFormat:
    return formats.make(chosen, **options) if isinstance(chosen, str) else chosen
