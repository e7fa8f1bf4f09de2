"""Skips what needs the local sandbox where this machine has none."""

from __future__ import annotations

import functools

import pytest

from toolenvs import runtimes
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked ``local`` where no local sandbox starts; the reason says why."""
    if item.get_closest_marker("local") is not None and (problem := _no_local_sandbox()):
        pytest.skip(problem)


@functools.cache
def _no_local_sandbox() -> str:
    try:
        worker = run(runtimes.make("local").start())
    except RuntimeFailure as failure:
        return str(failure)
    run(worker.stop())
    return ""
