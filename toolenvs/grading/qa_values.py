"""Answers that have a value: dates, and numbers in words."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + "|sept"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = rf"(?:(?P<weekday>{'|'.join(_WEEKDAYS)}) )?"
_LAST_JULIAN_YEAR = 1923  # the last country changed its calendar then
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_WEEKDAY}(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH}) {_YEAR}",
        rf"{_WEEKDAY}(?P<month>{_MONTH}) (?:the )?{_DAY} {_YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        rf"(?P<month>{_MONTH}) (?:of )?{_YEAR}",
    )
)

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
_UNITS += " fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: number for number, word in enumerate(_UNITS.split())}
_SMALL |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_ORDINALS = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_DIGITS = re.compile(r"(-?[$€£¥]?)(\d{1,15}(?:\.\d{1,15})?)")


class Date(NamedTuple):
    """A day, or a month where ``day`` is 0."""

    year: int
    month: int
    day: int = 0


def read_date(text: str) -> Date | None:
    """Read a date that can be read in one way only; None if ``text`` is anything else.

    A weekday before it must be that day's, up to 1923 by either calendar.

    Args:
        text: in lower case, words separated by single spaces, without commas.
    """
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found:
            parts = found.groupdict(default="0")
            date = Date(int(parts["year"]), _month(parts["month"]), int(parts.get("day", 0)))
            exists = _exists(date, with_day="day" in parts)
            return date if exists and _is_on(date, parts.get("weekday", "0")) else None
    return None


def _month(text: str) -> int:
    if text.isdecimal():
        return int(text)
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(text[:3]))


def _exists(date: Date, *, with_day: bool) -> bool:
    try:
        datetime.date(date.year, date.month, date.day if with_day else 1)
    except ValueError:
        return False
    return True


def _is_on(date: Date, weekday: str) -> bool:
    """Tell whether a date falls on this weekday, ``"0"`` for any."""
    if weekday == "0":
        return True
    day = datetime.date(*date).toordinal()
    days = {day, day + _julian_lag(date)} if date.year <= _LAST_JULIAN_YEAR else {day}
    return any(_WEEKDAYS[(each - 1) % 7] == weekday for each in days)


def _julian_lag(date: Date) -> int:
    """How many days later the day falls that has this name in the Julian calendar."""
    year = date.year if date.month > 2 else date.year - 1
    return year // 100 - year // 400 - 2


def is_number_word(word: str) -> bool:
    """Tell whether a word in lower case is a number, as in ``five``, or the end of one."""
    last = word.rpartition("-")[2]
    return last in _SMALL or last in _SCALES or last == "hundred"


def digits_for_words(words: Sequence[str]) -> tuple[str, ...]:
    """Write the numbers among ``words`` in digits: ``twenty one seasons`` is ``21 seasons``.

    Cardinals below 10^15, ordinals (``twenty first`` is ``21st``), and digits before a scale
    (``$1.5 million`` is ``$1500000``) are numbers; ``hundred`` and ``thousand`` alone are 100
    and 1000.
    """
    made: list[str] = []
    at = 0
    while at < len(words):
        number, size = _read_number(words, at)
        made.append(number if size else words[at])
        at += size or 1
    return tuple(made)


def _read_number(words: Sequence[str], at: int) -> tuple[str, int]:
    """The number that begins at ``at`` in digits, and how many words it takes, 0 for none."""
    if found := _DIGITS.fullmatch(words[at]):
        scale = _SCALES.get(words[at + 1], 0) if at + 1 < len(words) else 0
        value = Decimal(found[2]) * scale
        return (f"{found[1]}{value.normalize():f}", 2) if scale else ("", 0)
    reading = _Cardinal()
    size, ordinal = 0, False
    while at + size < len(words) and not ordinal:
        word = words[at + size]
        ordinal = _cardinal_of(word) != word
        joins = word == "and" and size and reading.takes_and and at + size + 1 < len(words)
        if joins and _cardinal_of(words[at + size + 1]) in _SMALL:
            size += 1
            continue
        if not reading.take(_cardinal_of(word)):
            break
        size += 1
    else:
        return reading.text(ordinal=ordinal), size
    return reading.text(ordinal=False), size


def _cardinal_of(word: str) -> str:
    """The cardinal of an ordinal; any other word as it is."""
    if word in _ORDINALS:
        return _ORDINALS[word]
    if word.endswith("ieth") and word[:-4] + "y" in _SMALL:
        return word[:-4] + "y"
    stem = word.removesuffix("th")
    return stem if stem in _SMALL or stem in _SCALES or stem == "hundred" else word


class _Cardinal:
    """A number of English words, read from left to right."""

    def __init__(self) -> None:
        self._total = self._group = 0
        self._scale = 10**15
        self._room = 1000  # what comes next in the group must be below this
        self.takes_and = False

    def take(self, word: str) -> bool:
        """Add a word; False if no number goes on with it."""
        if word in _SMALL and _SMALL[word] < self._room:
            value = _SMALL[word]
            self._group += value
            self._room = 10 if value >= 20 else 0
            self.takes_and = False
        elif word == "hundred" and self._group < 10 and self._room != 100:
            self._group = 100 * (self._group or 1)
            self._room, self.takes_and = 100, True
        elif (
            word in _SCALES and _SCALES[word] < self._scale and (self._group or word == "thousand")
        ):
            self._scale = _SCALES[word]
            self._total += (self._group or 1) * self._scale
            self._group, self._room, self.takes_and = 0, 1000, True
        else:
            return False
        return True

    def text(self, *, ordinal: bool) -> str:
        value = self._total + self._group
        if not ordinal:
            return str(value)
        teen = value % 100 in (11, 12, 13)
        return f"{value}th" if teen else f"{value}{_ENDINGS.get(value % 10, 'th')}"
