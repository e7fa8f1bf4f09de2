"""A lock that a fork cannot leave held by nobody."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class ForkLock:
    """A lock for ``with`` that is free in a child of ``os.fork``, unless it forked inside.

    A plain lock that another thread holds at the moment of a fork is held in the child for ever,
    since that thread is not there. What such a thread was changing stays half changed: guard with
    this what the child makes anew, or what is changed in one step. It survives pickling, free.
    """

    __slots__ = ("__weakref__", "_holder", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder = 0
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._holder = 0
        self._lock.release()

    def __reduce__(self) -> tuple[type[ForkLock], tuple[()]]:
        return type(self), ()

    def _after_fork(self) -> None:
        if self._holder != threading.get_ident():
            self._lock = threading.Lock()
            self._holder = 0


_all: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _after_fork() -> None:
    """In the child, where no other thread runs yet."""
    for lock in _all:
        lock._after_fork()


os.register_at_fork(after_in_child=_after_fork)
