"""A cache of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolenvs.cache import ReplayCache, database, store


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A cache's place."""
    return f"sqlite:///{tmp_path / 'cache.db'}"


@pytest.fixture
def cache(url: str) -> Iterator[ReplayCache]:
    """An empty cache."""
    with ReplayCache(url) as made:
        yield made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a lock."""
    monkeypatch.setattr(database, "PATIENCE_S", 0.2)
    monkeypatch.setattr(database, "_LOCK_WAIT_S", 0.05)
    monkeypatch.setattr(store, "PATIENCE_S", 0.2)
