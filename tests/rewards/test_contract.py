"""What every reward must be, whoever writes it: tested over ``names()``."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from tests.trajectories import TASK, episode, episodes
from toolenvs import rewards
from toolenvs.protocols import RewardComponent
from toolenvs.types import Trajectory


@pytest.mark.parametrize("name", rewards.names())
def test_a_reward_is_what_it_declares(name: str) -> None:
    """Its name is its file's, its range is finite and holds 0, and it starts at 0."""
    reward = rewards.make(name)
    assert isinstance(reward, RewardComponent)
    assert reward.name == name
    assert math.isfinite(reward.low)
    assert math.isfinite(reward.high)
    assert reward.low <= 0.0 <= reward.high
    assert reward.when in ("step", "end")
    assert reward.score(TASK, episode()).value == 0.0
    assert list(reward.needs(TASK, episode())) == []


@pytest.mark.parametrize("name", rewards.names())
@settings(deadline=None)
@given(trajectory=episodes())
def test_a_reward_is_bounded_and_pure(name: str, trajectory: Trajectory) -> None:
    """On any course of events it stays in range, gives the same twice, and waits for the end."""
    reward = rewards.make(name)
    score = reward.score(TASK, trajectory)
    assert reward.low <= score.value <= reward.high
    assert rewards.make(name).score(TASK, trajectory) == score
    if reward.when == "end" and not trajectory.ended:
        assert score.value == 0.0
