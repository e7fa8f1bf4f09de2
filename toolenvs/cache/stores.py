"""The open stores of this process: one for each URL, closed with its last user, new after a fork.

A forked child must neither use nor close a connection of its parent (SQLite would take the file's
locks for its own), so it forgets them while keeping them alive.
"""

from __future__ import annotations

import os
import threading
from multiprocessing import util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolenvs.cache.store import Store

_lock = threading.Lock()
_open: dict[str, Store] = {}
_inherited: list[Store] = []


def acquire(url: str) -> Store:
    """The process's store for ``url``; ``release`` it in the end."""
    from toolenvs.cache.database import parse_url
    from toolenvs.cache.store import Store

    key = parse_url(url).render_as_string(hide_password=False)
    with _lock:
        store = _open.get(key)
        if store is None:
            store = _open[key] = Store(key)
            util.Finalize(None, _close_all, exitpriority=10)  # at exit, in its processes too
        store.users += 1
        return store


def release(store: Store) -> None:
    """End one use of a store; the last one closes it."""
    with _lock:
        store.users -= 1
        if store.users > 0:
            return
        for key in [key for key, value in _open.items() if value is store]:
            del _open[key]
    if store not in _inherited:
        store.close()


def _close_all() -> None:
    with _lock:
        stores = list(_open.values())
        _open.clear()
    for store in stores:
        store.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_open.values())
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)
