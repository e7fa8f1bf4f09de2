"""Fixtures of the database tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database.ground import Ground


@pytest.fixture
def emp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """Three employees; the current folder is that of the file, so that whatever is left shows."""
    monkeypatch.chdir(tmp_path)
    ground = Ground(tmp_path)
    yield ground
    ground.answerer.close()
    assert ground.is_unchanged()
