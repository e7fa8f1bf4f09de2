"""A moment as text, as tasks give it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from toolenvs.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_YEAR, _LAST_YEAR = 1900, 2199


def epoch_ns(moment: str) -> int:
    """Nanoseconds from 1970 (UTC) to a moment; below 0 for an earlier one.

    Args:
        moment: ISO 8601: a date, or a date and a time, to the microsecond. Without a zone it is
            in UTC, without a time it is midnight; years 1900 to 2199.

    Raises:
        UsageError: It is not that.
    """
    try:
        read = datetime.fromisoformat(moment)
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        read = None
    if read is None or not _FIRST_YEAR <= read.year <= _LAST_YEAR:
        raise UsageError(
            f"now is {moment!r}; it is a date or a moment in ISO 8601, such as '2024-06-15' or "
            f"'2024-06-15T12:30:00Z', in the years {_FIRST_YEAR} to {_LAST_YEAR}."
        )
    return (read - _EPOCH) // _MICROSECOND * 1_000
