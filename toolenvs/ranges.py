"""Numbers that options may have; whatever else was given is refused by name."""

from __future__ import annotations

import math
import operator
from typing import Any

from toolenvs.errors import UsageError

DAY_S = 86_400
"""Most seconds that an option may ask to wait; timers take no times without end."""


def checked_whole(option: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """Return a whole number that an option may have, numpy's too, as Python's own.

    Args:
        option: what it is called in the message.
        value: what was given.
        least: the smallest that is allowed.
        most: the largest that is allowed, None for any.

    Raises:
        UsageError: It is none, or out of range.
    """
    known = hasattr(value, "__index__") and not isinstance(value, bool | type)
    if known:
        number = operator.index(value)
        if least <= number and (most is None or number <= most):
            return number
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
    raise UsageError(f"{option}={value!r:.200} must be a whole number {bounds}.")


def checked_number(
    option: str, value: float, *, least: float = 0, most: float = math.inf, above: bool = False
) -> float:
    """Return a number that an option may have, as it was given.

    Args:
        option: what it is called in the message.
        value: what was given: whatever it is, it is judged here.
        least: the smallest that is allowed.
        most: the largest that is allowed.
        above: ``least`` itself is not allowed.

    Raises:
        UsageError: It is no number, none that is finite, or out of range.
    """
    known = isinstance(value, int | float) and not isinstance(value, bool)
    # A whole number may be too large for a float, but compares with one.
    if known and least <= value <= most and value != math.inf and not (above and value == least):
        return value
    bounds = f"above {least:.12g}" if above else f"{least:.12g} or more"
    if most != math.inf:
        bounds = (
            f"above {least:.12g}, to {most:.12g}" if above else f"from {least:.12g} to {most:.12g}"
        )
    raise UsageError(f"{option}={value!r} must be a finite number {bounds}.")
