"""Brevity, bounded: full within ``free``, nothing from ``limit`` on."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectories import TASK, episode, python, stopped, submit
from toolenvs.errors import UsageError
from toolenvs.rewards.length import Length


@pytest.mark.parametrize(
    ("size", "value"), [(1, 1.0), (100, 1.0), (150, 0.5), (175, 0.25), (200, 0.0), (9999, 0.0)]
)
def test_it_falls_linearly_from_free_to_limit(size: int, value: float) -> None:
    """(limit - n) / (limit - free), cut to [0, 1]."""
    score = Length(100, 200).score(TASK, episode(submit(text="x" * size)))
    assert score.value == pytest.approx(value)


@settings(deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=5), st.integers(0, 200))
def test_writing_more_never_earns_more(sizes: list[int], more: int) -> None:
    """Whatever is added, a thought or a turn, the score does not rise."""
    length = Length(100, 200)
    body = [python(text="x" * size) for size in sizes]
    longer = [*body, python(text="<think>" + "hmm " * more)]
    short = length.score(TASK, episode(*body, submit()))
    assert length.score(TASK, episode(*longer, submit())).value <= short.value


def test_it_counts_the_whole_episode_but_not_the_tools() -> None:
    """All messages count together; observations and steps without a message do not."""
    quiet = msgspec.structs.replace(python(text="x" * 75), observation="y" * 10_000)
    acted = msgspec.structs.replace(python(text="z" * 10_000), parsed=None)
    score = Length(100, 200).score(TASK, episode(quiet, acted, submit(text="x" * 75)))
    assert score.value == pytest.approx(0.5)


def test_without_a_submission_it_is_0() -> None:
    """Saying nothing at all is no brevity."""
    assert Length().score(TASK, episode(python(), stopped())).value == 0.0
    assert Length().score(TASK, episode(python())).value == 0.0


def test_tokens_are_counted_where_asked_and_known() -> None:
    """The sampler's own tokens; a message without them masks the score, it is not guessed."""
    length = Length(2, 4, unit="tokens")
    known = msgspec.structs.replace(submit(), token_ids=(1, 2, 3))
    assert length.score(TASK, episode(known)).value == pytest.approx(0.5)
    assert length.score(TASK, episode(python(), known)).masked


def test_options_are_checked() -> None:
    """The two places must rise, the unit must exist."""
    with pytest.raises(UsageError, match="free"):
        Length(10, 10)
    with pytest.raises(UsageError, match="unit"):
        Length(unit="words")  # type: ignore[arg-type]
