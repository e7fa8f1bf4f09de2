"""Play episodes: many environments, one policy, one thread, and a table of how it went.

    jobs = plan_jobs(source, episodes=100, group=4, seed=0)
    played = run_episodes(lambda: ToolEnv(tasks=source), Gold(), jobs, envs=16)
    print(summarise(played.episodes, sandbox="docker", replay="off").success)

Each of the ``envs`` slots takes the next job as soon as its episode has ended; nobody waits for the
slowest. Neither scores nor records depend on the number of slots or on who came first.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from toolenvs.drivers import Loop
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.policies import Policy, Scene
from toolenvs.summary import EpisodeSummary, Job, summarise_episode
from toolenvs.types import Step, Task, Trajectory

if TYPE_CHECKING:
    from toolenvs.env import ToolEnv
    from toolenvs.protocols import TaskSource

_log = logging.getLogger(__name__)

GIVEN_UP = "given_up"
"""The end reason of an episode that its policy gave up."""

MOST_EPISODES = 1_000_000
"""Of one rollout: jobs and summaries are held in memory."""

_HOPELESS = 3  # failures in a row that are too many, however few the slots
_PATIENCE = 4  # times as many as before the first success


class Writer(Protocol):
    """Where trajectories go: a ``records.RunWriter``."""

    def write(self, trajectory: Trajectory, timings: Mapping[str, Any] | None = None) -> int: ...


def plan_jobs(
    source: TaskSource, *, episodes: int | None = None, group: int = 1, seed: int = 0
) -> list[Job]:
    """List the episodes of a rollout: tasks in the source's order, then from the start again.

    Args:
        source: the tasks.
        episodes: how many, rounded up to whole groups; every task once when None.
        group: samples of each task, with one sandbox seed, one after the other.
        seed: start of every sandbox seed.

    Raises:
        UsageError: A number is below 1, or there are more than ``MOST_EPISODES``.
    """
    if group < 1 or (episodes is not None and episodes < 1):
        raise UsageError(f"episodes={episodes}, group={group}: both must be at least 1.")
    groups = len(source) if episodes is None else -(-episodes // group)
    if groups * group > MOST_EPISODES:
        raise UsageError(
            f"{groups * group} episodes ({groups} groups of {group}) are more than one rollout "
            f"plays; give at most {MOST_EPISODES}, and go on with another seed."
        )
    ids = [source[row].id for row in range(min(groups, len(source)))]
    jobs = []
    for number in range(groups):
        again, row = divmod(number, len(source))
        sandbox_seed = _sandbox_seed(seed, ids[row], again)
        samples = range(again * group, (again + 1) * group)
        jobs += [Job(ids[row], sample, sandbox_seed) for sample in samples]
    return jobs


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout came to.

    Attributes:
        episodes: one for each job that was played to its end, in the order of the jobs.
        wall_s: seconds from the first environment to the last episode's end.
        cache_hits, cache_misses: calls that the replay cache served, and that it did not have.
        interrupted: True when Ctrl-C ended it: ``episodes`` is a part of what was asked.
        given_up: why it was given up, ``""`` if it was not: then episodes are missing, too.
    """

    episodes: list[EpisodeSummary]
    wall_s: float = 0.0
    cache_hits: int = 0
    cache_misses: int = 0
    interrupted: bool = False
    given_up: str = ""

    @property
    def steps_per_s(self) -> float | None:
        """Steps in a second of the rollout, failed episodes left out; None if there was none."""
        steps = sum(episode.turns for episode in self.episodes if not episode.failure)
        return round(steps / self.wall_s, 3) if steps and self.wall_s else None


def run_episodes(
    make_env: Callable[[], ToolEnv],
    policy: Policy,
    jobs: Sequence[Job],
    *,
    envs: int = 8,
    out: Writer | None = None,
    progress: Callable[[EpisodeSummary], None] | None = None,
) -> Played:
    """Play every job.

    An episode in which the machine fails (environment or policy raise ``RuntimeFailure``) is
    recorded as failed and the rollout goes on. When as many in a row as there are slots fail the
    same way and none has gone well (later: four times as many), it is given up. Ctrl-C ends it.
    Either way what was played is returned, and written.

    Args:
        make_env: makes one slot's environment; it is closed here.
        policy: who plays.
        jobs: what is played.
        envs: slots, at least 1.
        out: gets the trajectories in the order of the jobs, each as soon as those before it are
            there, so that equal rollouts write equal files.
        progress: called with each episode as it ends.

    Raises:
        UsageError: The policy cannot play a task, or a task is unknown.
        RuntimeFailure: The very first environment could not start: nothing can be played.
    """
    if envs < 1:
        raise UsageError(f"envs={envs}: give at least 1.")
    rollout = _Rollout(policy, jobs, _InOrder(out), progress, _Patience(min(envs, len(jobs))))
    slots = []
    loop = Loop()
    began = time.perf_counter()
    try:
        for _ in range(min(envs, len(jobs))):
            slots.append(make_env())
            loop.spawn(rollout.slot(slots[-1]), rollout.slot_ended)
        while rollout.slots_ended < len(slots) and not rollout.over:
            loop.pump(1.0)
    except KeyboardInterrupt as interrupt:
        rollout.error = interrupt
    finally:
        loop.close()
        for env in slots:
            env.close()
        rollout.out.flush()
    interrupted = isinstance(rollout.error, KeyboardInterrupt)  # it may strike inside a slot, too
    if rollout.error is not None and not interrupted:
        raise rollout.error
    return Played(
        episodes=[rollout.done[number] for number in sorted(rollout.done)],
        wall_s=time.perf_counter() - began,
        cache_hits=int(sum(env.stats["cache_hits"] for env in slots)),
        cache_misses=int(sum(env.stats["cache_misses"] for env in slots)),
        interrupted=interrupted,
        given_up="" if interrupted else rollout.patience.lost,
    )


