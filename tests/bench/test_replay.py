"""``bench replay``: every way runs and is checked; the numbers are measured, never asserted."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from toolenvs.bench.replay import SMALL, bench_replay
from toolenvs.cli import app
from toolenvs.errors import UsageError


def test_steps_and_look_ups_are_timed_side_by_side() -> None:
    """A replayed step beside a dictionary, a large cache beside a small one."""
    rounds: list[int] = []
    report = bench_replay(entries=SMALL + 1, repeats=2, warmup=1, progress=lambda: rounds.append(1))
    assert [row.way for row in report.rows] == [
        "env_step",
        "dict",
        "cache_of_1000",
        "cache_of_1001",
    ]
    assert all(row.n == 2 and row.per_s > 0 for row in report.rows)
    assert set(report.ratios) == {
        "env_step / dict",
        "cache_of_1000 / dict",
        "cache_of_1001 / cache_of_1000",
    }
    assert len(rounds) == 3


def test_a_large_cache_that_is_not_larger_is_refused() -> None:
    """The message says what is allowed."""
    with pytest.raises(UsageError, match="more than 1000"):
        bench_replay(entries=SMALL)


def test_the_command_prints_one_json_object() -> None:
    """As every bench does: rows, ratios, and where it was measured."""
    asked = ["bench", "replay", "--entries", "1001", "--repeats", "1", "--warmup", "0", "--json"]
    printed = CliRunner().invoke(app, asked)
    assert printed.exit_code == 0
    assert set(json.loads(printed.stdout)) == {"rows", "ratios", "setting"}
