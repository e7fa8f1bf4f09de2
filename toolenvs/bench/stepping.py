"""What a barrier costs: the same episodes one at a time, in lock-step, and without a barrier."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from toolenvs import formats, runtimes
from toolenvs.bench.casts import Cast, LockStep, NoBarrier, OneAtATime
from toolenvs.bench.interleave import Progress, Timed, interleave
from toolenvs.bench.meter import MeteredRuntime
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, median_interval, paired_ratios, percentile
from toolenvs.bench.trace import (
    FRESH_TOOL,
    KEPT_TOOL,
    Trace,
    TraceHead,
    draw_trace,
    load_trace,
)
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime
from toolenvs.records import trajectory_hash
from toolenvs.tasks import load_tasks
from toolenvs.types import Trajectory

CASTS: dict[str, Callable[[int, dict[str, Any]], Cast]] = {
    "one_at_a_time": OneAtATime,
    "lock_step": LockStep,
    "no_barrier": NoBarrier,
}
SLOTS_PER_WORKER = 16
"""A slot may hold two sandboxes at once, the episode's own and a fresh one."""

TOOLS_ONLY = "tools_only"
"""The row of ``no_barrier`` with the model's time left out."""


class SteppingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One driver over all episodes, over ``n`` repeats.

    Attributes:
        wall_s: median of the wall time; ``low`` and ``high`` are its interval.
        client_cpu_s: median processor seconds of this process.
        over_bound: ``wall_s`` as a multiple of the bound; 0 for the row without the model's time.
    """

    family: str
    driver: str
    n: int
    wall_s: float
    low: float
    high: float
    client_cpu_s: float
    over_bound: float


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """What no driver can beat on this machine; ``bound_s`` is the largest of the three.

    Attributes:
        longest_episode_s: the model's time in the slowest episode.
        tool_cpu_per_core_s: processor seconds of all calls, by the processors there are.
        model_per_slot_s: the model's time over all episodes, by the slots there are; it exceeds
            the first only where there are more episodes than slots.
    """

    longest_episode_s: float
    tool_cpu_per_core_s: float
    model_per_slot_s: float
    bound_s: float


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What was played, the same by every driver in every repeat.

    ``trajectories_sha256`` is the hash of all trajectories' hashes.
    """

    envs: int
    episodes: int
    turns: int
    model_s: float
    trace: TraceHead
    trace_sha256: str
    trajectories_sha256: str


class SteppingReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_stepping`` found.

    ``ratios["no_barrier_vs_lock_step"]`` says how many times faster the first is than the second.
    """

    rows: tuple[SteppingRow, ...]
    ratios: dict[str, Interval]
    bound: Bound
    played: Played
    setting: Setting


def make_trace(head: TraceHead) -> Trace:
    """Draw the trace that ``head`` describes, over its tasks in the source's order."""
    source = load_tasks(head.tasks, family=head.family)
    tasks = [source[i] for i in range(min(len(source), head.episodes))]
    return draw_trace(head, tasks, formats.make(head.format).compose)


def keep_trace(path: Path, asked: Mapping[str, Any]) -> Trace:
    """Read the trace file, or draw a trace and write it where there is none.

    Args:
        path: the file.
        asked: fields of ``TraceHead``; what is left out is as in the file, or its default.

    Raises:
        DataError: The file cannot be used; the message starts with ``path:line``.
        UsageError: The file was drawn with other settings than were asked for.
    """
    if not path.exists():
        trace = make_trace(TraceHead(**asked))
        path.write_bytes(trace.encode())
        return trace
    trace = load_trace(path)
    for name, value in asked.items():
        if (found := getattr(trace.head, name)) != value:
            raise UsageError(
                f"{path}:1: this trace has {name}={found!r}, not {value!r}: leave {name} out, or "
                "name another file."
            )
    return trace


