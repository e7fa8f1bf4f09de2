"""The stepping bench: same episodes by every driver, or an error; its report adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.bench.fakes import InProcessRuntime
from toolenvs.bench.casts import LockStep, NoBarrier, OneAtATime
from toolenvs.bench.stepping import (
    CASTS,
    TOOLS_ONLY,
    SteppingReport,
    bench_stepping,
    keep_trace,
    make_trace,
)
from toolenvs.bench.trace import Trace, TraceHead, TraceTurn
from toolenvs.errors import DataError, RuntimeFailure, UsageError

TINY: dict[str, Any] = {
    "tasks": "generated:seed=3,n=5",
    "seed": 1,
    "episodes": 5,
    "median_s": 1e-4,
    "sigma": 0.5,
}


def tiny() -> Trace:
    """A trace of a few short episodes."""
    return make_trace(TraceHead(**TINY))


def check_report(report: SteppingReport, trace: Trace, *, repeats: int) -> None:
    """What every report keeps, whatever the machine."""
    assert [row.driver for row in report.rows] == [*CASTS, TOOLS_ONLY]
    for row in report.rows:
        assert row.family == "math_tir"
        assert row.n == repeats
        assert 0 < row.low <= row.wall_s <= row.high
    assert set(report.ratios) == {
        "lock_step_vs_one_at_a_time",
        "no_barrier_vs_one_at_a_time",
        "no_barrier_vs_lock_step",
    }
    for ratio in report.ratios.values():
        assert 0 < ratio.low <= ratio.median <= ratio.high
    bound = report.bound
    assert bound.longest_episode_s == pytest.approx(trace.longest_s)
    assert bound.bound_s == max(
        bound.longest_episode_s, bound.tool_cpu_per_core_s, bound.model_per_slot_s
    )
    assert report.played.trace_sha256 == trace.sha256
    assert report.played.turns == sum(map(len, trace.episodes))
    assert msgspec.json.encode(report)


@pytest.mark.parametrize("envs", [1, 2, 7])
def test_every_driver_plays_the_same_episodes(envs: int) -> None:
    """Fewer, as many and more slots than episodes: one set of trajectories, nothing left open."""
    trace, runtime = tiny(), InProcessRuntime()
    rounds: list[int] = []
    report = bench_stepping(
        trace, envs=envs, sandbox=runtime, repeats=2, progress=lambda: rounds.append(1)
    )
    check_report(report, trace, repeats=2)
    assert len(rounds) == 2
    assert runtime.open_sandboxes == 0


def test_the_trajectories_do_not_depend_on_the_slots() -> None:
    """The hash of all trajectories is a property of the trace."""
    hashes = {
        bench_stepping(
            tiny(), envs=envs, sandbox=InProcessRuntime(), repeats=1
        ).played.trajectories_sha256
        for envs in (1, 3)
    }
    assert len(hashes) == 1


def test_no_driver_is_faster_than_the_slowest_episode() -> None:
    """The model's time is really waited for: the bound holds for every driver."""
    trace = make_trace(TraceHead(**{**TINY, "median_s": 0.01}))
    report = bench_stepping(trace, envs=5, sandbox=InProcessRuntime(), repeats=1)
    for row in report.rows:
        if row.driver != TOOLS_ONLY:
            assert row.over_bound >= 1.0
    one = next(row for row in report.rows if row.driver == "one_at_a_time")
    assert one.low >= trace.model_s


def test_other_trajectories_are_an_error_not_a_figure() -> None:
    """A sandbox that answers differently from one play to the next ends the bench."""
    with pytest.raises(RuntimeFailure, match="other trajectories"):
        bench_stepping(tiny(), envs=2, sandbox=InProcessRuntime(wrong_from=0), repeats=1)


@pytest.mark.parametrize("cast", [OneAtATime, LockStep, NoBarrier])
def test_a_failing_machine_ends_the_play(cast: Any) -> None:
    """No driver counts an episode that the machine broke."""
    playing = cast(
        2,
        {
            "tasks": TINY["tasks"],
            "sandbox": InProcessRuntime(fails_from=0),
            "tools": ["python_session", "python", "submit"],
        },
    )
    try:
        with pytest.raises(RuntimeFailure):
            playing.play(tiny(), waits=False)
    finally:
        playing.close()


@pytest.mark.parametrize("cast", [OneAtATime, LockStep, NoBarrier])
def test_a_trace_that_stops_too_early_is_an_error(cast: Any) -> None:
    """An episode must end with its trace: here the submission was taken out."""
    trace = tiny()
    episodes = tuple(_without_end(turns) for turns in trace.episodes if len(turns) > 1)
    short = Trace(msgspec.structs.replace(trace.head, episodes=len(episodes)), episodes)
    playing = cast(
        2,
        {
            "tasks": TINY["tasks"],
            "sandbox": InProcessRuntime(),
            "tools": ["python_session", "python", "submit"],
        },
    )
    try:
        with pytest.raises(RuntimeFailure, match="the trace ends"):
            playing.play(short, waits=False)
    finally:
        playing.close()


def _without_end(turns: tuple[TraceTurn, ...]) -> tuple[TraceTurn, ...]:
    return tuple(msgspec.structs.replace(turn, turns=turn.turns - 1) for turn in turns[:-1])


def test_a_kept_trace_is_played_again(tmp_path: Path) -> None:
    """The first call writes the file, the second reads it, whatever is left unsaid."""
    path = tmp_path / "trace.jsonl"
    written = keep_trace(path, TINY)
    before = path.read_bytes()
    assert keep_trace(path, {}) == keep_trace(path, TINY) == written
    assert path.read_bytes() == before


def test_a_kept_trace_is_not_taken_for_another(tmp_path: Path) -> None:
    """Asking for other settings than the file has is an error that names both values."""
    path = tmp_path / "trace.jsonl"
    keep_trace(path, TINY)
    with pytest.raises(UsageError, match=r"sigma=0\.5, not 0\.75"):
        keep_trace(path, {"sigma": 0.75})
    path.write_text("")
    with pytest.raises(DataError, match="empty"):
        keep_trace(path, {})


def test_a_batch_without_slots_is_refused() -> None:
    """Nothing starts."""
    with pytest.raises(UsageError, match="envs=0"):
        bench_stepping(tiny(), envs=0, sandbox=InProcessRuntime())


@pytest.mark.local
def test_the_bench_runs_in_the_local_sandbox() -> None:
    """Real sandboxes give every driver the same trajectories too."""
    report = bench_stepping(tiny(), envs=3, sandbox="local", repeats=1)
    check_report(report, tiny(), repeats=1)
    assert report.bound.tool_cpu_per_core_s > 0


@pytest.mark.docker
def test_the_bench_runs_in_the_docker_sandbox() -> None:
    """And so do containers."""
    report = bench_stepping(tiny(), envs=3, sandbox="docker", repeats=1)
    check_report(report, tiny(), repeats=1)
    assert report.bound.tool_cpu_per_core_s > 0
