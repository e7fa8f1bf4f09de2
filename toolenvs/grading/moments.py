"""Dates and times of day as answers: canonical texts, so that spellings do not matter."""

from __future__ import annotations

import re

_MONTH_NAMES = """
january february march april may june july august september october november december
"""
_MONTHS = _MONTH_NAMES.split()
_MONTH = rf"({'|'.join(_MONTHS)}|{'|'.join(name[:3] for name in _MONTHS)}|sept)\.?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+([0-9]{4}))?"
_MONTH_FIRST = re.compile(rf"{_MONTH}\s+{_DAY}{_YEAR}", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}", re.IGNORECASE)
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = re.compile(
    r"([0-9]{1,2})(?::([0-9]{2}))?\s*(?:(a|p)\.?\s*m\.?|(noon|midnight))", re.IGNORECASE
)
_HALVES = {"a": "am", "p": "pm", "noon": "pm", "midnight": "am"}


def read_date(text: str) -> str | None:
    """Return ``June 5, 2020`` and its other spellings as ``2020-06-05``, without a year ``-06-05``.

    Returns:
        The date, or None if ``text`` is none, as a whole.
    """
    iso = _ISO.fullmatch(text)
    if iso:
        year, month, day = iso.groups()
        return _date(year, int(month), int(day))
    match = _MONTH_FIRST.fullmatch(text)
    if match:
        name, day, year = match.groups()
    else:
        match = _DAY_FIRST.fullmatch(text)
        if match is None:
            return None
        day, name, year = match.groups()
    month = next(at for at, m in enumerate(_MONTHS, start=1) if m.startswith(name.lower()[:3]))
    return _date(year or "", month, int(day))


def read_clock(text: str) -> str | None:
    """Return ``11:30 p.m.`` and its other spellings as ``11:30 pm``, or None if it is no time."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hour, minute, half, name = match.groups()
    if not 1 <= int(hour) <= 12 or int(minute or 0) > 59:
        return None
    return f"{int(hour)}:{minute or '00'} {_HALVES[(half or name).lower()]}"


def _date(year: str, month: int, day: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{year}-{month:02d}-{day:02d}"
