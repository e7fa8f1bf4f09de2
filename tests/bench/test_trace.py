"""Traces: the same for equal settings, kept in a file without loss."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.bench.trace import Trace, TraceHead, draw_trace, load_trace
from toolenvs.errors import DataError, UsageError
from toolenvs.types import Task, ToolCall

TASKS = [
    Task(
        id=f"task-{i}",
        prompt="?",
        answer=str(i),
        gold_calls=({"name": "python", "arguments": {"code": f"print({i})"}},) * (i % 3),
    )
    for i in range(5)
]


def compose(calls: Sequence[ToolCall]) -> str:
    """Write calls as JSON; the text holds whatever its calls held."""
    return msgspec.json.encode(calls).decode()


heads = st.builds(
    TraceHead,
    seed=st.integers(0, 2**32),
    episodes=st.integers(1, 12),
    median_s=st.floats(1e-4, 100.0),
    sigma=st.floats(0.0, 3.0),
)


def write(trace: Trace, folder: str) -> Path:
    """The trace's file."""
    path = Path(folder) / "trace.jsonl"
    path.write_bytes(trace.encode())
    return path


@given(heads)
@settings(max_examples=50)
def test_a_trace_read_back_is_the_trace_written(head: TraceHead) -> None:
    """load(encode(trace)) == trace, latencies to the last bit, for all settings."""
    trace = draw_trace(head, TASKS, compose)
    with tempfile.TemporaryDirectory() as folder:
        again = load_trace(write(trace, folder))
    assert again == trace
    assert again.sha256 == trace.sha256


@given(heads)
def test_a_longer_trace_begins_with_the_shorter(head: TraceHead) -> None:
    """Adding episodes changes none of those before."""
    longer = msgspec.structs.replace(head, episodes=head.episodes + 2)
    short, long = draw_trace(head, TASKS, compose), draw_trace(longer, TASKS, compose)
    assert long.episodes[: head.episodes] == short.episodes


@given(heads)
def test_every_episode_ends_by_one_submission(head: TraceHead) -> None:
    """The last message of an episode submits and no other does; latencies are above 0."""
    for turns in draw_trace(head, TASKS, compose).episodes:
        assert ["submit" in turn.text for turn in turns] == [False] * (len(turns) - 1) + [True]
        assert all(turn.latency_s > 0 for turn in turns)
        assert [turn.turn for turn in turns] == list(range(len(turns)))


@given(heads)
def test_the_longest_episode_is_part_of_the_whole(head: TraceHead) -> None:
    """Longest <= model time <= episodes * longest, up to rounding."""
    trace = draw_trace(head, TASKS, compose)
    assert trace.longest_s <= trace.model_s * (1 + 1e-9)
    assert trace.model_s <= head.episodes * trace.longest_s * (1 + 1e-9)


def test_turns_are_unequal_and_some_answers_wrong() -> None:
    """What makes a barrier wait is there: episodes of different lengths, different latencies."""
    trace = draw_trace(TraceHead(episodes=64), TASKS, compose)
    lengths = {len(turns) for turns in trace.episodes}
    assert len(lengths) >= 4
    wrong = sum("no answer" in turns[-1].text for turns in trace.episodes)
    assert 0 < wrong < 64


def test_latencies_follow_the_stated_distribution() -> None:
    """Median and spread of the logarithm are those asked for, over many draws."""
    drawn = TraceHead(median_s=2.0, sigma=0.5).latencies(np.random.default_rng(0), 20_000)
    logs = np.log(drawn)
    assert np.median(drawn) == pytest.approx(2.0, rel=0.03)
    assert logs.std() == pytest.approx(0.5, rel=0.03)


def test_without_spread_every_turn_takes_the_median() -> None:
    """Sigma 0 is allowed and means a constant."""
    head = TraceHead(median_s=0.1, sigma=0.0)
    assert head.latencies(np.random.default_rng(0), 3) == [0.1] * 3


@pytest.mark.parametrize(
    "bad",
    [{"median_s": 0.0}, {"median_s": float("nan")}, {"sigma": -1.0}, {"episodes": 0}, {"seed": -1}],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    """The message names the value."""
    with pytest.raises(UsageError, match=f"{next(iter(bad))}=.*give"):
        TraceHead(**bad)


def test_a_trace_without_tasks_is_refused() -> None:
    """There is nothing to play."""
    with pytest.raises(UsageError, match="at least one task"):
        draw_trace(TraceHead(), [], compose)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda lines: [], ":1: the file is empty"),
        (lambda lines: lines[1:], ":1: "),
        (lambda lines: lines[:-1], "ends before"),
        (lambda lines: [lines[0], *lines[2:]], ":2: "),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], ":3: .*belongs"),
        (lambda lines: [*lines[:3], b"{", *lines[3:]], ":4: "),
        (lambda lines: [lines[0], lines[1].replace(b'"latency_s":', b'"latency_s":-')], ":2: "),
    ],
    ids=["empty", "no head", "cut", "a turn missing", "a turn twice", "no JSON", "negative"],
)
def test_a_damaged_trace_is_refused_by_line(damage: object, named: str, tmp_path: Path) -> None:
    """A file that is not what was written never passes for a shorter trace."""
    assert callable(damage)
    tasks = [task for task in TASKS if len(task.gold_calls) == 2]
    trace = draw_trace(TraceHead(episodes=3), tasks, compose)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\n".join(damage(trace.encode().splitlines())))
    with pytest.raises(DataError, match=named):
        load_trace(path)
