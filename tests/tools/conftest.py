"""Fixtures of the tools' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.sql_sandbox import Episode


@pytest.fixture
def episode(tmp_path: Path) -> Episode:
    """An episode about three employees."""
    return Episode(tmp_path)
