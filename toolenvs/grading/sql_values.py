"""Single values of a result: what they are, and when two of them are equal.

A value is read into a pair ``(kind, content)``. Equality is reflexive and symmetric; for measured
numbers (floats, and decimals with a fraction) it has a tolerance, hence is not transitive, which
``sql_codes`` takes care of.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from toolenvs.grading.sql_policy import SqlPolicy

Value = tuple[str, Any]
"""``("null", None)``, ``("int", 3)``, ``("decimal", Decimal("0.5"))``, ``("float", 0.5)``,
``("text", "a")``, ``("instant", "2020-01-01T00:00:00")``, ``("bytes", "00ff")`` ..."""

MEASURED = ("decimal", "float")
NUMBERS = ("int", *MEASURED)

_NULL: Value = ("null", None)
_NAN: Value = ("nan", None)
_WHOLE_FLOAT = 2**40  # above, a float that is whole may be so for want of digits
_MOST_DIGITS = 400  # a decimal that is longer is compared by its digits
_DECIMAL_TOL = 1e-13  # PostgreSQL divides to 16 significant digits
_HALF_SLACK = 1e-9  # how near to a half, in units of the last place, goes either way
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?", re.ASCII)
_ISO_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)


def read_value(raw: Any, policy: SqlPolicy) -> Value:
    """Read a value in the JSON form of results.

    Args:
        raw: None, a bool, int, float or str, or a mapping of one key that names the kind:
            ``{"decimal": "1.20"}``, ``{"date": "2020-01-01"}``, ``{"bytes": "00ff"}`` ...
        policy: what texts and booleans stand for.
    """
    if raw is None:
        return _NULL
    if isinstance(raw, bool):
        return ("int", int(raw)) if policy.bool_numbers else ("bool", raw)
    if isinstance(raw, int):
        return ("int", raw)
    if isinstance(raw, float):
        return _read_float(raw)
    if isinstance(raw, str):
        return _read_text(raw, policy)
    if isinstance(raw, Mapping) and len(raw) == 1:
        ((kind, content),) = raw.items()
        if kind == "array":
            return ("array", tuple(read_value(item, policy) for item in content))
        if kind in _TAGGED:
            return _TAGGED[kind](content)
    return ("json", json.dumps(raw, sort_keys=True, default=str))


def equal(left: Value, right: Value, policy: SqlPolicy) -> bool:
    """Tell whether two values are equal under ``policy``; symmetric."""
    if left == right and left[0] == right[0]:
        return True
    if left[0] not in NUMBERS or right[0] not in NUMBERS:
        return False
    if left[0] == right[0] == "int":
        return False
    tolerance = policy.rel_tol
    if "float" not in (left[0], right[0]):
        tolerance = min(tolerance, _DECIMAL_TOL)
    return _within(left[1], right[1], tolerance) or _round_alike(left[1], right[1], policy.decimals)


def near(left: Value, right: Value, policy: SqlPolicy) -> bool:
    """Tell whether two numbers are within the widest tolerance, exact kinds or not.

    Wider than ``equal`` and convex: what lies between two near numbers is near to both.
    """
    tolerance = max(policy.rel_tol, _DECIMAL_TOL)
    return _within(left[1], right[1], tolerance) or _round_alike(left[1], right[1], policy.decimals)


def _within(left: Any, right: Any, tolerance: float) -> bool:
    if left == right:
        return True
    try:
        return math.isclose(float(left), float(right), rel_tol=tolerance, abs_tol=0.0)
    except OverflowError:  # an integer beyond the floats
        return False


def _round_alike(left: Any, right: Any, decimals: int) -> bool:
    """Tell whether some rounding to ``decimals`` makes one number of both."""
    if decimals < 0:
        return False
    try:
        low, high = sorted((float(left) * 10.0**decimals, float(right) * 10.0**decimals))
    except OverflowError:
        return False
    if not max(abs(low), abs(high)) < _WHOLE_FLOAT:  # nothing is left to round
        return False
    return math.floor(high + 0.5 - _HALF_SLACK) <= math.floor(low + 0.5 + _HALF_SLACK)


def _read_float(number: float) -> Value:
    if math.isnan(number):
        return _NAN
    if math.isinf(number):
        return ("infinity", number > 0)
    if number.is_integer() and abs(number) <= _WHOLE_FLOAT:
        return ("int", int(number))
    return ("float", number)


def _read_decimal(text: Any) -> Value:
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return ("decimal_text", str(text))
    if number.is_nan():
        return _NAN
    if number.is_infinite():
        return ("infinity", number > 0)
    digits = number.as_tuple().digits
    if len(digits) > _MOST_DIGITS or abs(number.adjusted()) > _MOST_DIGITS:
        return ("decimal_text", str(text))
    if number == int(number):
        return ("int", int(number))
    return ("decimal", number)


def _read_text(text: str, policy: SqlPolicy) -> Value:
    if policy.text_numbers and _PLAIN_NUMBER.fullmatch(text):
        return _read_decimal(text)
    if policy.text_dates and _ISO_INSTANT.fullmatch(text):
        return _read_instant(text, otherwise="text")
    return ("text", text)


def _read_instant(text: Any, otherwise: str = "instant_text") -> Value:
    """A date or time stamp in UTC; what the calendar does not know stays text."""
    try:
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return (otherwise, str(text))
    return ("instant", moment.isoformat())


def _read_interval(seconds: Any) -> Value:
    try:
        return ("interval", round(float(seconds) * 1_000_000))  # both engines know microseconds
    except (TypeError, ValueError, OverflowError):
        return ("interval_text", str(seconds))


_TAGGED: Mapping[str, Callable[[Any], Value]] = {
    "float": lambda content: _read_float(float(content)),
    "decimal": _read_decimal,
    "bytes": lambda content: ("bytes", str(content).lower()),
    "uuid": lambda content: ("uuid", str(content).lower()),
    "date": _read_instant,
    "datetime": _read_instant,
    "time": lambda content: ("time", str(content)),
    "interval": _read_interval,
}
