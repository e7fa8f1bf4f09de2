"""What tests need of a machine: missing, they are skipped, or fail where it was promised."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str, problem: str) -> NoReturn:
    """Skip the test, loudly; with TOOLENVS_REQUIRE_WHAT=1 it fails.

    Args:
        what: ``"docker"``, ``"local"``, ``"postgres"``, ``"shared"`` or ``"runsc"``.
        problem: what is missing, and what to do.
    """
    promise = f"TOOLENVS_REQUIRE_{what.upper()}"
    if os.environ.get(promise) == "1":
        pytest.fail(f"{promise}=1, but: {problem}", pytrace=False)
    pytest.skip(problem)
