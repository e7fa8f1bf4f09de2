"""The share of calls without an error, which only guides."""

from __future__ import annotations

import pytest

from tests.trajectories import TASK, episode, python, submit, unreadable
from toolenvs.rewards.tool_success import ToolSuccess
from toolenvs.types import Step

BAD = python(failed=True)


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ([submit()], 0.0),
        ([unreadable()], 0.0),
        ([python()], 1.0),
        ([BAD], 0.0),
        ([BAD, python(), python(), submit()], 2 / 3),
        ([unreadable(), python()], 1.0),
    ],
)
def test_calls_count_and_submissions_do_not(steps: list[Step], value: float) -> None:
    """Good calls by all calls; a submission or an unreadable message is no call."""
    assert ToolSuccess().score(TASK, episode(*steps)).value == pytest.approx(value)


def test_it_returns_to_0() -> None:
    """Being shaping, it cannot pay for calls by the end of the episode."""
    assert ToolSuccess().shaping
