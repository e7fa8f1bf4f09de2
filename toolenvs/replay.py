"""Play recorded episodes again, from the record alone or for real, and compare to the byte.

    report = replay_run("runs/first")
    report.identical == report.episodes

A replay from the record parses every recorded action again, serves the results by their position,
renders, scores, and compares each step with the recorded one; it needs no sandbox, no network and
no tool. A live replay runs the tools again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import msgspec

from toolenvs.comparison import Comparison, Difference, EpisodeReplay, NotRun
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.episode import Episode
from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime
from toolenvs.recorded import Made, Parts, as_data_error, has_begun, make_parts, setting
from toolenvs.records import Damage, is_torn_tail, read_lines
from toolenvs.types import Step, ToolCall, ToolResult, Trajectory, Turn

__all__ = [
    "Live",
    "Parts",
    "Resources",
    "RunReplay",
    "replay_live",
    "replay_run",
    "replay_trajectory",
]

Live = str | Runtime | SandboxPool

Resources = Mapping[str, Any] | Callable[[Trajectory], Mapping[str, Any]]
"""What tools need besides the sandbox, of all episodes alike or by episode."""


class RunReplay(msgspec.Struct, frozen=True, kw_only=True):
    """How the replay of a run went.

    Attributes:
        episodes: those that had begun, without the ``not_run``. identical: those of them without
            any difference.
        steps, identical_steps: of all that were compared.
        unplayed: recorded episodes that never began, because a machine failed.
        not_run: live, episodes in which a machine failed now: they could not be compared, or only
            up to there.
        differences: the first of each step that has one.
        damaged: lines that hold no episode, or one that cannot be played, such as an imported one;
            a last line that a crash cut is not counted.
    """

    episodes: int
    identical: int
    steps: int
    identical_steps: int
    unplayed: int
    differences: tuple[Difference, ...]
    damaged: tuple[Damage, ...]
    not_run: tuple[NotRun, ...] = ()

    @property
    def clean(self) -> bool:
        """True when everything that was recorded came out again."""
        return not (self.differences or self.damaged or self.not_run)


def replay_run(
    path: str | os.PathLike[str],
    *,
    live: Live | None = None,
    runtimes: Resources | None = None,
    parts: Parts = Parts(),  # noqa: B008 - frozen
    progress: Callable[[EpisodeReplay], None] | None = None,
) -> RunReplay:
    """Replay every episode of a run.

    Args:
        path: the folder of a run or a file of trajectories.
        live: run the tools again, in this sandbox; None: from the record alone.
        runtimes: live, what else the tools need, such as the ``resources`` of the tasks' source;
            see ``ToolEnv``; a function gives those of each episode of a run of several sources.
        parts: what the records do not hold as data.
        progress: called with each episode.

    Raises:
        UsageError: There is no episode that can be played, or one needs ``parts`` that were not
            given.
        RuntimeFailure: Live, no episode at all can be started.
    """
    damaged: list[Damage] = []
    unusable: list[str] = []
    played: list[EpisodeReplay] = []
    with ExitStack() as stage:
        for number, line in enumerate(read_lines(path, damaged=damaged.append)):
            trajectory = line.trajectory
            try:
                if not has_begun(trajectory):
                    played.append(EpisodeReplay(steps=0, identical_steps=0, played=False))
                elif live is None:
                    played.append(replay_trajectory(trajectory, number=number, parts=parts))
                else:
                    needs = runtimes(trajectory) if callable(runtimes) else runtimes or {}
                    env = _live_env(trajectory, live, needs, parts)
                    # It ends after the next has its share of the pools, which stay warm.
                    before = stage.pop_all()
                    stage.callback(env.close)
                    with before:
                        played.append(_play_live(env, trajectory, number))
            except DataError as error:
                damaged.append(line.damage(f"line {line.number}: {error}"))
                unusable.append(damaged[-1].reason)
                continue
            if progress is not None:
                progress(played[-1])
    if not played:
        why = f": {unusable[0]}" if unusable else "."
        raise UsageError(f"{path} holds no episode to replay{why}")
    return _report(played, damaged)


def replay_trajectory(
    trajectory: Trajectory,
    *,
    number: int = 0,
    parts: Parts = Parts(),  # noqa: B008 - frozen
) -> EpisodeReplay:
    """Replay one episode from its record alone.

    The first difference ends it: what follows would differ only because of it.

    Raises:
        UsageError: It needs ``parts`` that were not given.
        DataError: The record is damaged, or was imported.
    """
    made = make_parts(trajectory.settings, parts)
    with as_data_error():
        return _play(trajectory, made, number)


def _play(trajectory: Trajectory, made: Made, number: int) -> EpisodeReplay:
    record = _Record()
    episode = Episode(
        trajectory.task,
        specs=made.specs,
        format=made.format,
        rubric=made.rubric,
        executor=record.agent,  # type: ignore[arg-type]
        referee=record.referee,  # type: ignore[arg-type]
        budgets=made.budgets,
        tokenizer=made.tokenizer,
        seed=trajectory.seed,
        sample=trajectory.sample,
        settings=trajectory.settings,
    )
    compare = Comparison(trajectory, number)
    compare.start(episode, rubric=made.rubric.hash)
    for step in trajectory.steps:
        if compare.differences or not compare.goes_on(episode):
            break
        record.show(step)
        try:
            compare.step(step, run(_again(episode, step)))
        except _TooFewError as few:
            compare.note("results", few.recorded, few.replayed)
    if not compare.differences and not episode.trajectory.ended:
        compare.note("steps", "(the record breaks off)", "the episode has not ended yet")
    return compare.outcome(len(trajectory.steps))


def replay_live(
    trajectory: Trajectory,
    *,
    sandbox: Live,
    runtimes: Mapping[str, Any] | None = None,
    number: int = 0,
    parts: Parts = Parts(),  # noqa: B008 - frozen
) -> EpisodeReplay:
    """Take every recorded action of an episode again, with real tools.

    A step in which a machine failed is left out: it was no fact. One in which a machine fails now
    ends the comparison, as does one that fails to start: see ``EpisodeReplay.not_run``.

    Args:
        trajectory: the episode.
        sandbox: where to run, as ``ToolEnv`` takes it.
        runtimes: what else the tools need, likewise.
        number: its number in the run.
        parts: what the record does not hold as data.

    Raises:
        UsageError: A tool, format or reward is not known here.
    """
    with closing(_live_env(trajectory, sandbox, runtimes or {}, parts)) as env:
        return _play_live(env, trajectory, number)


def _play_live(env: ToolEnv, trajectory: Trajectory, number: int) -> EpisodeReplay:
    steps = [step for step in trajectory.steps if not step.failure]
    compare = Comparison(trajectory, number)
    task_id, seed, sample = trajectory.task.id, trajectory.seed, trajectory.sample
    try:
        env.reset(options={"task_id": task_id, "sandbox_seed": seed, "sample": sample})
    except RuntimeFailure as failure:
        compare.fail(failure)
        return compare.outcome(0)
    compare.start(env.episode, rubric=env.rubric.hash)
    for step in steps:
        if not compare.goes_on(env.episode):
            break
        again = run(_again(env.episode, step))
        if again.failure:
            compare.fail(env.episode.fault or RuntimeFailure(again.failure, "the machine failed."))
            break
        compare.step(step, again)
    return compare.outcome(len(steps))


def _report(played: Sequence[EpisodeReplay], damaged: Sequence[Damage]) -> RunReplay:
    begun = [one for one in played if one.played]
    not_run = [one.not_run for one in begun if one.not_run is not None]
    if not_run and len(not_run) == len(begun) and all(one.step < 0 for one in not_run):
        kind, _, message = not_run[0].failure.partition(": ")
        raise RuntimeFailure(kind, message)
    return RunReplay(
        episodes=len(begun) - len(not_run),
        identical=sum(not one.differences and one.not_run is None for one in begun),
        steps=sum(one.steps for one in begun),
        identical_steps=sum(one.identical_steps for one in begun),
        unplayed=len(played) - len(begun),
        differences=tuple(difference for one in begun for difference in one.differences),
        damaged=tuple(piece for piece in damaged if not is_torn_tail(piece)),
        not_run=tuple(not_run),
    )


class _TooFewError(Exception):
    """The replay makes a call for which the record holds no result."""

    def __init__(self, recorded: object, replayed: object) -> None:
        super().__init__()
        self.recorded = recorded
        self.replayed = replayed


class _Record:
    """One recorded step's results, served by position to an episode's two executors."""

    def __init__(self) -> None:
        self.agent = _Served()
        self.referee = _Served()

    def show(self, step: Step) -> None:
        """Serve this step from now on."""
        # A failure struck at the call without a result, or among the private calls.
        at_a_call = len(step.calls) > len(step.results)
        self.agent.show(step.results, failure=step.failure if at_a_call else "")
        evidence = [result for _, result in step.evidence]
        self.referee.show(evidence, failure=step.failure)


class _Served:
    """Stands where an ``Executor`` would."""

    restarts = 0

    def __init__(self) -> None:
        self._results: Sequence[ToolResult] = ()
        self._failure = ""
        self._next = 0

    def show(self, results: Sequence[ToolResult], *, failure: str) -> None:
        self._results, self._failure, self._next = results, failure, 0

    async def run(self, call: ToolCall) -> ToolResult:
        if self._next < len(self._results):
            self._next += 1
            return self._results[self._next - 1]
        if self._failure:
            raise RuntimeFailure(self._failure, "as recorded")
        raise _TooFewError(f"{len(self._results)} results", {"one more call": call})

    async def close(self) -> None:
        return


async def _again(episode: Episode, step: Step) -> Step:
    """Do once more what made a recorded step."""
    turn = Turn(
        step.action,
        step.finish_reason,
        step.stop_string,
        step.token_ids,
        step.logprobs,
        step.policy_version,
    )
    if step.parsed is not None:
        return await episode.step(turn)
    if step.calls or (step.action and not step.failure):
        return await episode.act(step.calls, turn)
    if step.failure:
        return await episode.fail(step.failure)
    if step.end_reason:
        return await episode.finish(step.end_reason)
    return await episode.act((), turn)


def _live_env(
    trajectory: Trajectory, sandbox: Live, runtimes: Mapping[str, Any], parts: Parts
) -> ToolEnv:
    setup = trajectory.settings
    made = make_parts(setup, parts)
    with as_data_error():
        return ToolEnv(
            setting(setup, "family"),
            tasks=[trajectory.task],
            tools=[spec.name for spec in made.specs],  # in the order in which the prompt has them
            tool_options=setting(setup, "tool_options"),
            sandbox=sandbox,
            runtimes=runtimes,
            format=made.format,
            rewards=made.rubric,
            tokenizer=made.tokenizer,
            **msgspec.structs.asdict(made.budgets),
        )
