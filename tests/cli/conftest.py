"""A sandbox without a machine behind it, known by name, and a way to call the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from tests.test_rollout import Adder
from toolenvs import runtimes
from toolenvs.cli import app

Toolenvs = Callable[..., Result]


@pytest.fixture
def adder() -> Iterator[Adder]:
    """``--sandbox adder``."""
    runtime = Adder()
    runtimes.register("adder", lambda: runtime)
    yield runtime
    del runtimes.registry._registered["adder"]


@pytest.fixture
def toolenvs() -> Toolenvs:
    """Call the command line with these words."""

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, list(words), prog_name="toolenvs")

    return call
