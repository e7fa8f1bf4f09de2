"""What goes wrong with a request, as a value that can be told to whoever asked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

FaultKind = Literal["raised", "refused", "timeout", "memory", "bad_arguments", "unavailable"]
"""Whose fault it is, and which: all but the last are those of the statement.

* ``raised``: the engine reports an error in it;
* ``refused``: it may not be done here;
* ``timeout``, ``memory``: it met a limit;
* ``bad_arguments``: it is not one statement;
* ``unavailable``: the database, or what is needed to open it safely, is not there.
"""

_LONGEST_NAME = 100  # finding what resembles a name takes the product of the lengths


class Fault(Exception):  # noqa: N818 - an answer more than an error
    """A request that cannot be answered.

    Args:
        kind: which fault.
        message: one or two sentences for whoever wrote the statement.
    """

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.message = message

    def __reduce__(self) -> tuple[type[Fault], tuple[FaultKind, str]]:
        return type(self), (self.kind, self.message)


def nearest(name: str, names: Iterable[str], *, most: int = 3) -> list[str]:
    """Those of ``names`` that resemble ``name`` most, the nearest first, whatever their case.

    A name ``table.column`` is compared by its last part; at most ``most`` are returned.
    """
    known: dict[str, list[str]] = {}
    for full in names:
        known.setdefault(full.rpartition(".")[2].casefold(), []).append(full)
    wanted = name[:_LONGEST_NAME].rpartition(".")[2].casefold()
    close = difflib.get_close_matches(wanted, known, n=most, cutoff=0.6)
    return [full for short in close for full in known[short]][:most]


def listed(names: Iterable[str], *, most: int = 20) -> str:
    """Names for a message: all of a few, else the first ones."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"{', '.join(known[:most])}{more}" if known else "none"
