"""One episode: one record, scored the same live and offline."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeRuntime
from tests.test_env import TASKS, answer, python
from toolenvs import Budgets, ToolEnv, Turn, UsageError, rescore
from toolenvs.records import decode_trajectory, encode_trajectory

MESSAGES = [
    "hm",
    python("count"),
    python("raise", tool="python_session"),
    python("count", tool="pythn"),
    answer("2"),
    answer("9"),
    Turn("cut off", finish_reason="length"),
    python("die"),
]


def play(messages: list[str], **settings: Any) -> ToolEnv:
    """Play messages until the episode ends."""
    env = ToolEnv(
        tasks=TASKS,
        sandbox=FakeRuntime(),
        tools=["python", "python_session", "submit"],
        max_turns=4,
        **settings,
    )
    env.reset(options={"task_id": "t1"})
    for message in messages:
        _, _, terminated, truncated, _ = env.step(message)
        if terminated or truncated:
            break
    return env


@settings(max_examples=60, deadline=None)
@given(messages=st.lists(st.sampled_from(MESSAGES), max_size=5))
def test_rescoring_the_record_gives_what_was_paid(messages: list[str]) -> None:
    """For all episodes: terms, rewards and score follow from the written record alone."""
    env = play(messages)
    trajectory = decode_trajectory(encode_trajectory(env.episode.trajectory))
    assert trajectory == env.episode.trajectory
    again = rescore(trajectory, env.rubric)
    assert [s.reward for s in again] == [step.reward for step in trajectory.steps]
    assert [dict(s.terms) for s in again] == [dict(step.terms) for step in trajectory.steps]
    env.close()


@settings(max_examples=30, deadline=None)
@given(messages=st.lists(st.sampled_from(MESSAGES[:5]), min_size=1, max_size=4))
def test_finish_pays_what_the_end_pays(messages: list[str]) -> None:
    """For all episodes: giving up leaves nothing unsettled; stalling beats no wrong answer."""
    env = play(messages)
    if not env.episode.trajectory.ended:
        env.finish("given up")
    assert env.episode.trajectory.ended
    assert env.episode.trajectory.score >= 0.0
    env.close()


@pytest.mark.parametrize("name", ["max_turns", "max_calls", "max_obs_tokens", "max_turn_tokens"])
@pytest.mark.parametrize("value", [0, -2])
def test_a_budget_without_meaning_is_refused(name: str, value: int) -> None:
    """The message names the budget and its value."""
    with pytest.raises(UsageError, match=f"{name}={value}"):
        Budgets(**{name: value})


def test_a_tokenizer_measures_the_budgets() -> None:
    """Sizes are counted by the callable that is given."""
    env = play([], tokenizer=lambda text: len(text.split()), max_episode_tokens=10_000)
    words = len(env.episode.trajectory.prompt.split())
    assert env.episode.left()["tokens"] == 10_000 - words
    env.close()


def test_sampled_tokens_are_kept_as_they_were_sampled() -> None:
    """A Turn's ids and log-probabilities stand in the record."""
    env = play([Turn("hm", "stop", "", (5, 6), (-0.5, -0.25))])
    step = env.episode.trajectory.steps[0]
    assert (step.token_ids, step.logprobs, step.finish_reason) == ((5, 6), (-0.5, -0.25), "stop")
    env.close()


def test_a_failure_keeps_what_was_paid_before_and_pays_nothing_more() -> None:
    """The step that the machine ended has reward 0 and every score masked."""
    env = play([python("count"), python("die")])
    last = env.episode.trajectory.steps[-1]
    assert (last.failure, last.truncated, last.reward) == ("sandbox_died", True, 0.0)
    assert all(score.masked for score in last.scores.values())
    env.close()
