"""The step bench: every way, every payload, every answer checked."""

from __future__ import annotations

import msgspec
import pytest

from tests.bench.fakes import InProcessRuntime
from toolenvs.bench.step import StepReport, bench_step
from toolenvs.bench.ways import PAYLOADS
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError

SESSION = ["session_first", "session", "session_env_first", "session_env"]


def check_report(report: StepReport, ways: list[str], payloads: list[str], n: int) -> None:
    """What every report keeps, whatever the machine."""
    assert {(row.way, row.payload) for row in report.rows} == {
        (way, payload) for way in ways for payload in payloads
    }
    for row in report.rows:
        assert row.n == n
        assert 0 < row.least_ms <= row.p50_ms <= row.p95_ms
    assert set(report.ratios) == {
        f"{payload}: {way} / session" for way in ways if way != "session" for payload in payloads
    }
    for ratio in report.ratios.values():
        assert 0 < ratio.low <= ratio.median <= ratio.high
    assert report.setting.cores >= 1
    assert msgspec.json.encode(report)


def test_every_way_runs_every_payload() -> None:
    """Rows and ratios are complete and the sandboxes are given back."""
    runtime = InProcessRuntime()
    report = bench_step(runtime, payloads=list(PAYLOADS), repeats=2, warmup=1)
    check_report(report, [*SESSION, "fresh_env", "host_python"], list(PAYLOADS), n=2)
    assert runtime.open_sandboxes <= 1  # the worker's own, which ends with its worker


def test_a_wrong_answer_is_an_error_not_a_figure() -> None:
    """The message names the way, what it printed and what it should have printed."""
    with pytest.raises(RuntimeFailure, match="instead of '2'"):
        bench_step(InProcessRuntime(wrong_from=60), payloads=["print"], repeats=50)


def test_names_and_numbers_are_checked() -> None:
    """Nothing is measured that was not asked for."""
    with pytest.raises(UnknownNameError, match="payload"):
        bench_step(InProcessRuntime(), payloads=["prind"])
    with pytest.raises(UsageError, match="repeats=0"):
        bench_step(InProcessRuntime(), repeats=0)
    with pytest.raises(UsageError, match="'docker'"):
        bench_step(InProcessRuntime(), docker_run=True)


@pytest.mark.local
def test_the_bench_runs_in_the_local_sandbox() -> None:
    """The baseline there is a new interpreter of the host."""
    report = bench_step("local", repeats=2, warmup=1)
    check_report(report, [*SESSION, "fresh_env", "host_python"], ["print", "sympy"], n=2)


@pytest.mark.docker
def test_the_bench_runs_in_the_docker_sandbox() -> None:
    """The baselines there are docker exec in the same container, and docker run."""
    report = bench_step("docker", repeats=1, warmup=0, docker_run=True)
    check_report(
        report,
        [*SESSION, "fresh_env", "docker_exec", "docker_run"],
        ["print", "sympy"],
        n=1,
    )
    assert report.setting.engine
