"""Calls written in JSON: strict first, a repair only on demand, every fault named.

Strict means more than ``json.loads``: no key twice, no NaN or infinity, no half of a surrogate
pair, for such values do not survive being recorded and read again.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolenvs.errors import UsageError
from toolenvs.types import ToolCall

_BLANK = re.compile(r"[ \t\r\n]*+")
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+")|,(?=[ \t\r\n]*+[}\]])', re.DOTALL)
_MAX_REPAIR_CHARS = 100_000
_MAX_DEPTH = 64  # a record can hold some more


class CallFaultError(ValueError):
    """A call cannot be read; the message says why, for the model that wrote it."""


class Call(NamedTuple):
    """A call that was read, and what is not clean about it."""

    call: ToolCall
    problems: tuple[str, ...] = ()


def decode(text: str, at: int) -> tuple[Any, int]:
    """Read one JSON value, strictly.

    Args:
        text: the whole message; what follows the value does not matter.
        at: where the value begins, blanks before it allowed.

    Returns:
        The value and the index after it.

    Raises:
        CallFaultError: There is no such value at that place.
    """
    start = skip_blanks(text, at)
    try:
        value, end = _DECODER.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise CallFaultError(f"it is no valid JSON: {_explain(error)}") from None
    except UnicodeEncodeError:
        raise CallFaultError("a string holds half of a surrogate pair") from None
    except RecursionError:
        raise CallFaultError("its JSON is nested too deeply") from None
    except CallFaultError:
        raise
    except ValueError:
        raise CallFaultError("a number has too many digits") from None
    return value, end


def skip_blanks(text: str, at: int) -> int:
    """The index of the first character at or after ``at`` that is no JSON white space."""
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def decode_whole(text: str) -> Any:
    """Read a text that is one JSON value and nothing else.

    Raises:
        CallFaultError: It is not.
    """
    value, end = decode(text, 0)
    if text[end:].strip():
        raise CallFaultError(f"something follows the JSON value: {text[end:].strip()[:40]!r}")
    return value


def repair(source: str) -> Any:
    """Read what a model meant by JSON that is not quite.

    Line breaks in strings and trailing commas are put right; else the text is read as a Python
    literal. Nothing is evaluated: the syntax tree of the literal is walked.

    Raises:
        CallFaultError: No repair helps.
    """
    without_commas = _TRAILING_COMMA.sub(lambda found: found[1] or "", source)
    try:
        value = _LENIENT_DECODER.decode(without_commas.strip())
    except (ValueError, RecursionError):
        value = _python_literal(source)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise CallFaultError("no repair makes it readable") from None
    return value


def read_call(value: Any) -> Call:
    """Read a call from ``{"name": ..., "arguments": {...}}``.

    Raises:
        CallFaultError: It has not that shape; the message names the part.
    """
    if not isinstance(value, dict):
        raise CallFaultError(f"a call is one JSON object, not {kind_of(value)}")
    if "name" not in value:
        raise CallFaultError("the call has no 'name'")
    if not isinstance(value["name"], str) or not value["name"].strip():
        raise CallFaultError(f"'name' is a text, not {kind_of(value['name'])}")
    further = sorted(set(value) - {"name", "arguments"})
    if "arguments" not in value:
        hint = f"; it has {', '.join(map(repr, further[:5]))}" if further else ""
        raise CallFaultError(f"the call has no 'arguments'{hint}")
    if further:
        raise CallFaultError(
            f"a call has 'name' and 'arguments' only, not {', '.join(map(repr, further[:5]))}"
        )
    arguments = value["arguments"]
    problems: tuple[str, ...] = ()
    if isinstance(arguments, str):
        arguments = arguments_from(arguments)
        problems = ("'arguments' is a JSON object, not a text that holds one",)
    return Call(ToolCall(value["name"], checked_arguments(arguments)), problems)


def checked_arguments(arguments: Any) -> Mapping[str, Any]:
    """Return ``arguments`` if it is a JSON object.

    Raises:
        CallFaultError: It is something else, or nested too deeply.
    """
    if not isinstance(arguments, dict):
        raise CallFaultError(f"'arguments' is a JSON object, not {kind_of(arguments)}")
    if _too_deep(arguments):
        raise CallFaultError("its JSON is nested too deeply")
    return arguments


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def arguments_from(text: str) -> Any:
    try:
        return decode_whole(text)
    except CallFaultError as fault:
        raise CallFaultError(f"'arguments' is a text, and in it {fault}") from None


def write_json(value: object) -> str:
    """Write a value as JSON that ``decode`` reads back.

    Raises:
        UsageError: JSON has no such value (NaN, bytes, a key that is no text, ...).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if decode_whole(text) == value:
            return text
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a call's arguments cannot be written as JSON: {error}") from error
    raise UsageError(f"a call's arguments do not survive JSON: {text[:200]}")


def kind_of(value: Any) -> str:
    """Name the kind of a JSON value, with its article, for a message."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names: Sequence[tuple[type | tuple[type, ...], str]] = (
        (str, "a text" if value else "an empty text"),
        ((int, float), "a number"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "something else")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise CallFaultError(f"the key {key[:80]!r} stands twice in one object")
        made[key] = value
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise CallFaultError(f"the number {text[:40]} is no finite number")
    return number


def _no_constant(text: str) -> Any:
    raise CallFaultError(f"{text} is no JSON value")


def _explain(error: json.JSONDecodeError) -> str:
    hint = ""
    if error.doc[error.pos : error.pos + 1] == "'":
        hint = " (texts stand in double quotes)"
    elif error.doc[: error.pos].rstrip().endswith(",") or "trailing comma" in error.msg:
        hint = " (no comma before a closing bracket)"
    elif "control character" in error.msg:
        hint = r" (in a text write a line break as \n)"
    return f"{error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}{hint}"


def _python_literal(source: str) -> Any:
    if len(source) > _MAX_REPAIR_CHARS:
        raise CallFaultError("no repair makes it readable")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the model's text
            return _value(ast.parse(source.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CallFaultError("no repair makes it readable") from None


def _value(node: ast.expr) -> Any:
    """The JSON value of a Python literal's syntax tree."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = [(_value(key), _value(v)) for key, v in zip(keys, values, strict=True) if key]
            if len(pairs) < len(keys) or not all(isinstance(key, str) for key, _ in pairs):
                raise ValueError("no JSON object")
            return _unique(pairs)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element) for element in elements]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Constant(value=str() as text):
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case ast.Constant(value=None | bool() | int() | float() as constant):
            return constant
        case ast.Name(id="true" | "false" | "null" as name):
            return {"true": True, "false": False, "null": None}[name]
        case _:
            raise ValueError("no literal")


_HOOKS: dict[str, Any] = {
    "object_pairs_hook": _unique,
    "parse_float": _finite,
    "parse_constant": _no_constant,
}
_DECODER = json.JSONDecoder(**_HOOKS)
_LENIENT_DECODER = json.JSONDecoder(strict=False, **_HOOKS)
