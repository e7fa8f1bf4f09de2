"""Locations with options: ``PATH,databases=FOLDER``."""

from __future__ import annotations

import re
from collections.abc import Collection

from toolenvs.errors import UnknownNameError, UsageError

_OPTION = re.compile(r",([a-z_]+)=")


def split_location(
    location: str, options: Collection[str], *, source: str
) -> tuple[str, dict[str, str]]:
    """Split a location into its path and its options.

    A comma joins only where ``name=`` follows, so that paths may hold commas.

    Args:
        location: what the user wrote behind ``SOURCE:``.
        options: names of the options that there are.
        source: the source's name, for messages.

    Raises:
        UnknownNameError: An option has another name; the message names the nearest.
        UsageError: An option occurs twice or is empty.
    """
    path, *parts = _OPTION.split(location)
    found: dict[str, str] = {}
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        if name not in options:
            raise UnknownNameError(f"an option of {source}", name, options)
        if name in found or not value:
            raise UsageError(f"write each option of {source} once, as {name}=VALUE.")
        found[name] = value
    return path, found
