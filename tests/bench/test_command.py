"""``toolenvs bench``: one JSON object with the promised keys, else tables; faults in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolenvs.cli import app

SMALL = ["--sandbox", "local", "--repeats", "1"]
TINY = ["--envs", "2", "--episodes", "3", "--median-s", "0.0001"]


def bench(*arguments: str) -> tuple[int, str]:
    """Exit code and stdout of ``toolenvs bench ...``."""
    result = CliRunner().invoke(app, ["bench", *arguments])
    return result.exit_code, result.stdout


@pytest.mark.local
def test_step_prints_one_object() -> None:
    """Rows with way, payload, n, p50_ms and p95_ms; ratios; the setting."""
    code, printed = bench("step", *SMALL, "--warmup", "0", "--json")
    assert code == 0
    report = json.loads(printed)
    assert set(report) == {"rows", "ratios", "setting"}
    for row in report["rows"]:
        assert {"way", "payload", "n", "p50_ms", "p95_ms"} <= set(row)
    for ratio in report["ratios"].values():
        assert {"median", "low", "high"} <= set(ratio)
    assert {"cores", "python", "sandbox", "engine"} <= set(report["setting"])
    assert {row["payload"] for row in report["rows"]} == {"print", "sympy"}


@pytest.mark.local
def test_step_prints_tables() -> None:
    """Without --json the same as tables."""
    code, printed = bench("step", *SMALL, "--warmup", "0", "--payload", "print")
    assert code == 0
    assert "session_env" in printed
    assert "cores" in printed


@pytest.mark.local
def test_stepping_prints_one_object_and_keeps_its_trace(tmp_path: Path) -> None:
    """Rows with family, driver and wall_s; a second run plays the trace that the first wrote."""
    trace = str(tmp_path / "trace.jsonl")
    code, printed = bench("stepping", *SMALL, *TINY, "--trace", trace, "--json")
    assert code == 0
    report = json.loads(printed)
    assert set(report) == {"rows", "ratios", "bound", "played", "setting"}
    for row in report["rows"]:
        assert {"family", "driver", "wall_s", "n", "low", "high"} <= set(row)
    assert "no_barrier_vs_lock_step" in report["ratios"]
    code, printed = bench("stepping", *SMALL, "--envs", "3", "--trace", trace, "--json")
    assert code == 0
    again = json.loads(printed)
    for kept in ("trace_sha256", "trajectories_sha256", "episodes", "turns"):
        assert again["played"][kept] == report["played"][kept]


@pytest.mark.local
def test_stepping_prints_tables() -> None:
    """Without --json the same as tables, with the bound and what was played."""
    code, printed = bench("stepping", *SMALL, *TINY)
    assert code == 0
    for word in ("no_barrier", "bound_s", "trajectories_sha256"):
        assert word in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["step", "--sandbox", "dokcer"],
        ["step", "--payload", "prind"],
        ["step", "--repeats", "0"],
        ["stepping", "--envs", "0"],
        ["stepping", "--episodes", "0"],
        ["stepping", "--tasks", "nowhere:x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_code_2(arguments: list[str]) -> None:
    """And prints nothing on stdout."""
    assert bench(*arguments) == (2, "")
