"""Values in JSON: everything comes back, and nothing poses as something else."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.database import decoded, encoded

TEXTS = st.text()  # without surrogates
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.none() | st.just(UTC)),
    st.timedeltas(min_value=timedelta(days=-10_000), max_value=timedelta(days=10_000)),
    st.uuids(),
    st.dictionaries(TEXTS, st.integers() | TEXTS | st.none(), max_size=3),
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@given(VALUES)
def test_every_value_comes_back_through_json(value: Any) -> None:
    """For all values of the types that databases have: equal, and of the same type."""
    back = decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))
    assert back == value
    assert type(back) is type(value)


@given(VALUES, VALUES)
def test_different_values_have_different_forms(one: Any, two: Any) -> None:
    """Bytes, texts, numbers and dates never meet."""
    if type(one) is not type(two):
        assert json.dumps(encoded(one)) != json.dumps(encoded(two))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (float("inf"), {"float": "inf"}),
        (float("-inf"), {"float": "-inf"}),
        (float("nan"), {"float": "nan"}),
        (b"\x00\xff", {"bytes": "00ff"}),
        (memoryview(b"\x01"), {"bytes": "01"}),
        (Decimal("1.20"), {"decimal": "1.20"}),
        (date(2024, 2, 29), {"date": "2024-02-29"}),
        (time(1, 2, 3), {"time": "01:02:03"}),
        (datetime(2024, 2, 29, 1, tzinfo=UTC), {"datetime": "2024-02-29T01:00:00+00:00"}),
        (timedelta(minutes=1, seconds=30), {"interval": 90}),
        (timedelta(microseconds=1), {"interval": 0.000001}),
        (UUID(int=1), {"uuid": "00000000-0000-0000-0000-000000000001"}),
        ({"a": [1, float("nan")]}, {"json": {"a": [1, "nan"]}}),
        ([1, None, [b""]], {"array": [1, None, {"array": [{"bytes": ""}]}]}),
        ("a\udcffb", "a\ufffdb"),
        (range(2), "range(0, 2)"),
        (True, True),
        (2**70, 2**70),
    ],
)
def test_each_type_has_its_form(value: Any, form: Any) -> None:
    """The forms that the module promises."""
    assert encoded(value) == form
    assert type(encoded(value)) is type(form)


@pytest.mark.parametrize("data", [{}, {"a": 1}, {"bytes": "xy"}, {"date": 1}, {"a": 1, "b": 2}])
def test_what_is_no_value_is_not_read(data: dict[str, Any]) -> None:
    """An object of another form is an error with its beginning."""
    with pytest.raises(ValueError, match="no value of a database"):
        decoded(data)
