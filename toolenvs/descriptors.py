"""File descriptors that end with their owner, and not in a fork of it."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import ClassVar

from toolenvs.supervisor.sealed import sealed_file

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Descriptors:
    """File descriptors with one owner: closed once, and quietly in a forked copy of the process."""

    _live: ClassVar[weakref.WeakSet[Descriptors]] = weakref.WeakSet()

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)
        self.inherited = False
        self._live.add(self)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The descriptors, none after ``close``."""
        return tuple(self._numbers)

    def close(self) -> None:
        """Close them all. More than once is harmless."""
        numbers, self._numbers = self._numbers, []
        for number in numbers:
            with contextlib.suppress(OSError):
                os.close(number)

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __del__(self) -> None:
        self.close()

    @classmethod
    def close_inherited(cls) -> None:
        """In a fork: these belong to the parent, whose supervisors must see it die, not us."""
        for descriptors in list(cls._live):
            descriptors.inherited = True
            descriptors.close()


os.register_at_fork(after_in_child=Descriptors.close_inherited)


def output_file(limit: int) -> int:
    """A sealed memory file for ``limit`` bytes of output.

    It is up to a page longer than the limit, so that output of just the limit is told from output
    that was cut.
    """
    return sealed_file((limit // _PAGE + 1) * _PAGE)
