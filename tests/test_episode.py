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
from toolenvs.replay import replay_trajectory
from toolenvs.types import ToolCall

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
    """A Turn's ids, log-probabilities and policy version stand in the record."""
    env = play([Turn("hm", "stop", "", (5, 6), (-0.5, -0.25), 41)])
    step = env.episode.trajectory.steps[0]
    assert (step.token_ids, step.logprobs, step.finish_reason) == ((5, 6), (-0.5, -0.25), "stop")
    assert step.policy_version == 41
    env.close()


def test_a_failure_keeps_what_was_paid_before_and_pays_nothing_more() -> None:
    """The step that the machine ended has reward 0 and every score masked."""
    env = play([python("count"), python("die")])
    last = env.episode.trajectory.steps[-1]
    assert (last.failure, last.truncated, last.reward) == ("sandbox_died", True, 0.0)
    assert all(score.masked for score in last.scores.values())
    env.close()


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_a_message_that_is_too_long_is_the_agents_fault(finish_reason: str) -> None:
    """Nothing of it is run, the format says why, and it replays; cut by the limit, it is cut."""
    long = Turn(python("count") + "a" * 2_000_000, finish_reason, token_ids=(1, 2), logprobs=(0, 0))
    env = play([long, answer("2")])
    step, *rest = env.episode.trajectory.steps
    assert len(step.action) == 1_000_001
    assert step.token_ids == (1, 2)
    assert step.calls == ()
    if finish_reason == "length":
        assert (step.end_reason, step.results) == ("length", ())
    else:
        assert step.results[0].error is not None
        assert step.results[0].error.kind == "format"
        assert "1,000,000" in step.observation
        assert rest[0].end_reason == "submit"
    recorded = decode_trajectory(encode_trajectory(env.episode.trajectory))
    assert not replay_trajectory(recorded).differences
    env.close()


def nested(depth: int) -> Any:
    """A list in a list in a list ..."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(600), nested(200), b"x", {1: 2}, {"a"}, [10**5000]])
def test_a_call_that_no_record_can_hold_is_answered_and_not_run(value: Any) -> None:
    """The others are made, and the episode can be written and replayed."""
    env = play([])
    good = ToolCall("python", {"code": "count"})
    env.act([ToolCall("python", {"code": value}, "c1"), good])
    step = env.episode.trajectory.steps[0]
    assert step.results[0].error is not None
    assert step.results[0].error.kind == "bad_arguments"
    assert "arguments" in step.results[0].text
    assert step.calls == (ToolCall("python", {}, "c1"), good)
    assert step.results[1].text == "0"
    env.finish("done")
    recorded = decode_trajectory(encode_trajectory(env.episode.trajectory))
    assert not replay_trajectory(recorded).differences
    env.close()
