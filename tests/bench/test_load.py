"""The load bench and the isolation bench: complete, checked, honest about what was left out."""

from __future__ import annotations

import msgspec
import pytest

from tests.bench.fakes import InProcessRuntime
from toolenvs.bench.isolation import bench_isolation
from toolenvs.bench.load import LoadReport, bench_load
from toolenvs.bench.ways import make_sandbox
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError

MEASURES = {
    *("cold_worker", "spawn_with_spare", "spawn_without_spare", "env_reset", "env_first_step"),
    *("print_at_2", "numpy_at_2", "sympy_at_2", "fresh_sympy"),
}
MEMORY = {"worker_memory", "idle_episode", "episode_after_sympy"}
FORKS = {"fork_8", "branch"}


def check_report(report: LoadReport, fresh: int) -> None:
    """What every report keeps, whatever the machine."""
    measures = {row.measure for row in report.rows}
    assert measures - MEMORY - FORKS == MEASURES
    assert ("fork_8" in measures) == ("fork" not in report.skipped)
    assert (measures & MEMORY == MEMORY) == ("memory" not in report.skipped)
    for row in report.rows:
        assert 0 < row.least <= row.p50 <= row.most
    assert report.fresh == {"right": fresh}
    assert msgspec.json.encode(report)


@pytest.mark.slow
def test_a_sandbox_without_processes_has_no_memory_row() -> None:
    """All other rows are there, and what is left out is said."""
    report = bench_load(InProcessRuntime(), sessions=2, repeats=1, fresh_calls=5)
    check_report(report, fresh=5)
    assert set(report.skipped) == {"memory", "fork"}


def test_a_wrong_answer_is_no_figure() -> None:
    """It ends the bench, or is counted as wrong where that is the question."""
    with pytest.raises(RuntimeFailure, match="a wrong answer has no speed"):
        bench_load(InProcessRuntime(wrong_from=5), sessions=2, repeats=1)


def test_names_and_numbers_are_checked() -> None:
    """Nothing is measured that was not asked for."""
    with pytest.raises(UsageError, match="at least 1"):
        bench_load(InProcessRuntime(), sessions=0)
    with pytest.raises(UnknownNameError, match="dokcer"):
        make_sandbox("dokcer")


@pytest.mark.local
@pytest.mark.slow
def test_the_load_bench_runs_in_the_local_sandbox() -> None:
    """With memory where the processes can be read, and with forks."""
    report = bench_load("local", sessions=2, repeats=1, fresh_calls=4)
    check_report(report, fresh=4)
    assert "fork" not in report.skipped


@pytest.mark.local
def test_the_isolation_bench_says_what_it_left_out() -> None:
    """Every level is a row or is skipped with a reason; the first row is what all is held against.

    Without root that is the namespaces, with root a fork alone.
    """
    report = bench_isolation(repeats=2, warmup=0)
    levels = {row.level for row in report.rows}
    every = {"fork", "limits", "walls", "namespaces", "container", "gvisor"}
    assert levels | set(report.skipped) == every
    assert not levels & set(report.skipped)
    assert "namespaces" in levels
    assert len(report.ratios) == len(report.rows) - 1
    for row in report.rows:
        assert row.spawn_p50_ms > 0
        assert 0 < row.session_p50_ms <= row.fresh_p50_ms
