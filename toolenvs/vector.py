"""``ToolVectorEnv``: many episodes at once on one thread, their tool calls overlapping.

It equals that many single ``ToolEnv`` step for step, in all three autoreset modes. Besides the
lock-step ``step`` it has EnvPool's pair: ``send(actions, env_ids)`` starts steps and returns at
once, ``recv(min_envs)`` returns those that are done, so that nobody waits for the slowest call.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate

from toolenvs.drivers import Loop
from toolenvs.env import StepTuple, ToolEnv
from toolenvs.errors import (
    CacheMissError,
    EpisodeOverError,
    RuntimeFailure,
    UnknownNameError,
    UsageError,
)
from toolenvs.pool import SandboxPool

_log = logging.getLogger(__name__)

Texts = tuple[str, ...]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Batch(NamedTuple):
    """What ``recv`` returns: one entry for each slot that is done, ordered by slot number.

    Attributes:
        observations: texts.
        rewards: float64, shape ``(k,)``. terminations, truncations: bool, shape ``(k,)``.
        infos: one info for each, as a single environment gives it.
        env_ids: int64, shape ``(k,)``: the slots.
    """

    observations: Texts
    rewards: Floats
    terminations: Bools
    truncations: Bools
    infos: tuple[dict[str, Any], ...]
    env_ids: npt.NDArray[np.int64]


class _Outcome(NamedTuple):
    """How one slot's step ended.

    ``ended``: the slot now stands at the end of an episode. ``final``: observation and info of the
    episode that ended in this very step, in SAME_STEP mode.
    """

    step: StepTuple
    ended: bool
    final: tuple[str, dict[str, Any]] | None = None


class ToolVectorEnv(VectorEnv[Texts, Sequence[str], Any]):
    """``num_envs`` slots, each a ``ToolEnv`` with the same settings.

    A slot whose machine fails ends its episode truncated with ``info["failure"]``; so does one that
    cannot begin its next episode. The others never notice.

    Args:
        num_envs: number of slots, at least 1.
        autoreset_mode: what follows the end of a slot's episode, as Gymnasium defines it. DISABLED
            suits rollouts of language models best: no prompt is wasted, no action swallowed.
        max_episode_steps: what Gymnasium's ``TimeLimit`` would be told; taken as ``max_turns``, so
            that the rewards of the end are paid.
        shards: the slots deal from one stream of tasks, each taking every ``num_envs``-th, so that
            together they play what one environment with the same seed would have played, groups
            included. Otherwise each slot deals for itself, as single environments do.
        kwargs: settings of ``ToolEnv``.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        shards: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if max_episode_steps is not None:
            kwargs["max_turns"] = min(max_episode_steps, kwargs.get("max_turns", max_episode_steps))
        if num_envs < 1:
            raise UsageError(f"num_envs={num_envs}: at least 1 is needed.")
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._own_pool: SandboxPool | None = None
        sandbox = kwargs.get("sandbox", "auto")
        places = 2 * num_envs  # a slot may keep a sandbox and need a fresh one beside it
        if isinstance(sandbox, str):
            kwargs["sandbox_options"] = {"places": places, **(kwargs.get("sandbox_options") or {})}
        elif not isinstance(sandbox, SandboxPool):  # one pool for all slots, not one for each
            kwargs["sandbox"] = self._own_pool = SandboxPool(sandbox, places=places)
        self.envs = [
            ToolEnv(**(_shard(kwargs, i, num_envs) if shards else kwargs)) for i in range(num_envs)
        ]
        self.metadata = {**self.envs[0].metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self.envs[0].render_mode
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._made_loop: Loop | None = None
        self._loop_of = 0
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._observations = [""] * num_envs
        self._running: set[int] = set()
        self._done: dict[int, _Outcome] = {}

    # -- lock-step ---------------------------------

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Texts, dict[str, Any]]:
        """Begin an episode in every slot, or in those of ``options["reset_mask"]``.

        Args:
            seed: slot i is seeded with ``seed + i``, or by a list with its own.
            options: as for ``ToolEnv.reset``; a list for ``task_id``, ``sandbox_seed`` or
                ``sample`` gives each slot its own. ``reset_mask``: bool array, shape ``(n,)``;
                slots outside it may be under way by ``send`` and go on.

        Raises:
            RuntimeFailure: No sandbox can be started.
            UsageError: A chosen slot has a step under way, or an option does not fit.
        """
        self._check_open()
        seeds = _seeds(seed, self.num_envs)
        options = dict(options or {})
        for name, value in options.items():
            if isinstance(value, list | tuple) and len(value) != self.num_envs:
                raise UsageError(f"options[{name!r}] has {len(value)} values for {self.num_envs}.")
        chosen = _reset_mask(options.pop("reset_mask", None), self.num_envs)
        resets: dict[int, tuple[str, dict[str, Any]]] = {}
        errors: list[BaseException] = []

        def keep(slot: int, value: Any, error: BaseException | None) -> None:
            if error is not None:
                errors.append(error)
            resets[slot] = value

        slots = [int(i) for i in np.flatnonzero(chosen)]
        if busy := sorted(self._running.intersection(slots)):
            raise UsageError(f"slots {busy} are still running: recv() them first.")
        for i in slots:
            coroutine = self.envs[i].areset(seed=seeds[i], options=_for_slot(options, i))
            self._loop.spawn(coroutine, lambda v, e, i=i: keep(i, v, e))  # type: ignore[misc]
        while len(resets) < len(slots):
            self._loop.pump()
        if errors:
            raise errors[0]
        infos: dict[str, Any] = {}
        for i in slots:
            self._observations[i], info = resets[i]
            self._add_info(infos, info, i)
            self._ended[i] = False
            self._done.pop(i, None)
        return tuple(self._observations), infos

    def step(self, actions: Sequence[str]) -> tuple[Texts, Floats, Bools, Bools, dict[str, Any]]:
        """Take one message for each slot; all slots' calls overlap, the slowest is waited for."""
        self.send(list(iterate(self.action_space, actions)), range(self.num_envs))
        while self._running:
            self._loop.pump()
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        for i in range(self.num_envs):
            outcome = self._done.pop(i)
            self._observations[i], rewards[i], terminations[i], truncations[i], _ = outcome.step
            self._add_info(infos, _with_final(outcome), i)
        return tuple(self._observations), rewards, terminations, truncations, infos

    # -- no barrier ---------------------------------

    def send(self, actions: Sequence[str], env_ids: Sequence[int] | npt.NDArray[Any]) -> None:
        """Start a step in each of ``env_ids`` and return without waiting.

        In NEXT_STEP mode the message to a slot whose episode has ended is ignored and begins the
        next one, as in ``step``.

        Raises:
            UsageError: The lengths differ, a slot is unknown, named twice or still running, or an
                action is no text; then nothing was started.
            EpisodeOverError: In DISABLED mode, a slot's episode has ended.
        """
        self._check_open()
        slots = [int(i) for i in env_ids]
        self._check_send(actions, slots)
        for action, slot in zip(actions, slots, strict=True):
            self._running.add(slot)
            self._loop.spawn(
                self._advance(slot, action),
                lambda v, e, slot=slot: self._finish(slot, v, e),  # type: ignore[misc]
            )

    def recv(self, min_envs: int = 1, timeout_s: float | None = None) -> Batch:
        """Return the slots that are done, once there are ``min_envs`` or ``timeout_s`` passed.

        Args:
            min_envs: how many to wait for; no more than are running or done.
            timeout_s: seconds to wait at most; the batch may then be smaller, or empty.

        Raises:
            UsageError: ``min_envs`` is larger than what was sent.
        """
        self._check_open()
        if not 0 <= min_envs <= len(self._running) + len(self._done):
            sent = len(self._running) + len(self._done)
            raise UsageError(f"min_envs={min_envs}: {sent} slots are under way.")
        until = None if timeout_s is None else time.monotonic() + timeout_s
        self._loop.pump(0.0)
        while len(self._done) < min_envs:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            self._loop.pump(left)
        slots = sorted(self._done)
        outcomes = [self._done.pop(slot) for slot in slots]
        for slot, outcome in zip(slots, outcomes, strict=True):
            self._observations[slot] = outcome.step[0]
        return Batch(
            observations=tuple(outcome.step[0] for outcome in outcomes),
            rewards=np.array([outcome.step[1] for outcome in outcomes], dtype=np.float64),
            terminations=np.array([outcome.step[2] for outcome in outcomes], dtype=np.bool_),
            truncations=np.array([outcome.step[3] for outcome in outcomes], dtype=np.bool_),
            infos=tuple(_with_final(outcome) for outcome in outcomes),
            env_ids=np.array(slots, dtype=np.int64),
        )

    # -- what VectorEnv asks for by convention ---------------------------------

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Each slot's attribute ``name``, called with the arguments when it can be called."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(f(*args, **kwargs) if callable(f) else f for f in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Each slot's attribute ``name``."""
        return tuple(getattr(env, name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set each slot's attribute ``name``: one value for all, or a list or tuple of them."""
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise UsageError(f"{len(each)} values for {self.num_envs} slots.")
        for env, value in zip(self.envs, each, strict=True):
            setattr(env, name, value)

    def render(self) -> tuple[Any, ...]:
        """Each slot's rendering."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """End every slot's sandboxes; what was still running is given up."""
        if self._made_loop is not None and self._loop_of == os.getpid():
            self._made_loop.close()
        for env in self.envs:
            env.close()
        if self._own_pool is not None:
            self._own_pool.close()

    # -- inside ---------------------------------

    @property
    def _loop(self) -> Loop:
        """This process's loop: made when first needed, and anew after a fork."""
        if self._made_loop is None or self._loop_of != os.getpid():
            self._made_loop, self._loop_of = Loop(), os.getpid()
            self._running.clear()  # what the parent had under way is the parent's
        return self._made_loop

    def __getstate__(self) -> dict[str, Any]:
        """The settings and the slots without what runs: see ``ToolEnv``."""
        return {**self.__dict__, "_made_loop": None, "_running": set(), "_done": {}}

    def _check_open(self) -> None:
        if self.closed:
            raise UsageError("this vector environment is closed: make a new one.")

    def _check_send(self, actions: Sequence[str], slots: Sequence[int]) -> None:
        if len(actions) != len(slots):
            raise UsageError(f"{len(actions)} actions for {len(slots)} slots.")
        if len(set(slots)) < len(slots):
            raise UsageError(f"a slot is named twice in {list(slots)}.")
        for action, slot in zip(actions, slots, strict=True):
            if not 0 <= slot < self.num_envs:
                raise UnknownNameError("a slot", slot, map(str, range(self.num_envs)))
            if slot in self._running or slot in self._done:
                raise UsageError(f"slot {slot} has a step under way: recv() it first.")
            if self._ended[slot] and self.autoreset_mode == AutoresetMode.DISABLED:
                raise EpisodeOverError(
                    f"the episode of slot {slot} is over: reset(options={{'reset_mask': ...}})."
                )
            if not self._ended[slot]:
                self.envs[slot].check_action(action)

    async def _advance(self, slot: int, action: str) -> _Outcome:
        env = self.envs[slot]
        try:
            if self._ended[slot]:
                return await self._begin_next(env)
            return await self._play(env, action)
        except CacheMissError:  # the caller's to know, and no end that an episode could have
            raise
        except Exception:  # not the agent's fault and not the sandbox's: a fault of this package
            _log.exception("slot %d failed", slot)
            return _Outcome(await env.afail("internal"), ended=True)

    async def _play(self, env: ToolEnv, action: str) -> _Outcome:
        step = await env.astep(action)
        ended = step[2] or step[3]
        if self.autoreset_mode != AutoresetMode.SAME_STEP or not ended:
            return _Outcome(step, ended)
        begun = await self._begin_next(env)
        observation, _, _, _, info = begun.step
        return _Outcome(
            (observation, step[1], step[2], step[3], info), begun.ended, final=(step[0], step[4])
        )

    async def _begin_next(self, env: ToolEnv) -> _Outcome:
        try:
            observation, info = await env.areset()
        except RuntimeFailure as failure:
            _log.error("a slot could not begin its next episode: %s", failure)
            return _Outcome(await env.afail(failure.kind), ended=True)
        return _Outcome((observation, 0.0, False, False, info), ended=False)

    def _finish(self, slot: int, outcome: _Outcome | None, error: BaseException | None) -> None:
        self._running.discard(slot)
        if outcome is None:
            assert error is not None
            raise error
        self._done[slot] = outcome
        self._ended[slot] = outcome.ended


def _with_final(outcome: _Outcome) -> dict[str, Any]:
    info = outcome.step[4]
    if outcome.final is None:
        return info
    return {"final_obs": outcome.final[0], "final_info": outcome.final[1], **info}


def _shard(settings: Mapping[str, Any], slot: int, slots: int) -> dict[str, Any]:
    rank, world = settings.get("rank", 0), settings.get("world", 1)
    return {**settings, "rank": rank * slots + slot, "world": world * slots}


def _seeds(seed: int | Sequence[int | None] | None, n: int) -> list[int | None]:
    if seed is None:
        return [None] * n
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(n)]
    if len(seed) != n:
        raise UsageError(f"{len(seed)} seeds for {n} slots.")
    return list(seed)


def _reset_mask(mask: Any, n: int) -> Bools:
    if mask is None:
        return np.ones(n, dtype=np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (n,):
        raise UsageError(f"reset_mask must be a bool array of shape ({n},), not {mask!r}.")
    if not mask.any():
        raise UsageError("reset_mask chooses no slot.")
    return mask


def _for_slot(options: Mapping[str, Any], slot: int) -> dict[str, Any]:
    return {k: v[slot] if isinstance(v, list | tuple) else v for k, v in options.items()}
