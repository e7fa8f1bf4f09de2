"""Fixtures that several parts share."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared real data; where it is absent the test skips loudly.

    With TOOLENVS_REQUIRE_SHARED=1 its absence is a failure.
    """
    folder = Path(os.environ.get("TOOLENVS_SHARED", "../shared"))
    folder = folder if folder.is_absolute() else (ROOT / folder).resolve()
    if not folder.is_dir():
        problem = f"no shared data at {folder}: set TOOLENVS_SHARED"
        if os.environ.get("TOOLENVS_REQUIRE_SHARED") == "1":
            pytest.fail(problem)
        pytest.skip(problem)
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs an engine where it cannot run; fail it where an engine is promised."""
    for marker, problem_of in (("docker", _no_docker), ("runsc", _no_runsc)):
        if item.get_closest_marker(marker) is None:
            continue
        problem = problem_of()
        promise = f"TOOLENVS_REQUIRE_{marker.upper()}"
        if problem and os.environ.get(promise) == "1":
            pytest.fail(f"{promise}=1, but: {problem}", pytrace=False)
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


@functools.cache
def _no_runsc() -> str:
    from toolenvs import engine

    known = engine.probe(hub=False).runtimes
    return "" if "runsc" in known else f"the engine has no runtime runsc: it has {known}"
