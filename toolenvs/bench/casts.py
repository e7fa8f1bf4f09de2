"""Three ways to play the same episodes: one at a time, with a barrier every turn, and without.

The simulated model's time is really waited for. One at a time each turn waits for its own; a
barrier waits for the slowest message of the batch and then for the slowest call; without a barrier
every slot goes at its own pace. All take the episodes in the trace's order.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from gymnasium.vector import AutoresetMode

from toolenvs.bench.trace import Trace, TraceTurn
from toolenvs.drivers import Loop, Sleep, run
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure
from toolenvs.types import Trajectory
from toolenvs.vector import ToolVectorEnv

Turns = Sequence[TraceTurn]


class Cast(Protocol):
    """Environments that play a trace; they stay open from one play to the next."""

    def play(self, trace: Trace, *, waits: bool) -> list[Trajectory]:
        """Play every episode to its end.

        Args:
            trace: what the simulated model says and how long it takes.
            waits: False leaves the model's time out, so that only the tools' is left.

        Returns:
            The trajectories in the trace's order.

        Raises:
            RuntimeFailure: The machine failed, or an episode did not end where the trace does.
        """
        ...

    def close(self) -> None:
        """End the environments."""
        ...


class OneAtATime:
    """One environment, one turn after another."""

    def __init__(self, slots: int, settings: dict[str, Any]) -> None:
        self._env = ToolEnv(**settings)

    def play(self, trace: Trace, *, waits: bool) -> list[Trajectory]:
        return [run(_play_episode(self._env, turns, waits=waits)) for turns in trace.episodes]

    def close(self) -> None:
        self._env.close()


class NoBarrier:
    """A coroutine for each slot, all under one ``Loop``; a free slot takes the next episode."""

    def __init__(self, slots: int, settings: dict[str, Any]) -> None:
        self._envs = [ToolEnv(**settings) for _ in range(slots)]

    def play(self, trace: Trace, *, waits: bool) -> list[Trajectory]:
        queue = deque(enumerate(trace.episodes))
        played: dict[int, Trajectory] = {}
        ended: list[BaseException | None] = []

        async def slot(env: ToolEnv) -> None:
            while queue:
                number, turns = queue.popleft()
                played[number] = await _play_episode(env, turns, waits=waits)

        with contextlib.closing(Loop()) as loop:
            for env in self._envs:
                loop.spawn(slot(env), lambda _, error: ended.append(error))
            while len(ended) < len(self._envs):
                loop.pump()
                for error in filter(None, ended):
                    raise error
        return [played[number] for number in range(len(trace.episodes))]

    def close(self) -> None:
        for env in self._envs:
            env.close()


class _Seat(msgspec.Struct):
    """A slot's episode and the turn that comes next."""

    number: int
    turns: Turns
    next: int = 0

    @property
    def turn(self) -> TraceTurn:
        return self.turns[self.next]


class LockStep:
    """``ToolVectorEnv`` with a barrier every turn; within it the calls of all slots overlap.

    Ended slots begin their next episode before the next turn, so no turn is lost to a reset.
    """

    def __init__(self, slots: int, settings: dict[str, Any]) -> None:
        self._envs = ToolVectorEnv(slots, autoreset_mode=AutoresetMode.DISABLED, **settings)

    def play(self, trace: Trace, *, waits: bool) -> list[Trajectory]:
        queue = deque(_Seat(number, turns) for number, turns in enumerate(trace.episodes))
        seats: dict[int, _Seat] = {}
        played: dict[int, Trajectory] = {}
        while len(played) < len(trace.episodes):
            self._fill(seats, queue)
            if waits:
                time.sleep(max(seat.turn.latency_s for seat in seats.values()))
            played.update(self._turn(seats))
        return [played[number] for number in range(len(trace.episodes))]

    def _fill(self, seats: dict[int, _Seat], queue: deque[_Seat]) -> None:
        """Give every free slot the next episode."""
        slots = self._envs.num_envs
        mask = np.zeros(slots, dtype=np.bool_)
        options: list[dict[str, Any]] = [{"task_id": "", "sandbox_seed": 0, "sample": 0}] * slots
        for slot in range(slots):
            if slot not in seats and queue:
                seats[slot] = queue.popleft()
                mask[slot] = True
                options[slot] = _options(seats[slot].turns)
        if mask.any():
            by_name = {name: [option[name] for option in options] for name in options[0]}
            self._envs.reset(options={"reset_mask": mask, **by_name})

    def _turn(self, seats: dict[int, _Seat]) -> dict[int, Trajectory]:
        """Take one turn in every seat, wait for all, and return what has ended."""
        slots = sorted(seats)
        self._envs.send([seats[slot].turn.text for slot in slots], slots)
        batch = self._envs.recv(min_envs=len(slots))
        ended = {}
        for slot, terminated, truncated, info in zip(
            slots, batch.terminations, batch.truncations, batch.infos, strict=True
        ):
            seat = seats[slot]
            _check(seat.turn, bool(terminated), bool(truncated), info)
            seat.next += 1
            if terminated:
                ended[seat.number] = self._envs.envs[slot].episode.trajectory
                del seats[slot]
        return ended

    def close(self) -> None:
        self._envs.close()


async def _play_episode(env: ToolEnv, turns: Turns, *, waits: bool) -> Trajectory:
    await env.areset(options=_options(turns))
    for turn in turns:
        if waits:
            await Sleep(turn.latency_s)
        _, _, terminated, truncated, info = await env.astep(turn.text)
        _check(turn, terminated, truncated, info)
    return env.episode.trajectory


def _options(turns: Turns) -> dict[str, Any]:
    """How ``reset`` begins an episode that does not depend on who plays it, or when."""
    return {"task_id": turns[0].task_id, "sandbox_seed": turns[0].episode, "sample": 0}


def _check(turn: TraceTurn, terminated: bool, truncated: bool, info: dict[str, Any]) -> None:
    """Refuse an episode that failed or did not end at its last turn."""
    if info["failure"] or truncated or terminated != (turn.turn + 1 == turn.turns):
        raise RuntimeFailure(
            info["failure"] or "diverged",
            f"episode {turn.episode} ({turn.task_id}), turn {turn.turn} of {turn.turns}: "
            f"terminated={terminated}, truncated={truncated}, end_reason={info['end_reason']!r}, "
            f"failure={info['failure']!r}; the trace ends an episode by its last message alone.",
        )
