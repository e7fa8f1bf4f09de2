"""What was put in comes out, and nothing else ever does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cache.making import make_key, result
from toolenvs import exactjson
from toolenvs.cache import ReplayCache
from toolenvs.cache.entry import pack, unpack
from toolenvs.errors import DataError, UsageError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolError, ToolResult

TEXTS = st.text(st.characters(exclude_categories=()))


def test_what_was_put_is_got_before_and_after_it_was_written(cache: ReplayCache) -> None:
    """A result is found at once, after a flush, and by whoever opens the file later."""
    key, put = make_key(1), ToolResult("42", {"stdout": "42\n"}, ToolError("raised", "no"))
    assert cache.get(key) is None
    cache.put(key, put)
    for _ in range(2):
        found = cache.get(key)
        assert found is not None
        assert (found.result, found.servable, found.differing) == (put, True, False)
        cache.flush()
    cache.close()
    again = ReplayCache(cache.url).get(key)
    assert again is not None
    assert again.result == put


@settings(deadline=None)
@given(text=TEXTS, more=st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS | st.floats()))
def test_every_result_comes_back_as_it_was(
    text: str, more: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all texts, numbers and keys, infinite and not-a-number ones too: the same bytes."""
    with ReplayCache(f"sqlite:///{tmp_path_factory.mktemp('cache') / 'c.db'}") as cache:
        key, put = make_key("x"), ToolResult(text, more)
        assert exactjson.encode(cache.put(key, put)) == exactjson.encode(put)
        cache.flush()
        found = cache.get(key)
    assert found is not None
    assert exactjson.encode(found.result) == exactjson.encode(put)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_packing_is_exact_and_never_much_larger(text: bytes) -> None:
    """For all bytes: unpacked they are the same, and one byte is the most it costs."""
    assert unpack(pack(text)) == text
    assert len(pack(text)) <= len(text) + 1
    assert len(pack(text * 50)) < max(600, len(text) * 25)


@pytest.mark.parametrize("packed", [b"", b"\2abc", b"\1abc", pack(b"x" * 9000)[:-1]])
def test_what_was_not_packed_is_told(packed: bytes) -> None:
    """Unknown, broken and cut bytes are a clear error."""
    with pytest.raises(DataError):
        unpack(packed)


def test_a_call_has_one_result_and_a_second_one_marks_it(cache: ReplayCache) -> None:
    """The first stays; the same one again changes nothing, another one marks the call."""
    key = make_key(1)
    for text, differing in (("a", False), ("a", False), ("b", True), ("a", True)):
        cache.put(key, result(text))
        cache.flush()
        found = cache.get(key)
        assert found is not None
        assert (found.result.text, found.differing) == ("a", differing)


def test_a_result_takes_the_place_of_a_time_out(cache: ReplayCache) -> None:
    """A time-out is kept for replays until the call is seen to end; never the other way round."""
    key = make_key(1)
    for text, servable, expected in (("late", False, "late"), ("42", True, "42")):
        cache.put(key, result(text), servable=servable)
        found = cache.get(key)
        assert found is not None
        assert (found.result.text, found.servable) == (expected, servable)
    cache.flush()
    cache.put(key, result("late again"), servable=False)
    cache.flush()
    found = cache.get(key)
    assert found is not None
    assert (found.result.text, found.servable, found.differing) == ("42", True, False)


def test_R03_a_collision_is_seen_and_not_served(
    cache: ReplayCache, caplog: pytest.LogCaptureFixture
) -> None:
    """R03: another request under the same key gets nothing and takes nothing's place."""
    one, two = make_key(1), make_key(2)
    two = CallKey(one.key, two.request, two.tool, two.call, two.state)
    cache.put(one, result("one"))
    for _ in range(2):
        assert cache.get(two) is None
        cache.flush()
    cache.put(two, result("two"))
    cache.flush()
    assert cache.get(two) is None
    found = cache.get(one)
    assert found is not None
    assert (found.result.text, found.differing) == ("one", False)
    assert "two requests have the key" in caplog.text


def test_what_is_no_json_is_refused_and_not_recorded(cache: ReplayCache) -> None:
    """Bytes in a result are an error at once, not a damaged record later."""
    with pytest.raises(UsageError):
        cache.put(make_key(1), result("x", raw=b"bytes"))
    assert cache.get(make_key(1)) is None
