"""Moments as tasks give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import UsageError
from toolenvs.moments import epoch_ns
from toolenvs.types import Task

MOMENTS = st.datetimes(
    min_value=datetime(1901, 1, 1),
    max_value=datetime(2198, 1, 1),
    timezones=st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone),
)


@given(moment=MOMENTS)
def test_a_moment_is_the_same_in_every_zone(moment: datetime) -> None:
    """To the microsecond; written with its zone, or in UTC without one."""
    there = epoch_ns(moment.isoformat())
    assert there == epoch_ns(moment.astimezone(UTC).replace(tzinfo=None).isoformat())
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=there // 1000) == moment


def test_a_date_is_its_midnight_in_utc() -> None:
    """Both forms of a task's reference date are taken."""
    assert epoch_ns("1970-01-02") == epoch_ns("1970-01-02T00:00:00Z") == 86_400 * 10**9


@pytest.mark.parametrize(
    "bad", ["", "yesterday", "2024-13-01", "15/06/2024", "1899-12-31", "2200-01-01T00:00"]
)
def test_what_is_no_moment_is_refused(bad: str) -> None:
    """The message has the value, an example and the years."""
    with pytest.raises(UsageError, match=r"now is .*ISO 8601, such as '2024-06-15'.* 1900 to 2199"):
        epoch_ns(bad)


def test_a_task_takes_only_a_moment() -> None:
    """When it is made, and when it is read from a record."""
    with pytest.raises(UsageError, match="now is 'soon'"):
        Task(id="t", prompt="p", now="soon")
    with pytest.raises(msgspec.ValidationError, match="now is 'soon'"):
        msgspec.json.decode(b'{"id": "t", "prompt": "p", "now": "soon"}', type=Task)
    assert Task(id="t", prompt="p", now="2024-06-15").now == "2024-06-15"
