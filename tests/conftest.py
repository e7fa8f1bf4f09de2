"""Fixtures that several parts share."""

from __future__ import annotations

import functools
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked ``docker`` where it cannot run; fail it where an engine is promised."""
    if item.get_closest_marker("docker") is None:
        return
    problem = _no_docker()
    if problem and os.environ.get("TOOLENVS_REQUIRE_DOCKER") == "1":
        pytest.fail(f"TOOLENVS_REQUIRE_DOCKER=1, but: {problem}", pytrace=False)
    if problem:
        pytest.skip(problem)


@functools.cache
def _no_docker() -> str:
    from toolenvs import images
    from toolenvs.errors import RuntimeFailure

    try:
        images.ensure_image("python")
    except RuntimeFailure as failure:
        return str(failure)
    return ""