def bench_stepping(
    trace: Trace,
    *,
    envs: int = 32,
    sandbox: str | Runtime = "docker",
    repeats: int = 5,
    progress: Progress | None = None,
) -> SteppingReport:
    """Play the trace with every driver in each of ``repeats`` interleaved rounds.

    A first round without the model's time warms everything up and is not counted. Every play must
    give the same trajectories.

    Args:
        trace: what is played.
        envs: slots of the two drivers that have several.
        sandbox: a runtime or its name.
        repeats: rounds.
        progress: called at the end of each round.

    Raises:
        RuntimeFailure: The sandbox cannot be started, or two plays gave different trajectories.
    """
    if envs < 1:
        raise UsageError(f"envs={envs}: at least 1 is needed.")
    meter = MeteredRuntime(runtimes.make(sandbox) if isinstance(sandbox, str) else sandbox)
    setting = look_around(meter.name)
    with _casts(envs, trace.head, meter) as casts:
        stage = _Stage(trace, meter)
        for name, cast in casts.items():
            stage.play(f"{name} (warm-up)", cast, waits=False)
        timed: dict[str, Timed] = {
            name: partial(stage.play, name, cast, waits=True) for name, cast in casts.items()
        }
        timed[TOOLS_ONLY] = partial(stage.play, TOOLS_ONLY, casts["no_barrier"], waits=False)
        seconds = interleave(timed, repeats=repeats, warmup=0, progress=progress)
    bound = _bound(trace, envs, cores=setting.cores, tool_cpu_s=min(stage.tool_cpu_s))
    return SteppingReport(
        rows=tuple(
            _row(trace.head.family, name, values, stage.client_cpu_s[name], bound)
            for name, values in seconds.items()
        ),
        ratios={
            f"{fast}_vs_{slow}": median_interval(paired_ratios(seconds[slow], seconds[fast]))
            for slow, fast in combinations(CASTS, 2)
        },
        bound=bound,
        played=_played(trace, envs, stage.hash),
        setting=setting,
    )


class _Stage:
    """Plays a trace with any cast, compares what comes out, and keeps what it cost."""

    def __init__(self, trace: Trace, meter: MeteredRuntime) -> None:
        self._trace = trace
        self._meter = meter
        self.hash = ""
        self.tool_cpu_s: list[float] = []
        self.client_cpu_s: dict[str, list[float]] = {}

    def play(self, name: str, cast: Cast, *, waits: bool) -> float:
        """Play once and return the wall seconds."""
        tools_before, client_before = self._meter.cpu_s, time.process_time()
        began = time.perf_counter()
        trajectories = cast.play(self._trace, waits=waits)
        took = time.perf_counter() - began
        self.client_cpu_s.setdefault(name, []).append(time.process_time() - client_before)
        self.tool_cpu_s.append(self._meter.cpu_s - tools_before)
        self._compare(name, trajectories)
        return took

    def _compare(self, name: str, trajectories: Sequence[Trajectory]) -> None:
        hashes = "".join(map(trajectory_hash, trajectories))
        found = hashlib.sha256(hashes.encode()).hexdigest()
        self.hash = self.hash or found
        if found != self.hash:
            raise RuntimeFailure(
                "diverged",
                f"{name} gave other trajectories than the plays before it; "
                "what is not the same cannot be compared.",
            )


def _row(
    family: str, driver: str, seconds: Sequence[float], client_cpu_s: Sequence[float], bound: Bound
) -> SteppingRow:
    wall = median_interval(seconds)
    return SteppingRow(
        family=family,
        driver=driver,
        n=wall.n,
        wall_s=wall.median,
        low=wall.low,
        high=wall.high,
        client_cpu_s=percentile(client_cpu_s, 50),
        over_bound=0.0 if driver == TOOLS_ONLY else wall.median / bound.bound_s,
    )


def _bound(trace: Trace, envs: int, *, cores: int, tool_cpu_s: float) -> Bound:
    parts = trace.longest_s, tool_cpu_s / cores, trace.model_s / envs
    return Bound(
        longest_episode_s=parts[0],
        tool_cpu_per_core_s=parts[1],
        model_per_slot_s=parts[2],
        bound_s=max(parts),
    )


def _played(trace: Trace, envs: int, trajectories_sha256: str) -> Played:
    head = trace.head
    return Played(
        envs=envs,
        episodes=head.episodes,
        turns=sum(map(len, trace.episodes)),
        model_s=trace.model_s,
        trace=head,
        trace_sha256=trace.sha256,
        trajectories_sha256=trajectories_sha256,
    )


@contextlib.contextmanager
def _casts(envs: int, head: TraceHead, meter: MeteredRuntime) -> Iterator[dict[str, Cast]]:
    with contextlib.ExitStack() as stack:
        pool = SandboxPool(meter, max_workers=max(2, -(-envs // SLOTS_PER_WORKER)))
        stack.callback(pool.close)
        settings = {
            "family": head.family,
            "tasks": head.tasks,
            "tools": [KEPT_TOOL, FRESH_TOOL, "submit"],
            "sandbox": pool,
            "format": head.format,
            "max_turns": 100,
        }
        casts: dict[str, Cast] = {}
        for name, make in CASTS.items():
            casts[name] = make(envs, settings)
            stack.callback(casts[name].close)
        yield casts
