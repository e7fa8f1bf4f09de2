"""Backends in a child that was forked while a thread of its parent used them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.backends.passages import cities
from tests.test_locks import held_elsewhere, in_child
from toolenvs.backends._encoders import Embedder
from toolenvs.backends.bm25 import Bm25
from toolenvs.backends.http import Http
from toolenvs.locks import ForkLock
from toolenvs.types import Passage


class Lengths:
    """An encoder of one number."""

    def encode(self, sentences: list[str], **options: Any) -> Any:
        """The lengths of the texts."""
        return np.array([[len(text) + 1.0] for text in sentences])


def bm25() -> tuple[ForkLock, Callable[[], bool]]:
    """The lock of an index, and a use of it."""
    backend = Bm25(corpus=cities())
    return backend._ready()._analyzing, lambda: bool(backend.search("lyon", 1))


def http() -> tuple[ForkLock, Callable[[], bool]]:
    """The lock of what was retrieved, and a use of it."""
    backend = Http(url="http://127.0.0.1:1/")
    backend._kept.add([Passage("7", "", "x")])
    return backend._kept._lock, lambda: backend.open("7") is not None


def embedder() -> tuple[ForkLock, Callable[[], bool]]:
    """The lock of a model, and a use of it."""
    made = Embedder(Lengths(), device="", batch_size=2)
    return made._lock, lambda: made.encode(["a"]).shape == (1, 1)


@pytest.mark.parametrize("made", [bm25, http, embedder])
def test_a_child_can_use_what_another_thread_was_using(
    made: Callable[[], tuple[ForkLock, Callable[[], bool]]],
) -> None:
    """No lock of a thread that is not there holds it up."""
    lock, work = made()
    with held_elsewhere(lock):
        assert in_child(work)
