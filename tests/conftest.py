"""Fixtures that several parts share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared real data; the test skips loudly where it is absent."""
    folder = Path(os.environ.get("TOOLENVS_SHARED", "../shared"))
    folder = folder if folder.is_absolute() else (ROOT / folder).resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set TOOLENVS_SHARED")
    return folder
