"""Shares in pools: one for each thing that is needed, whichever threads ask."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fakes import FakeRuntime
from toolenvs.pools import Pools


class Meeting(FakeRuntime):
    """A runtime whose name is read by both threads before either goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.both = threading.Barrier(2)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Wait for the other thread, where it comes at all."""
        with contextlib.suppress(threading.BrokenBarrierError):
            self.both.wait(0.2)
        return "meeting"


def test_threads_that_need_the_same_get_one_share() -> None:
    """A second share would never be closed, and its pool would live on."""
    runtime: Any = Meeting()
    pools = Pools(runtime)
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(pools.get, ["sandbox:python"] * 2)
    assert one is two
    pools.close()
    assert one.pool.closed
