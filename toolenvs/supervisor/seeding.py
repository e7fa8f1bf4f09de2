"""Make every random stream of this process begin at a seed.

Forks of one process would otherwise share numpy's global stream, and no run could be repeated.
Streams pinned: ``random`` (with ``Random()`` and ``SystemRandom``), ``numpy.random`` (legacy and
``default_rng()``), ``os.urandom`` and with it ``secrets`` and ``uuid4``, names of ``tempfile``.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from typing import Any


def seed_all(seed: int) -> None:
    """Seed everything in this process from ``seed``, any integer."""
    stream = random.Random(f"urandom {seed}")

    def urandom(size: int, /) -> bytes:
        """Return ``size`` bytes, seeded: this sandbox repeats."""
        return stream.randbytes(size)

    os.urandom = urandom
    random._urandom = urandom  # type: ignore[attr-defined]  # SystemRandom reads it
    seed_from_c = random.Random.seed

    def seed_stream(self: random.Random, a: Any = None, version: int = 2) -> None:
        """Initialize internal state from a seed."""
        seed_from_c(self, int.from_bytes(urandom(32), "big") if a is None else a, version)

    random.Random.seed = seed_stream  # type: ignore[method-assign]  # for ``Random()``
    random.seed = random._inst.seed
    random.seed(seed)
    inner: Any = tempfile
    names = inner._RandomNameSequence()
    names._rng, names._rng_pid = random.Random(f"tempfile {seed}"), os.getpid()
    inner._name_sequence = names
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
