"""Measures in short answers: a number with a unit of a closed list, such as ``5 km/h``.

Between a number and such a unit a blank does not matter, the unit's slash always does, and its case
does where another case is another unit: ``5 mW`` is not ``5 MW``. A unit in a case that no unit has
is the usual one that differs by case alone: ``3 gb`` is ``3 GB``. Behind a number in words a unit
is read alike, as a word of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

CURRENCY_SIGNS = (
    "$\u00a2-\u00a5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db"
    "\u20a0-\u20c0\ua838\ufdfc\ufe69\uff04\uffe0\uffe1\uffe5\uffe6"
    "\U00011fdd-\U00011fe0\U0001e2ff\U0001ecb0"
)
"""Unicode's category Sc, as the inside of a class of a regular expression."""

CURRENCIES = (
    *("usd", "eur", "gbp", "jpy", "chf", "cny", "inr", "cad", "aud", "nzd"),
    *("sek", "nok", "dkk", "pln", "rub", "brl", "mxn", "krw", "zar"),
)
_LENGTHS = "km m dm cm mm \u03bcm nm mi ft yd"
_OTHERS = """
cm dm cL dL hPa Nm kg t kt Mt Gt lb lbs oz min h hr hrs s ms \u03bcs ns ps Ms mi ft yd kn gm
mph kph kmh rpm KiB MiB GiB TiB psi atm hp dB am pm
"""
_LARGE = "W Wh Hz eV Pa J N K bit bps Bps cal bar pc \u03a9"
"""Units of which the large ones are usual: ``5 mw`` is ``5 MW``."""
_SMALL = "m g L A V mol"
_ONLY_LARGE, _ONLY_SMALL = "B b Bq", "F C H T S Sv Gy Ci"
"""Units that are none without a prefix: ``5S`` is a telephone, ``5 B`` are billions."""
_MOLAR = "M mM \u03bcM nM pM"


def _symbols() -> list[str]:
    """All units; of those that differ by case alone the usual one is first."""
    large, small = "kMGTPm\u03bcnp", "mk\u03bcnpMG"
    return [
        *_OTHERS.split(),
        *_prefixed(_SMALL, ["", *small]),
        *_prefixed(_LARGE, ["", *large]),
        *_prefixed(_ONLY_LARGE, large),
        *_prefixed(_ONLY_SMALL, small),
        *_MOLAR.split(),
        *CURRENCIES,
    ]


def _prefixed(units: str, prefixes: Iterable[str]) -> list[str]:
    return [prefix + unit for unit in units.split() for prefix in prefixes]


_SYMBOLS = _symbols()
_WORDS = ("A", "in")
"""Units that are words too: an ampere, inches."""

_EXACT = {symbol: symbol for symbol in (*_SYMBOLS, *_WORDS)}
_EXACT |= {f"K{unit}": f"k{unit}" for unit in ("b", "B", "bit", "bps", "Bps")}
_OTHERWISE = {symbol.casefold(): symbol for symbol in reversed([*_SYMBOLS, *_WORDS])}

_LONGEST_FIRST = sorted(set(_SYMBOLS) - {"A"}, key=lambda symbol: (-len(symbol), symbol))
BLANK = (
    rf"(?<=\d) (?=(?:{'|'.join(_LONGEST_FIRST)})(?:[/^*\d][\w^/*]*)?(?![^\W_])"
    rf"|(?:{'|'.join(_WORDS)})(?!\w| ?\w))"
)
"""The blank between a number and its unit; where a unit is a word too, only at the end."""

POWER = (
    rf"(?:(?<![^\W\d_])(?P<unit>{'|'.join(_LENGTHS.split())}|in)|(?<=/)(?P<time>s))"
    r"\^(?=\d)"
)
"""A unit that is raised: ``m^2`` is as good as ``m2``."""

_MEASURE = re.compile(rf"((?:[^\w{CURRENCY_SIGNS}]|\d)*+)([^\W\d_].*)", re.DOTALL)
_FACTOR = re.compile(r"([^\W\d_]+)([-+^\u2212\d]*)")
_SLASH = "\u2215"


def spell_measure(token: str) -> str | None:
    """A measure, or units divided by units, in one spelling; None if the token is neither.

    The slash becomes one that joins no words.

    >>> spell_measure("5KM"), spell_measure("5MW"), spell_measure("AC/DC")
    ('5km', '5MW', None)
    """
    found = _MEASURE.fullmatch(token)
    if found is None:
        return None
    number, unit = found.groups()
    factors = [_FACTOR.fullmatch(part) for part in unit.split("/")]
    read = [(each[1], each[2]) for each in factors if each is not None]
    if len(read) < len(factors):
        return None
    if any(map(str.isdigit, number)):
        if _unit(read[0][0]) is None:
            return None
        parts = [f"{_unit(name) or name.casefold()}{power}" for name, power in read]
    elif len(read) > 1 and all(name in _EXACT and name not in _WORDS for name, _ in read):
        parts = [f"{_EXACT[name]}{power}" for name, power in read]
    else:
        return None
    return number + _SLASH.join(parts)


def spell_unit(token: str) -> str | None:
    """A unit of several letters in one spelling, as behind a number in words; None if none.

    >>> spell_unit("mw"), spell_unit("mW"), spell_unit("A")
    ('MW', 'mW', None)
    """
    return _unit(token) if len(token) > 1 and token not in _WORDS else None


def _unit(name: str) -> str | None:
    return _EXACT.get(name) or _OTHERWISE.get(name.casefold())
