"""Play recorded episodes again, from the record alone or for real, and compare to the byte.

    report = replay_run("runs/first")
    report.identical == report.episodes

A replay from the record parses every recorded action again, serves the results by their position,
renders, scores, and compares each step with the recorded one; it needs no sandbox, no network and
no tool. A live replay runs the tools again.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec

from toolenvs import formats
from toolenvs.comparison import Comparison, Difference, EpisodeReplay
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.episode import Budgets, Episode
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime, ToolFormat
from toolenvs.records import Damage, read_trajectories
from toolenvs.rubric import Rubric
from toolenvs.types import Step, ToolCall, ToolResult, ToolSpec, Trajectory, Turn

Live = str | Runtime | SandboxPool

_packer = msgspec.msgpack.Encoder(order="sorted")


class RunReplay(msgspec.Struct, frozen=True, kw_only=True):
    """How the replay of a run went.

    Attributes:
        episodes: those that had begun. identical: those without any difference.
        steps, identical_steps: of all of them.
        unplayed: episodes that never began, because a machine failed.
        differences: the first of each step that has one.
        damaged: lines that hold no episode; a last line that a crash cut is not counted.
    """

    episodes: int
    identical: int
    steps: int
    identical_steps: int
    unplayed: int
    differences: tuple[Difference, ...]
    damaged: tuple[Damage, ...]

    @property
    def clean(self) -> bool:
        """True when everything that was recorded came out again."""
        return not self.differences and not self.damaged


class Parts(msgspec.Struct, frozen=True):
    """What an episode needs that its record does not hold as data; None: take it from there."""

    format: ToolFormat | None = None
    rubric: Rubric | None = None
    tokenizer: Callable[[str], int] | None = None


def replay_run(
    path: str | os.PathLike[str],
    *,
    live: Live | None = None,
    runtimes: Mapping[str, Any] | None = None,
    parts: Parts = Parts(),  # noqa: B008 - frozen
    progress: Callable[[EpisodeReplay], None] | None = None,
) -> RunReplay:
    """Replay every episode of a run.

    Args:
        path: the folder of a run or a file of trajectories.
        live: run the tools again, in this sandbox; None: from the record alone.
        runtimes: live, what else the tools need, such as the ``resources`` of the tasks' source;
            see ``ToolEnv``.
        parts: what the records do not hold as data.
        progress: called with each episode.

    Raises:
        UsageError: There is no episode, or one needs ``parts`` that were not given.
        RuntimeFailure: Live, no sandbox can be started.
    """
    damaged: list[Damage] = []
    played: list[EpisodeReplay] = []
    with ExitStack() as stage:
        for number, trajectory in enumerate(read_trajectories(path, damaged=damaged.append)):
            if not _has_begun(trajectory):
                played.append(EpisodeReplay(steps=0, identical_steps=0, played=False))
            elif live is None:
                played.append(replay_trajectory(trajectory, number=number, parts=parts))
            else:
                env = _live_env(trajectory, live, runtimes or {}, parts)
                # An environment ends after the next has its share of the pools, which stay warm.
                before = stage.pop_all()
                stage.callback(env.close)
                with before:
                    played.append(_play_live(env, trajectory, number))
            if progress is not None:
                progress(played[-1])
    if not played:
        raise UsageError(f"{path} holds no episode to replay.")
    begun = [one for one in played if one.played]
    return RunReplay(
        episodes=len(begun),
        identical=sum(not one.differences for one in begun),
        steps=sum(one.steps for one in begun),
        identical_steps=sum(one.identical_steps for one in begun),
        unplayed=len(played) - len(begun),
        differences=tuple(difference for one in begun for difference in one.differences),
        damaged=tuple(piece for piece in damaged if not _is_torn_tail(piece)),
    )


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
    """
    setup = trajectory.settings
    rubric = parts.rubric or _make_rubric(setup)
    record = _Record()
    episode = Episode(
        trajectory.task,
        specs=_specs(setup),
        format=parts.format or _make_format(setup),
        rubric=rubric,
        executor=record.agent,  # type: ignore[arg-type]
        referee=record.referee,  # type: ignore[arg-type]
        budgets=msgspec.convert(_setting(setup, "budgets"), Budgets),
        tokenizer=_tokenizer(setup, parts),
        seed=trajectory.seed,
        sample=trajectory.sample,
        settings=setup,
    )
    compare = Comparison(trajectory, number)
    compare.start(episode, rubric=rubric.hash)
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

    A step in which a machine failed ends the comparison: it was no fact.

    Args:
        trajectory: the episode.
        sandbox: where to run, as ``ToolEnv`` takes it.
        runtimes: what else the tools need, likewise.
        number: its number in the run.
        parts: what the record does not hold as data.

    Raises:
        UsageError: A tool, format or reward is not known here.
        RuntimeFailure: No sandbox can be started.
    """
    with closing(_live_env(trajectory, sandbox, runtimes or {}, parts)) as env:
        return _play_live(env, trajectory, number)


def _play_live(env: ToolEnv, trajectory: Trajectory, number: int) -> EpisodeReplay:
    steps = [step for step in trajectory.steps if not step.failure]
    compare = Comparison(trajectory, number)
    env.reset(
        options={
            "task_id": trajectory.task.id,
            "sandbox_seed": trajectory.seed,
            "sample": trajectory.sample,
        }
    )
    compare.start(env.episode, rubric=env.rubric.hash)
    for step in steps:
        if not compare.goes_on(env.episode):
            break
        compare.step(step, run(_again(env.episode, step)))
    return compare.outcome(len(steps))


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
    turn = Turn(step.action, step.finish_reason, step.stop_string, step.token_ids, step.logprobs)
    if step.parsed is not None:
        return await episode.step(turn)
    if step.calls or (step.action and not step.failure):
        return await episode.act(step.calls, turn)
    if step.failure:
        return await episode.fail(step.failure)
    if step.end_reason:
        return await episode.finish(step.end_reason)
    return await episode.act((), turn)


def _has_begun(trajectory: Trajectory) -> bool:
    return bool(trajectory.settings or trajectory.prompt)


def _live_env(
    trajectory: Trajectory, sandbox: Live, runtimes: Mapping[str, Any], parts: Parts
) -> ToolEnv:
    setup = trajectory.settings
    return ToolEnv(
        _setting(setup, "family"),
        tasks=[trajectory.task],
        tools=[spec.name for spec in _specs(setup)],  # in the order in which the prompt has them
        tool_options=_setting(setup, "tool_options"),
        sandbox=sandbox,
        runtimes=runtimes,
        format=parts.format or _make_format(setup),
        rewards=parts.rubric or _make_rubric(setup),
        tokenizer=_tokenizer(setup, parts),
        **_setting(setup, "budgets"),
    )


def _specs(setup: Mapping[str, Any]) -> list[ToolSpec]:
    return msgspec.json.decode(_setting(setup, "specs"), type=list[ToolSpec])


def _make_format(setup: Mapping[str, Any]) -> ToolFormat:
    choice = [_setting(setup, "format"), _setting(setup, "format_options")]
    return _known_format(_packer.encode(choice))


@functools.lru_cache(maxsize=16)
def _known_format(choice: bytes) -> ToolFormat:
    name, options = msgspec.msgpack.decode(choice)
    return formats.make(name, **options)


def _make_rubric(setup: Mapping[str, Any]) -> Rubric:
    content = _setting(setup, "rewards")
    if content is None:
        raise UsageError(
            "the rubric of this episode held an object, which is no data: give the rubric again."
        )
    return _known_rubric(_packer.encode(content))


@functools.lru_cache(maxsize=16)
def _known_rubric(content: bytes) -> Rubric:
    return Rubric.from_dict(msgspec.msgpack.decode(content))


def _tokenizer(setup: Mapping[str, Any], parts: Parts) -> Callable[[str], int] | None:
    name = _setting(setup, "tokenizer")
    if name and parts.tokenizer is None:
        raise UsageError(
            f"this episode measured its texts by {name}, which is no data: give the tokenizer "
            "again."
        )
    return parts.tokenizer


def _setting(setup: Mapping[str, Any], name: str) -> Any:
    if name not in setup:
        raise UsageError(
            f"the record has no setting {name!r}: an early version of toolenvs, or another "
            "program, wrote it, and it cannot be replayed."
        )
    return setup[name]


def _is_torn_tail(piece: Damage) -> bool:
    file = Path(piece.path)
    if piece.offset + piece.length < file.stat().st_size:
        return False
    with file.open("rb") as lines:
        lines.seek(-1, os.SEEK_END)
        return lines.read(1) != b"\n"
