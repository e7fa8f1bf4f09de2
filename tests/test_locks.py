"""A lock that survives a fork."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator

import pytest

from toolenvs.locks import ForkLock


def in_child(work: Callable[[], bool]) -> bool:
    """What ``work`` says in a forked child; False also if the child hangs or dies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: meant here
        child = os.fork()
    if child == 0:
        said = False
        try:
            answers: list[bool] = []
            thread = threading.Thread(target=lambda: answers.append(work()), daemon=True)
            thread.start()
            thread.join(20.0)
            said = answers == [True]
        finally:
            os._exit(0 if said else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def takes(lock: ForkLock) -> bool:
    """Take the lock, and free it."""
    with lock:
        return True


@contextlib.contextmanager
def held_elsewhere(lock: ForkLock) -> Iterator[None]:
    """A lock that another thread holds meanwhile."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(60.0)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20.0)
    try:
        yield
    finally:
        done.set()
        holder.join()


def test_a_child_finds_a_lock_free_that_a_thread_of_its_parent_holds() -> None:
    """And the parent's own stays held until it is freed there."""
    lock = ForkLock()
    with held_elsewhere(lock):
        assert in_child(lambda: takes(lock))
    assert takes(lock)


def test_a_fork_inside_leaves_its_block_in_order() -> None:
    """The child too is still inside, and frees the lock when it leaves."""
    lock = ForkLock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with lock:
            child = os.fork()
    if child == 0:
        os._exit(0 if takes(lock) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert takes(lock)


def test_it_excludes_and_is_freed_by_an_error() -> None:
    """As every lock."""
    lock = ForkLock()
    counted = [0]

    def count() -> None:
        for _ in range(1000):
            with lock:
                counted[0] += 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [4000]
    with pytest.raises(ValueError, match="x"), lock:
        raise ValueError("x")
    assert takes(lock)


def test_it_survives_pickle() -> None:
    """A copy is free, also of one that is held."""
    lock = ForkLock()
    with lock:
        again: ForkLock = pickle.loads(pickle.dumps(lock))
        assert takes(again)
