"""``bench step --family sql``: every way runs and is checked; numbers are never asserted."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from toolenvs.bench.sql import bench_sql
from toolenvs.cli import app


@pytest.mark.local
def test_a_step_is_timed_beside_the_bare_query_on_both_engines(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs of both engines, and 32 episodes on one file without one failure."""
    monkeypatch.setenv("TOOLENVS_POSTGRES_URL", postgres)
    report = bench_sql("local", repeats=2, warmup=0)
    ways = ["sqlite bare", "sqlite step", "postgres bare", "postgres step"]
    assert [row.way for row in report.rows] == ways
    assert set(report.added_ms) == {"sqlite", "postgres"}
    assert report.at_once == {"episodes": 32, "steps": 640, "failed": 0}
    assert report.skipped == {}


@pytest.mark.local
def test_without_a_server_the_rest_is_measured_and_the_reason_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one JSON object."""
    monkeypatch.setenv("TOOLENVS_POSTGRES_URL", "postgresql://x@127.0.0.1:1/x")
    asked = ["bench", "step", "--family", "sql", "--sandbox", "local", "--repeats", "1"]
    printed = CliRunner().invoke(app, [*asked, "--warmup", "0", "--json"])
    assert printed.exit_code == 0
    found = json.loads(printed.stdout)
    assert "does not answer" in found["skipped"]["postgres"]
    assert {"rows", "ratios", "setting"} <= set(found)
