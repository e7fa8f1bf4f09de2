"""The generated source: every kind is right, and equal seeds give equal tasks anywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.programs import outputs
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.sources.generated import KINDS, Generated

_DIGEST = """
from toolenvs.sources.generated import Generated
import hashlib, msgspec
source = Generated("seed=3,n=39")
tasks = [source[i] for i in range(39)]
held = [(t.id, t.prompt, t.answer, t.gold_calls, t.files, t.grading, t.data) for t in tasks]
print(hashlib.sha256(msgspec.json.encode(held)).hexdigest())
"""


def code(call: Any) -> str:
    """The program of a gold call."""
    text: str = call["arguments"]["code"]
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_gives_the_reference_answer(kind: str) -> None:
    """For many seeds the program, run by plain Python, prints the answer."""
    tasks = [Generated(f"seed={seed},n=3,kinds={kind}")[2] for seed in range(12)]
    assert outputs([code(task.gold_calls[0]) for task in tasks]) == [
        task.answer + "\n" for task in tasks
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_problems_of_a_kind_differ(kind: str) -> None:
    """Prompts are all different and no single answer is worth guessing."""
    source = Generated(f"n=40,kinds={kind}")
    tasks = [source[i] for i in range(40)]
    assert len({task.prompt for task in tasks}) == 40
    assert len({task.answer for task in tasks}) >= 15


def test_there_are_at_least_six_kinds_and_they_take_turns() -> None:
    """Every kind occurs, and the id names it."""
    source = Generated(f"n={len(KINDS)}")
    assert len(KINDS) >= 6
    assert [source[i].data["kind"] for i in range(len(source))] == list(KINDS)
    assert source[0].id == f"{next(iter(KINDS))}-0-0"
    assert [source[i].id for i in range(len(source))] == list(source.ids)


@pytest.mark.parametrize("hash_seed", ["0", "1", "77"])
def test_equal_seeds_give_equal_tasks_in_any_process(hash_seed: str) -> None:
    """Tasks do not depend on the process or its hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # A change of this digest means that every published seed now gives other tasks.
    assert hashlib.sha256(done.stdout.encode()).hexdigest()[:16] == "6e5702a89d739af7"


@given(seed=st.integers(0, 2**63 - 1), row=st.integers(0, 10**6))
def test_a_task_depends_on_seed_and_row_alone(seed: int, row: int) -> None:
    """Random access gives the same as any other order and any other length."""
    first = Generated(f"seed={seed},n={row + 1}")[row]
    again = Generated(f"seed={seed},n=2000000")
    assert again[row % 7] is not None
    assert again[row] == first


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("sed=1", UnknownNameError, "Did you mean 'seed'\\? Known: kinds, n, seed"),
        ("n=0", UsageError, "n='0' must be a whole number from 1 to"),
        ("n=1_0", UsageError, "n='1_0' must be a whole number"),
        ("seed=-1", UsageError, "seed='-1' must be a whole number from 0 to"),
        ("seed=1,seed=2", UsageError, "once"),
        ("seed", UsageError, "as seed=VALUE"),
        ("kinds=digitsum", UnknownNameError, "Did you mean 'digit_sum'\\?"),
        ("kinds=words+words", UsageError, "names a kind of generated problem twice"),
    ],
)
def test_a_wrong_option_is_named(location: str, error: type[Exception], message: str) -> None:
    """The message says which options and values there are."""
    with pytest.raises(error, match=message):
        Generated(location)
