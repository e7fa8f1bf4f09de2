"""Play episodes: many environments, one policy, one thread, and a table of how it went.

    jobs = plan_jobs(source, episodes=100, group=4, seed=0)
    episodes = run_episodes(lambda: ToolEnv(tasks=source), Gold(), jobs, envs=16)
    print(summarise(episodes, sandbox="docker", replay="off").success)

Each of the ``envs`` slots takes the next job as soon as its episode has ended; nobody waits for the
slowest. Neither scores nor records depend on the number of slots or on who came first.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from toolenvs.drivers import Loop
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.policies import Policy, Scene
from toolenvs.summary import EpisodeSummary, Job, summarise_episode
from toolenvs.types import Step, Task, ToolSpec, Trajectory

if TYPE_CHECKING:
    from toolenvs.env import ToolEnv
    from toolenvs.protocols import TaskSource

_log = logging.getLogger(__name__)

GIVEN_UP = "given_up"
"""The end reason of an episode that its policy gave up."""


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
        UsageError: A number is below 1.
    """
    if group < 1 or (episodes is not None and episodes < 1):
        raise UsageError(f"episodes={episodes}, group={group}: both must be at least 1.")
    groups = len(source) if episodes is None else -(-episodes // group)
    ids = [source[row].id for row in range(min(groups, len(source)))]
    jobs = []
    for number in range(groups):
        again, row = divmod(number, len(source))
        sandbox_seed = _sandbox_seed(seed, ids[row], again)
        samples = range(again * group, (again + 1) * group)
        jobs += [Job(ids[row], sample, sandbox_seed) for sample in samples]
    return jobs


def run_episodes(
    make_env: Callable[[], ToolEnv],
    policy: Policy,
    jobs: Sequence[Job],
    *,
    envs: int = 8,
    out: Writer | None = None,
    progress: Callable[[EpisodeSummary], None] | None = None,
) -> list[EpisodeSummary]:
    """Play every job.

    An episode in which the machine fails (environment or policy raise ``RuntimeFailure``) is
    recorded as failed and the rollout goes on. Ctrl-C ends it: what was played is returned, and
    written.

    Args:
        make_env: makes one slot's environment; it is closed here.
        policy: who plays.
        jobs: what is played.
        envs: slots, at least 1.
        out: gets the trajectories in the order of the jobs, each as soon as those before it are
            there, so that equal rollouts write equal files.
        progress: called with each episode as it ends.

    Returns:
        One summary for each job, in order; fewer after Ctrl-C.

    Raises:
        UsageError: The policy cannot play a task, or a task is unknown.
        RuntimeFailure: The very first environment could not start: nothing can be played.
    """
    if envs < 1:
        raise UsageError(f"envs={envs}: give at least 1.")
    rollout = _Rollout(policy, jobs, _InOrder(out), progress)
    slots = []
    loop = Loop()
    try:
        for _ in range(min(envs, len(jobs))):
            slots.append(make_env())
            loop.spawn(rollout.slot(slots[-1]), rollout.slot_ended)
        while rollout.slots_ended < len(slots) and rollout.error is None:
            loop.pump(1.0)
    except KeyboardInterrupt as interrupt:
        rollout.error = interrupt
    finally:
        loop.close()
        for env in slots:
            env.close()
        rollout.out.flush()
    if isinstance(rollout.error, KeyboardInterrupt):  # it may have struck inside a slot, too
        _log.info("interrupted: %d of %d episodes are done", len(rollout.done), len(jobs))
    elif rollout.error is not None:
        raise rollout.error
    return [rollout.done[number] for number in sorted(rollout.done)]


class _Rollout:
    """The state that the slots of one rollout share."""

    def __init__(
        self,
        policy: Policy,
        jobs: Sequence[Job],
        out: _InOrder,
        progress: Callable[[EpisodeSummary], None] | None,
    ) -> None:
        self.policy = policy
        self.out = out
        self.progress = progress
        self.left = deque(enumerate(jobs))
        self.done: dict[int, EpisodeSummary] = {}
        self.started = 0
        self.slots_ended = 0
        self.error: BaseException | None = None

    async def slot(self, env: ToolEnv) -> None:
        """Play jobs until none is left."""
        while self.left:
            number, job = self.left.popleft()
            trajectory, step_s = await self._play(env, job)
            summary = summarise_episode(
                job, trajectory, answer_term=env.rubric.answer, step_s=step_s
            )
            self.done[number] = summary
            self.out.add(number, trajectory, {"step_s": step_s})
            if self.progress is not None:
                self.progress(summary)

    def slot_ended(self, _value: None, error: BaseException | None) -> None:
        """Remember the first error; the rollout then ends."""
        self.slots_ended += 1
        self.error = self.error or error

    async def _play(self, env: ToolEnv, job: Job) -> tuple[Trajectory, float]:
        options = {"task_id": job.task_id, "sandbox_seed": job.seed, "sample": job.sample}
        try:
            observation, info = await env.areset(options=options)
        except RuntimeFailure as failure:
            if not self.started:
                raise
            _log.warning("%s: no sandbox: %s", job.task_id, failure)
            return _unplayed(job, failure), 0.0
        self.started += 1
        return await _play_started(env, self.policy, observation, info)


async def _play_started(
    env: ToolEnv, policy: Policy, observation: str, info: dict[str, Any]
) -> tuple[Trajectory, float]:
    """Play an episode that was reset to its end; its trajectory and the seconds in ``step``."""
    begun = env.episode.trajectory
    specs = tuple(ToolSpec(**tool["function"]) for tool in env.tool_specs())
    scene = Scene(format=env.format, specs=specs, sample=begun.sample)
    actor = policy.start(begun.task, scene)
    step_s = 0.0
    ended = False
    while not ended:
        try:
            message = await actor.act(observation, info)
        except RuntimeFailure as failure:
            _log.warning("%s: the policy failed: %s", begun.task.id, failure)
            await env.afail(failure.kind)
            break
        if message is None:
            await env.afinish(GIVEN_UP)
            break
        before = time.perf_counter()
        observation, _, terminated, truncated, info = await env.astep(message)
        step_s += time.perf_counter() - before
        ended = terminated or truncated
    return env.episode.trajectory, step_s


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
