"""What a recorded episode was made of, made again from the settings in its record.

A record may be damaged, or come from elsewhere: whatever is wrong with one is a ``DataError``, so
that the episodes beside it go on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from toolenvs import exactjson, formats
from toolenvs.episode import Budgets
from toolenvs.errors import DataError, ToolenvsError, UsageError
from toolenvs.protocols import ToolFormat
from toolenvs.rubric import Rubric
from toolenvs.types import ToolSpec, Trajectory

IMPORTED = "imported"
"""Key of the settings of an episode that another program recorded; its value is the layout."""


class Parts(msgspec.Struct, frozen=True):
    """What an episode needs that its record does not hold as data; None: take it from there."""

    format: ToolFormat | None = None
    rubric: Rubric | None = None
    tokenizer: Callable[[str], int] | None = None


class Made(msgspec.Struct, frozen=True):
    """The parts of an episode."""

    specs: list[ToolSpec]
    format: ToolFormat
    rubric: Rubric
    budgets: Budgets
    tokenizer: Callable[[str], int] | None


def make_parts(setup: Mapping[str, Any], parts: Parts) -> Made:
    """Make what an episode was made of.

    Args:
        setup: the settings of its record.
        parts: what they do not hold as data.

    Raises:
        UsageError: Something that is no data was not given in ``parts``.
        DataError: The settings are damaged, or those of an imported episode; or they name what is
            not known here.
    """
    rubric = parts.rubric or make_rubric(setup)
    tokenizer = _tokenizer(setup, parts)
    with as_data_error():
        return Made(
            specs=msgspec.json.decode(setting(setup, "specs"), type=list[ToolSpec]),
            format=parts.format or _make_format(setup),
            rubric=rubric,
            budgets=msgspec.convert(setting(setup, "budgets"), Budgets),
            tokenizer=tokenizer,
        )


def make_rubric(setup: Mapping[str, Any]) -> Rubric:
    """The rubric by which an episode was scored.

    Raises:
        UsageError: It held an object.
        DataError: As ``make_parts``.
    """
    content = setting(setup, "rewards")
    if content is None:
        raise UsageError(
            "the rubric of this episode held an object, which is no data: give the rubric again."
        )
    with as_data_error():
        return _known_rubric(exactjson.encode(content))


def has_begun(trajectory: Trajectory) -> bool:
    """False for an episode that no machine could be had for."""
    return bool(trajectory.settings or trajectory.prompt)


def layout_of(trajectory: Trajectory) -> str:
    """The layout of an episode that another program recorded, ``""`` for one of our own."""
    return str(trajectory.settings.get(IMPORTED, ""))


@contextmanager
def as_data_error(*, usage: bool = True) -> Iterator[None]:
    """Turn whatever a damaged record makes others raise into a ``DataError``; not failures.

    Args:
        usage: a ``UsageError`` too.
    """
    try:
        yield
    except DataError:
        raise
    except UsageError as error:
        if not usage:
            raise
        raise DataError(str(error)) from error
    except ToolenvsError:
        raise
    except Exception as error:
        raise DataError(f"the record cannot be used: {type(error).__name__}: {error}") from error


def setting(setup: Mapping[str, Any], name: str) -> Any:
    """One setting of a record.

    Raises:
        DataError: There is none of that name.
    """
    if name in setup:
        return setup[name]
    if IMPORTED in setup:
        raise DataError(f"this run was imported ({setup[IMPORTED]}); it cannot be replayed.")
    raise DataError(
        f"the record has no setting {name!r}: an early version of toolenvs, or another program, "
        "wrote it, and it cannot be replayed."
    )


def _make_format(setup: Mapping[str, Any]) -> ToolFormat:
    choice = [setting(setup, "format"), setting(setup, "format_options")]
    return _known_format(exactjson.encode(choice))


@functools.lru_cache(maxsize=16)
def _known_format(choice: bytes) -> ToolFormat:
    name, options = exactjson.decode(choice)
    return formats.make(name, **options)


@functools.lru_cache(maxsize=16)
def _known_rubric(content: bytes) -> Rubric:
    return Rubric.from_dict(exactjson.decode(content))


def _tokenizer(setup: Mapping[str, Any], parts: Parts) -> Callable[[str], int] | None:
    name = setting(setup, "tokenizer")
    if not isinstance(name, str):
        raise DataError(f"the setting 'tokenizer' is {name!r}; it is a text.")
    if name and parts.tokenizer is None:
        raise UsageError(
            f"this episode measured its texts by {name}, which is no data: give the tokenizer "
            "again."
        )
    return parts.tokenizer
