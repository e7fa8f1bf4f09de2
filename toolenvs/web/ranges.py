"""One check of numbers that are given as options."""

from __future__ import annotations

import math

from toolenvs.errors import UsageError

DAY_S = 86_400
"""Most seconds that an option may ask to wait; timers take no times without end."""


def checked_number(
    option: str,
    value: float,
    *,
    least: float = 0,
    most: float = math.inf,
    above: bool = False,
    whole: bool = False,
) -> float:
    """Return a number that an option may have, as it was given.

    Args:
        option: what it is called in the message.
        value: what was given: whatever it is, it is judged here.
        least: the smallest that is allowed.
        most: the largest that is allowed.
        above: ``least`` itself is not allowed.
        whole: it must be an int.

    Raises:
        UsageError: It is no number, none that is finite, or out of range.
    """
    known = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    # A whole number may be too large for a float, but compares with one.
    if known and least <= value <= most and value != math.inf and not (above and value == least):
        return value
    kind = "a whole number" if whole else "a finite number"
    bounds = f"above {least:.12g}" if above else f"{least:.12g} or more"
    if most != math.inf:
        bounds = (
            f"above {least:.12g}, to {most:.12g}" if above else f"from {least:.12g} to {most:.12g}"
        )
    raise UsageError(f"{option}={value!r} must be {kind} {bounds}.")
