"""The open stores of this process: one for each URL, closed with its last user, new after a fork.

A forked child must neither use nor close a connection of its parent (SQLite would take the file's
locks for its own), so it forgets them while keeping them alive.
"""

from __future__ import annotations

import os
import threading
from multiprocessing import util
from typing import TYPE_CHECKING

from toolenvs.cache.flights import Flights
from toolenvs.errors import RuntimeFailure

if TYPE_CHECKING:
    from toolenvs.cache.store import Store

_lock = threading.Lock()
_open: dict[str, Store] = {}
_flights: dict[str, Flights] = {}
_inherited: list[Store] = []
_at_exit: util.Finalize | None = None
_ended_in = 0  # the process that ended, once it does


class Share:
    """One user's share of a URL's store, taken at the first use and given back once.

    Args:
        url: the cache's.
        create: make a cache where there is none.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        self.create = create
        self._store: Store | None = None

    @property
    def taken(self) -> Store | None:
        """The store, None where this user has no share of it now."""
        store = self._store
        return store if store is not None and store.pid == os.getpid() else None

    def take(self) -> Store:
        """The store; opened unless somebody of this process has it open.

        Raises:
            UsageError: The URL or the file cannot be used.
            NewerVersionError: A newer toolenvs made it.
            RuntimeFailure: The server does not answer, or the process ends.
        """
        store = self.taken
        if store is not None and not store.closed:
            return store
        with _lock:  # two threads of one user must not take two shares
            store = self.taken
            if store is None or store.closed:
                store = self._store = _acquire(self.url, create=self.create)
            return store

    def give_back(self) -> None:
        """Write what is left and end this user's share; the last one closes the store.

        More than once is harmless.
        """
        with _lock:
            store, self._store = self.taken, None
        if store is None:
            return
        try:
            store.flush()  # not under the lock: it may take a while, and other caches go on
        finally:
            with _lock:
                _release(store)


def flights_of(url: str) -> Flights:
    """The calls on their way for a URL, whoever opens and closes its store meanwhile."""
    key = _canonical(url)
    with _lock:
        return _flights.setdefault(key, Flights())


def _canonical(url: str) -> str:
    from toolenvs.cache.database import parse_url

    return parse_url(url).render_as_string(hide_password=False)


def _acquire(url: str, *, create: bool) -> Store:
    global _at_exit
    from toolenvs.cache.store import Store

    if _ended_in == os.getpid():
        raise RuntimeFailure("cache", "the process ends, and no cache is opened any more.")
    key = _canonical(url)
    store = _open.get(key)
    if store is None:
        if _at_exit is None:  # in the processes of multiprocessing, too
            _at_exit = util.Finalize(None, _close_all, exitpriority=10)
        store = _open[key] = Store(key, create=create)
    store.users += 1
    return store


def _release(store: Store) -> None:
    store.users -= 1
    if store.users == 0:
        for key in [key for key, value in _open.items() if value is store]:
            del _open[key]
        store.close()  # under the lock: who opens it again finds all that was written


def _close_all() -> None:
    global _ended_in
    with _lock:
        _ended_in = os.getpid()
        left = list(_open.values())
        _open.clear()
    for store in left:
        store.close()


def _after_fork() -> None:
    global _lock, _at_exit
    _lock, _at_exit = threading.Lock(), None
    _inherited.extend(_open.values())
    _open.clear()
    _flights.clear()


os.register_at_fork(after_in_child=_after_fork)
