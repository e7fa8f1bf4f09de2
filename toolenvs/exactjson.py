"""JSON that is exact and canonical: equal values give equal bytes, and the bytes give them back.

ASCII, keys sorted, no spaces, floats as Python's shortest exact form, one line whatever the text
holds. What JSON would silently change is refused with its place (bytes, sets, keys that are not
text), with two exceptions, because a model may write them and its words must be recordable:

- a number that is not finite (``1e999`` in an argument) is ``{"$float": "inf"}``; a mapping that
  itself has the key ``$float`` gets one more ``$``, so nothing can pose as another;
- a lone surrogate is escaped and comes back; a high and a low one side by side come back as the one
  character that they denote.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolenvs.errors import UsageError

_FLOAT = "$float"
_ESCAPED = re.compile(r"\$+float")
_INT_END = 10**4300  # Python reads no longer integer from text


class NotJSONError(UsageError):
    """A text is not in this form."""


def encode(value: Any, *, name: str = "value") -> bytes:
    """Encode records, mappings with text keys, lists, tuples (as lists), texts, numbers, None.

    Args:
        value: what to encode.
        name: what it is called in messages.

    Raises:
        UsageError: It holds something else, an integer of more than 4300 digits, or is nested more
            deeply than Python follows (some 300 levels); the message names the place.
    """
    try:
        plain = _plain(value, name)
        text = json.dumps(plain, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply for a record.") from None
    return text.encode("ascii")


def is_deeper(value: Any, levels: int) -> bool:
    """Whether a value is nested more deeply than that many levels."""
    level = {0: value}
    for _ in range(levels + 1):
        inner = [item for outer in level.values() for item in _inside(outer)]
        level = {id(item): item for item in inner if isinstance(item, list | tuple | Mapping)}
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def decode(text: bytes | str) -> Any:
    """Decode what ``encode`` wrote, into dicts, lists and scalars.

    Raises:
        NotJSONError: It is not in this form.
    """
    try:
        whole = text if isinstance(text, str) else text.decode("ascii")
        # The hook costs a call for each object, and all but no record needs it.
        hook = _restored if f'{_FLOAT}"' in whole else None
        return json.loads(whole, object_hook=hook, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJSONError(str(error)) from error


def _plain(value: Any, place: str) -> Any:
    """``value`` in dicts, lists and scalars that JSON gives back as they are."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return _plain_int(value, place)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if isinstance(value, list | tuple):
        return _plain_items(value, place)
    if isinstance(value, Mapping):
        items = value.items()
        return {_plain_key(key, place): _plain(item, f"{place}.{key}") for key, item in items}
    if isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        return {field: _plain(getattr(value, field), f"{place}.{field}") for field in fields}
    raise UsageError(f"{place} is of type {type(value).__name__}; only JSON data can be recorded.")


def _plain_items(items: list[Any] | tuple[Any, ...], place: str) -> list[Any]:
    kinds = set(map(type, items))  # token ids and log-probabilities come by the thousand
    if kinds == {int} and min(items) > -_INT_END and max(items) < _INT_END:
        return list(items)
    if kinds == {float} and all(map(math.isfinite, items)):
        return list(items)
    return [_plain(item, f"{place}[{index}]") for index, item in enumerate(items)]


def _plain_key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise UsageError(f"{place} has the key {key!r}; only text keys can be recorded.")
    return f"${key}" if _ESCAPED.fullmatch(key) else key


def _plain_int(value: int, place: str) -> int:
    if not -_INT_END < value < _INT_END:
        raise UsageError(f"{place} is an integer of more than 4300 digits; write it as text.")
    return int(value)


def _restored(data: dict[str, Any]) -> Any:
    if len(data) == 1 and isinstance(data.get(_FLOAT), str):
        return float(data[_FLOAT])
    return {key[1:] if _ESCAPED.fullmatch(key) else key: value for key, value in data.items()}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
