"""The records: what a ``Turn`` takes can be recorded and read again."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from toolenvs.errors import UsageError
from toolenvs.types import FINISH_REASONS, Turn


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"logprobs": ["a"]}, r"logprobs\[0\]='a'"),
        ({"logprobs": [-0.5, None]}, r"logprobs\[1\]=None"),
        ({"logprobs": 3}, "logprobs=3"),
        ({"token_ids": [1, 1.5]}, r"token_ids\[1\]=1.5"),
        ({"token_ids": [True]}, r"token_ids\[0\]=True"),
        ({"token_ids": "12"}, r"token_ids\[0\]='1'"),
        ({"finish_reason": "bored"}, "finish_reason='bored' is not known"),
        ({"finish_reason": 3}, "finish_reason=3"),
        ({"stop_string": b"x"}, "stop_string=b'x'"),
        ({"policy_version": 1.0}, r"policy_version=1\.0"),
        ({"policy_version": True}, "policy_version=True"),
        ({"policy_version": 1 << 63}, "policy_version=9223372036854775808"),
    ],
)
def test_a_turn_refuses_what_no_record_could_give_back(options: dict[str, Any], says: str) -> None:
    """At once, with the value named, not when the record is read."""
    with pytest.raises(UsageError, match=says):
        Turn("text", **options)


def test_a_turn_takes_what_samplers_give() -> None:
    """Lists, numbers of numpy, None and every known reason; numbers become Python's own."""
    ids: Any = np.array([5, 7])
    logprobs: Any = [np.float32(-0.5), 0]
    turn = Turn("text", None, None, ids, logprobs)
    assert (turn, turn.finish_reason, turn.stop_string) == ("text", "", "")
    assert (turn.token_ids, turn.logprobs) == ((5, 7), (-0.5, 0.0))
    assert {*map(type, turn.token_ids), *map(type, turn.logprobs)} == {int, float}
    assert pickle.loads(pickle.dumps(turn)).token_ids == (5, 7)
    given: list[Any] = [None, "", "step-7", 7, np.int64(7)]
    versions = [Turn("", policy_version=version).policy_version for version in given]
    assert versions == ["", "", "step-7", 7, 7]
    assert type(versions[-1]) is int
    assert pickle.loads(pickle.dumps(Turn("", policy_version=7))).policy_version == 7
    for reason in FINISH_REASONS:
        assert Turn("", reason.upper()).finish_reason == reason.upper()