class _Rollout:
    """The state that the slots of one rollout share."""

    def __init__(
        self,
        policy: Policy,
        jobs: Sequence[Job],
        out: _InOrder,
        progress: Callable[[EpisodeSummary], None] | None,
        patience: _Patience,
    ) -> None:
        self.patience = patience
        self.policy = policy
        self.out = out
        self.progress = progress
        self.left = deque(enumerate(jobs))
        self.done: dict[int, EpisodeSummary] = {}
        self.started = 0
        self.slots_ended = 0
        self.error: BaseException | None = None

    @property
    def over(self) -> bool:
        """True when the rest is not to be played."""
        return self.error is not None or bool(self.patience.lost)

    async def slot(self, env: ToolEnv) -> None:
        """Play jobs until none is left."""
        while self.left and not self.over:
            number, job = self.left.popleft()
            trajectory, step_s, failure = await self._play(env, job)
            summary = summarise_episode(
                job,
                trajectory,
                answer_term=env.rubric.answer,
                step_s=step_s,
                reason=failure.reason if failure else "",
            )
            self.patience.saw(summary, str(failure or ""))
            self.done[number] = summary
            self.out.add(number, trajectory, {"step_s": step_s})
            if self.progress is not None:
                self.progress(summary)

    def slot_ended(self, _value: None, error: BaseException | None) -> None:
        """Remember the first error; the rollout then ends."""
        self.slots_ended += 1
        self.error = self.error or error

    async def _play(self, env: ToolEnv, job: Job) -> _Ended:
        options = {"task_id": job.task_id, "sandbox_seed": job.seed, "sample": job.sample}
        try:
            observation, info = await env.areset(options=options)
        except RuntimeFailure as failure:
            if not self.started:
                raise
            return _Ended(_unplayed(job, failure), 0.0, failure)
        self.started += 1
        return await _play_started(env, self.policy, observation, info)


class _Ended(NamedTuple):
    """How an episode ended: its record, the seconds in ``step``, and what was raised, if known."""

    trajectory: Trajectory
    step_s: float
    failure: RuntimeFailure | None


class _Patience:
    """Decides when failures are too many, and tells of each kind of them once.

    Args:
        slots: episodes under way at once, which one short outage fails together.

    Attributes:
        lost: why the rollout is hopeless, ``""`` while it is not.
    """

    def __init__(self, slots: int) -> None:
        self.lost = ""
        self._most = max(_HOPELESS, slots)
        self._last = ""  # the fault of the last episodes, and how many they are
        self._in_a_row = 0
        self._any_good = False
        self._told: set[str] = set()

    def saw(self, episode: EpisodeSummary, message: str) -> None:
        """Hear of an episode that ended, and what was raised in it."""
        if not episode.failure:
            self._last, self._in_a_row, self._any_good = "", 0, True
            return
        if episode.fault not in self._told:
            self._told.add(episode.fault)
            why = message or f"{episode.fault} (task {episode.job.task_id})"
            _log.warning("an episode failed (not scored; further ones are counted): %s", why)
        self._in_a_row = self._in_a_row + 1 if episode.fault == self._last else 1
        self._last = episode.fault
        if not self.lost and self._in_a_row >= self._most * (_PATIENCE if self._any_good else 1):
            self.lost = f"{self._in_a_row} episodes in a row failed: {message or episode.fault}"


async def _play_started(
    env: ToolEnv, policy: Policy, observation: str, info: dict[str, Any]
) -> _Ended:
    """Play an episode that was reset to its end."""
    begun = env.episode.trajectory
    specs = env.specs
    scene = Scene(format=env.format, specs=specs, sample=begun.sample)
    actor = policy.start(begun.task, scene)
    step_s = 0.0
    ended = False
    failed: RuntimeFailure | None = None
    while not ended:
        try:
            message = await actor.act(observation, info)
        except RuntimeFailure as failure:
            failed = failure
            await env.afail(failure.kind)
            break
        if message is None:
            await env.afinish(GIVEN_UP)
            break
        before = time.perf_counter()
        observation, _, terminated, truncated, info = await env.astep(message)
        step_s += time.perf_counter() - before
        ended = terminated or truncated
    return _Ended(env.episode.trajectory, step_s, failed)


def _unplayed(job: Job, failure: RuntimeFailure) -> Trajectory:
    """The record of an episode that no sandbox could be had for: one failed step, nothing paid."""
    step = Step(action="", truncated=True, end_reason="failure", failure=failure.kind)
    task = Task(id=job.task_id, prompt="")
    return Trajectory(task=task, seed=job.seed, sample=job.sample, steps=(step,))


class _InOrder:
    """Writes numbered trajectories in order, holding back what came too early."""

    def __init__(self, out: Writer | None) -> None:
        self._out = out
        self._next = 0
        self._early: dict[int, tuple[Trajectory, Mapping[str, Any]]] = {}

    def add(self, number: int, trajectory: Trajectory, timings: Mapping[str, Any]) -> None:
        if self._out is None:
            return
        self._early[number] = (trajectory, timings)
        while self._next in self._early:
            self._out.write(*self._early.pop(self._next))
            self._next += 1

    def flush(self) -> None:
        """Write what is left, of a rollout that was interrupted."""
        if self._out is not None:
            for number in sorted(self._early):
                self._out.write(*self._early.pop(number))


def _sandbox_seed(seed: int, task_id: str, again: int) -> int:
    text = f"{seed}\0{task_id}\0{again}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:4])
