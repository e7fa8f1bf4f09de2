"""When a request that failed is sent again, and what people call the failure."""

from __future__ import annotations

import email.utils
import math
import random
import time

import msgspec

from toolenvs.ranges import DAY_S, checked_number, checked_whole

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that a wait may heal; so may any other above 500 but 501, which is for good."""


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How a request that failed is tried again.

    Attributes:
        attempts: requests in all, at least 1.
        first_s: seconds before the second; each further wait is twice as long. The wait is drawn
            between half of that and all of it, so that many episodes do not come back at once.
        longest_s: bound of one wait; a ``Retry-After`` beyond it fails the request.

    Raises:
        UsageError: A number is out of range.
    """

    attempts: int = 5
    first_s: float = 0.5
    longest_s: float = 30.0

    def __post_init__(self) -> None:
        checked_whole("attempts", self.attempts, least=1, most=1000)
        checked_number("first_s", self.first_s)
        checked_number("longest_s", self.longest_s, most=DAY_S)

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after the ``attempt``-th request, counted from 0."""
        wait_s = min(self.longest_s, self.first_s * 2.0 ** min(attempt, 100))
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - only spreads retries


def retry_after_s(value: str) -> float:
    """Seconds that a ``Retry-After`` header asks for, as a number or a date; 0 without one."""
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def lost_reason(error: Exception) -> str:
    """A lost connection of httpx in the words that people know."""
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return "connection timed out"
    if isinstance(error, httpx.TimeoutException):
        return "reply timed out"
    text = str(error).lower()
    known = ("connection refused", "name or service not known", "no route to host", "certificate")
    return next((word for word in known if word in text), type(error).__name__)
