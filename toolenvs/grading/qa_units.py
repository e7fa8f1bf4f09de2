"""Measures in short answers: a number with a unit of a closed list, such as ``5 km/h``.

Between a number and such a unit a blank does not matter, the unit's slash always does, and its case
does where another case is another unit: ``5 mW`` is not ``5 MW``. A unit in a case that no unit of
the list has is the first of the list that differs by case alone: ``3 gb`` is ``3 GB``.
"""

from __future__ import annotations

import re

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
_SYMBOLS = f"""
{_LENGTHS}
kg g mg \u03bcg ng Mg lb lbs oz t
L mL cL dL \u03bcL
s ms \u03bcs ns Ms min h hr hrs
mph kph kmh rpm
kB MB GB TB PB KiB MiB GiB TiB kb Mb Gb Tb bit kbit Mbit Gbit Tbit bps kbps Mbps Gbps
Hz kHz MHz GHz THz mHz
W kW MW GW TW mW Wh kWh MWh GWh TWh mWh
V mV kV MV A mA kA \u03a9 k\u03a9 M\u03a9 m\u03a9
J kJ MJ GJ mJ eV keV MeV GeV TeV meV cal kcal
N kN MN mN Pa hPa kPa MPa GPa mPa bar mbar psi atm
K dB hp mol M am pm
{" ".join(CURRENCIES)}
"""
_WORDS = ("A", "in")
"""Units that are words too: an ampere, inches."""

_EXACT = {symbol: symbol for symbol in (*_SYMBOLS.split(), *_WORDS)} | {"Kb": "kb", "KB": "kB"}
_OTHERWISE = {symbol.casefold(): symbol for symbol in reversed([*_SYMBOLS.split(), *_WORDS])}

_LONGEST_FIRST = sorted(set(_SYMBOLS.split()) - {"A"}, key=lambda symbol: (-len(symbol), symbol))
BLANK = (
    rf"(?<=\d) (?=(?:{'|'.join(_LONGEST_FIRST)})(?:[/^*\d][\w^/*]*)?(?!\w)"
    rf"|(?:{'|'.join(_WORDS)})(?!\w| ?\w))"
)
"""The blank between a number and its unit; where a unit is a word too, only at the end."""

POWER = (
    rf"(?:(?<![^\W\d_])(?P<unit>{'|'.join(_LENGTHS.split())}|in)|(?<=/)(?P<time>s))"
    r"\^(?=\d)"
)
"""A unit that is raised: ``m^2`` is as good as ``m2``."""

_MEASURE = re.compile(rf"((?:[^\w{CURRENCY_SIGNS}]|\d)*+)([^\W\d_].*)", re.DOTALL)
_FACTOR = re.compile(r"([^\W\d_]+)([-+^\d]*)")
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


def _unit(name: str) -> str | None:
    return _EXACT.get(name) or _OTHERWISE.get(name.casefold())
