"""Options of sources that make their tasks: ``seed=0,n=100,kinds=a+b``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from toolenvs.errors import UnknownNameError, UsageError


def read_options(location: str, known: Collection[str], *, source: str) -> dict[str, str]:
    """The options of a location by name, as texts.

    Raises:
        UnknownNameError: An option has another name.
        UsageError: One has no value or occurs twice.
    """
    options: dict[str, str] = {}
    for part in filter(None, (text.strip() for text in location.split(","))):
        name, sign, value = part.partition("=")
        if name not in known:
            raise UnknownNameError(f"an option of {source}", name, known)
        if not sign or name in options:
            raise UsageError(f"write each option of {source} once, as {name}=VALUE.")
        options[name] = value
    return options


def whole_number(
    options: Mapping[str, str], name: str, *, default: int, low: int, high: int
) -> int:
    """The option ``name`` as a whole number from ``low`` to ``high``.

    Raises:
        UsageError: It is no such number.
    """
    text = options.get(name, str(default))
    # isdecimal and not int(): "1_000", " 7" and "-0" would be read as numbers by int().
    if text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high:
        return int(text)
    raise UsageError(f"{name}={text!r} must be a whole number from {low} to {high}.")


def choices(text: str, known: Iterable[str], *, kind: str) -> tuple[str, ...]:
    """The names in ``a+b``; all that are known when it is empty.

    Raises:
        UnknownNameError: A name is not known.
        UsageError: One occurs twice.
    """
    known = tuple(known)
    names = tuple(name.strip() for name in text.split("+")) if text else known
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    if len(set(names)) < len(names):
        raise UsageError(f"{text!r} names {kind} twice.")
    return names
