"""``Unicode`` holds every message and never gives rubbish."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import gymnasium as gym
import pytest
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import batch_space, create_shared_memory
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.spaces import Unicode

PROBES = [
    "hello world",
    "",
    "π ≈ 3.14",
    '<tool_call>{"a":1}</tool_call>\n',
    "a" * 200_000,
]


@pytest.mark.parametrize("text", PROBES, ids=["words", "empty", "greek", "tag", "long"])
def test_G01_real_messages_are_inside(text: str) -> None:
    """G01: what models write and environments answer is in the space."""
    assert Unicode().contains(text)


@given(st.text())
def test_every_text_is_inside(text: str) -> None:
    """For all texts up to the length."""
    assert Unicode().contains(text)


@pytest.mark.parametrize("other", [b"bytes", 3, None, ["a"], "aaaa"])
def test_what_is_no_text_or_too_long_is_outside(other: object) -> None:
    """Bytes, numbers, None, lists and longer texts are refused."""
    assert not Unicode(3).contains(other)


def test_G01_samples_are_equal_under_all_hash_seeds() -> None:
    """G01: a seeded space samples the same text in every process."""
    code = (
        "from toolenvs.spaces import Unicode\n"
        "s = Unicode(); s.seed(42); print([s.sample() for _ in range(5)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_samples_are_members() -> None:
    """A sample is in the space, whatever its bounds."""
    for space in (Unicode(seed=1), Unicode(3, seed=1), Unicode(200, min_length=150, seed=1)):
        assert all(space.contains(space.sample()) for _ in range(50))


def test_a_mask_is_refused() -> None:
    """A mask has no meaning for texts and is not ignored."""
    with pytest.raises(ValueError, match="no mask"):
        Unicode().sample(mask=(1, None))


def test_shared_memory_is_refused_loudly() -> None:
    """The mode in which Gymnasium would return rubbish names the way out."""
    with pytest.raises(CustomSpaceError, match="shared_memory=False"):
        create_shared_memory(Unicode(), n=2)


def test_it_is_small_to_pickle_and_equal_by_bounds() -> None:
    """It crosses process borders cheaply and compares by its bounds."""
    space = Unicode(10)
    assert len(pickle.dumps(space)) < 2000
    assert pickle.loads(pickle.dumps(space)) == space
    assert space != Unicode(11)
    assert isinstance(batch_space(space, 2), gym.spaces.Tuple)
