"""``ToolEnv``: a task family as a ``gymnasium.Env`` whose actions and observations are texts."""

from __future__ import annotations

import copy
import logging
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import gymnasium as gym
import msgspec

from toolenvs import formats
from toolenvs.cache import ReplayCache
from toolenvs.drivers import run
from toolenvs.episode import Budgets, Episode
from toolenvs.errors import EpisodeOverError, UnknownNameError, UsageError
from toolenvs.executor import Executor
from toolenvs.families import FAMILIES
from toolenvs.info import step_info
from toolenvs.playback import COUNTS, Mode, Playback
from toolenvs.pool import SandboxPool
from toolenvs.pools import Pools
from toolenvs.protocols import Runtime, Tool, ToolFormat
from toolenvs.rubric import Rubric, make_rubric
from toolenvs.settings import ReplaySetting, describe_rubric, describe_setup
from toolenvs.spaces import MAX_CHARS, Unicode
from toolenvs.tasks import Draw, TaskSampler, TaskSpec, load_tasks, resources_of
from toolenvs.toolbox import Toolbox
from toolenvs.types import Step, Task, ToolCall, ToolSpec

_log = logging.getLogger(__name__)

StepTuple = tuple[str, float, bool, bool, dict[str, Any]]

RESET_OPTIONS = ("task_id", "group", "sandbox_seed", "sample")


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
            ``"postgresql://USER@HOST/NAME"``, or a ``ReplayCache`` that the caller keeps.
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
        cache: str | ReplayCache = "",
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
        self.render_mode = render_mode
        self.observation_space = Unicode()
        self.action_space = Unicode()
        self.family = family
        self._toolbox = Toolbox(preset, tools, tool_options or {})
        self.tools = self._toolbox.own
        self.format = _make_format(format or preset.format, format_options or {})
        self.rubric = make_rubric(rewards or preset.rewards)
        self.source = load_tasks(tasks, family=family)
        self._pools = Pools(
            sandbox, sandbox_options, runtimes=runtimes, resources=resources_of(self.source)
        )
        self.budgets = Budgets(
            max_turns=max_turns,
            max_calls=max_calls,
            max_obs_tokens=max_obs_tokens,
            max_turn_tokens=max_turn_tokens,
            max_episode_tokens=max_episode_tokens,
        )
        self.stats: dict[str, float] = dict.fromkeys(
            ("episodes", "steps", "calls", "failures", "restarts", "step_s", *COUNTS), 0.0
        )
        self._specs = self._toolbox.specs
        self._sampler = TaskSampler(
            self.source, group=group, shuffle=shuffle, rank=rank, world=world, split=split
        )
        self._tokenizer = tokenizer
        self._replay = ReplaySetting(replay, cache, share_external=share_external)
        self._playback: Playback | None = None
        self._setup = describe_setup(
            family=family,
            format=self.format,
            format_options=(format_options or {}) if isinstance(format, str) else None,
            tools=self.tools,
            tool_options=self._toolbox.options,
            specs=self._specs,
            budgets=self.budgets,
            tokenizer=tokenizer,
        )
        self._reveal = reveal_gold
        self._episode: Episode | None = None
        self._group: list[Draw] = []
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
        episode, self._episode, self._playback = self._episode, None, None
        with ExitStack() as rest:  # whatever one of them raises, all are closed
            rest.callback(self._replay.close)
            rest.callback(self._pools.close)
            if episode is not None:
                run(episode.close())

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
        draw = self._draw(seed, options or {})
        if self._episode is not None:
            await self._episode.close()
            self._episode = None
        self._episode = await self._begin(draw)
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
        self.stats["failures"] += 1
        failed = {"failure": kind, "end_reason": "failure"}
        masked = dict.fromkeys(self.rubric.names, True)
        info = {**self._info(None), **failed, "reward_masked": masked}
        return "", 0.0, False, True, info

    def check_action(self, action: object) -> None:
        """Refuse what is no text of an allowed length.

        Raises:
            UsageError: The message tells what was given and what is allowed.
        """
        if not self.action_space.contains(action):
            raise UsageError(_bad_action(action))

    def fork(self, n: int) -> list[ToolEnv]:
        """Continue this episode's state in ``n`` further environments, each independent.

        Where the sandbox can be forked, each has a fork of it at once, and with it a place of the
        pool: ``close`` those that are not needed. Where it cannot, a branch leases a sandbox at its
        first call and plays the earlier stateful calls again; the results are the same.
        """
        return run(self.afork(n))

    async def afork(self, n: int) -> list[ToolEnv]:
        """``fork`` as a coroutine for ``drivers.Loop``."""
        with ExitStack() as undone:
            branches = []
            for _ in range(n):
                branches.append(await self._twin())
                undone.callback(branches[-1].close)
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
        return self._pools.sandbox_name

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
        return {**self.__dict__, "_episode": None, "_playback": None}

    def _draw(self, seed: int | None, options: Mapping[str, Any]) -> Draw:
        unknown = set(options) - set(RESET_OPTIONS)
        if unknown:
            raise UnknownNameError("an option of reset", min(unknown), RESET_OPTIONS)
        if self._group and seed is None and not options:
            return self._group.pop(0)
        if "task_id" in options:
            draw = self._sampler.pick(options["task_id"], self.np_random, seed=seed)
        else:
            draw = self._sampler.draw(self.np_random, seed=seed)
        changes = {k: _whole(k, options[k], 0) for k in ("sandbox_seed", "sample") if k in options}
        draw = msgspec.structs.replace(draw, **changes)
        rest = range(1, _whole("group", options.get("group", 1), 1))
        self._group = [msgspec.structs.replace(draw, sample=k) for k in rest]
        return draw

    async def _begin(self, draw: Draw) -> Episode:
        own, private = (
            {tool.needs for tool in self._toolbox.bound(draw.task, self._pools, whose).values()}
            for whose in ("agent", "referee")
        )
        await self._pools.make_ready(own, self._replay, private=private)
        if self._playback is None:
            self._playback = self._make_playback()
        rubric = self.rubric.at(self._begun)
        self._begun += 1
        runtimes = {name: self._pools.facts[name] for name in sorted(own | private) if name}
        return Episode(
            draw.task,
            specs=self._specs,
            format=self.format,
            rubric=rubric,
            executor=self._executor(draw.task, draw.sandbox_seed, draw.sample),
            referee=self._executor(draw.task, draw.sandbox_seed, draw.sample, "referee"),
            budgets=self.budgets,
            tokenizer=self._tokenizer,
            seed=draw.sandbox_seed,
            sample=draw.sample,
            settings={**self._setup, **describe_rubric(rubric), "runtimes": runtimes},
        )

    def _make_playback(self) -> Playback | None:
        return self._replay.playback(runtimes=self._pools.facts, counts=self.stats)

    def _executor(
        self,
        task: Task,
        seed: int,
        sample: int,
        whose: str = "agent",
        like: Executor | None = None,
    ) -> Executor:
        tools = self._toolbox.bound(task, self._pools, whose)
        return Executor(
            tools,
            task=task,
            sandboxes=self._pools.all_for({tool.needs for tool in tools.values()}, whose),
            seed=seed,
            playback=self._playback,
            episode=f"{task.id} {seed} {sample} {whose}",
            private=whose == "referee",
            like=like,
        )

    async def _twin(self) -> ToolEnv:
        episode = self.episode
        trajectory = episode.trajectory
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.stats = dict.fromkeys(self.stats, 0.0)
        twin._sampler = copy.copy(self._sampler)
        twin._np_random = copy.deepcopy(self._np_random)
        twin._group = list(self._group)
        twin._pools = self._pools.twin()
        twin._playback = twin._make_playback()
        begun = (trajectory.task, trajectory.seed, trajectory.sample)
        executor = twin._executor(*begun, like=episode.executor)
        await executor.fork_from(episode.executor)
        twin._episode = episode.fork(executor, twin._executor(*begun, "referee"))
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
            replay=self._replay.mode,
            reveal_gold=self._reveal,
        )


def _make_format(chosen: str | ToolFormat, options: Mapping[str, Any]) -> ToolFormat:
    return formats.make(chosen, **options) if isinstance(chosen, str) else chosen


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < least:
        raise UsageError(f"options[{name!r}]={value!r}: give a whole number of at least {least}.")
    return operator.index(value)


def _bad_action(action: object) -> str:
    if isinstance(action, str):
        return f"the action has {len(action)} characters; at most {MAX_CHARS} are allowed."
    return f"an action is the model's text (str or Turn), not {type(action).__name__}."
