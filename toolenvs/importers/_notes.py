"""What is told of a record, and what of it has no place in a trajectory."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

_NOTHING: tuple[object, ...] = (None, "", [], {})

_TEXT_PARTS = (None, "text", "input_text", "output_text", "summary_text", "reasoning_text")

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 80
_shortener.maxdict = _shortener.maxlist = 4


def shown(value: Any) -> str:
    """A value as messages name it: short, whatever it is, and harmless to print."""
    return _shortener.repr(value)


class Notes:
    """Collects both while one record is read.

    Attributes:
        told: place within the record, such as ``"messages[2]"``, and one sentence.
        kept: by place, what was not mapped: the fields of an object, or a value of another kind.
    """

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.kept: dict[str, Any] = {}

    def tell(self, at: str, reason: str) -> None:
        """Tell of a place."""
        self.told.append((at, reason))

    def keep(self, at: str, value: Any, reason: str) -> None:
        """Keep a value that is not mapped, and tell why."""
        self.kept[at] = value
        self.tell(at, f"{reason}; kept in the task's data.")

    def rest(self, at: str, what: str, fields: Mapping[str, Any], known: Collection[str]) -> None:
        """Keep the fields of ``what`` whose keys are not known, and tell of those that hold any."""
        rest = {key: value for key, value in fields.items() if key not in known}
        if rest:
            self.kept[at] = {**self.kept.get(at, {}), **rest}
        self._tell_keys(at, what, rest)

    def row(self, record: Mapping[str, Any], known: Collection[str]) -> None:
        """Tell of the fields of a row that its layout does not know; the task's data has all."""
        self._tell_keys("", "a row", {k: v for k, v in record.items() if k not in known})

    def _tell_keys(self, at: str, what: str, fields: Mapping[str, Any]) -> None:
        for key, value in fields.items():
            if value not in _NOTHING:
                self.tell(
                    at, f"the key {shown(key)} of {what} is not mapped; kept in the task's data."
                )


def read_text(value: Any, at: str, notes: Notes) -> str:
    """A text; ``""`` for null; anything else as its JSON, and told unless it is a number."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        notes.tell(at, f"{shown(value)} is no text; read as its JSON.")
    return json.dumps(value, ensure_ascii=False)


def read_content(content: Any, at: str, notes: Notes) -> str:
    """The text of a message whose content is a text, null, or a list of parts."""
    if not isinstance(content, list):
        return read_text(content, at, notes)
    return "".join(_part(part, f"{at}[{number}]", notes) for number, part in enumerate(content))


def _part(part: Any, at: str, notes: Notes) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "value"):
            if isinstance(part.get(key), str):
                plain = part.get("type") in _TEXT_PARTS
                notes.rest(at, "a part of a content", part, (key, *(("type",) if plain else ())))
                text: str = part[key]
                return text
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    notes.keep(at, part, f"a part of type {shown(kind)} is no text")
    return ""


def read_object(value: Any, at: str, notes: Notes) -> Mapping[str, Any]:
    """An object, an empty one for null; anything else is kept and told."""
    if isinstance(value, dict):
        return value
    if value is not None:
        notes.keep(at, value, f"{shown(value)} is no object")
    return {}


def read_list(value: Any, at: str, notes: Notes) -> Sequence[Any]:
    """A list, an empty one for null; anything else is kept and told."""
    if isinstance(value, list):
        return value
    if value is not None:
        notes.keep(at, value, f"{shown(value)} is no list")
    return ()


def read_reward(value: Any, at: str, notes: Notes) -> float | None:
    """A reward, None for null and, told, where it is no finite number."""
    reward = as_number(value)
    if reward is None and value is not None:
        notes.tell(at, f"the reward {shown(value)} is no finite number; it is not mapped.")
    return reward


def as_number(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_tokens(
    fields: Mapping[str, Any], ids: str, logprobs: str
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Token ids and as many log-probabilities as were sampled; both empty if they are no such."""
    tokens, chances = fields.get(ids), fields.get(logprobs)
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        return (), ()
    numbers = [as_number(chance) for chance in chances] if isinstance(chances, list) else []
    found = tuple(number for number in numbers if number is not None)
    return (tuple(tokens), found) if len(found) == len(numbers) == len(tokens) else ((), ())


def left_over(record: Mapping[str, Any], *read: str) -> dict[str, Any]:
    """What a record holds besides the fields that were read."""
    return {key: value for key, value in record.items() if key not in read}
