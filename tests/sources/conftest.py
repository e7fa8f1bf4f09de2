"""Built databases go into a folder of the test session."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def built_databases(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test writes into the user's cache."""
    folder = tmp_path_factory.getbasetemp() / "databases"
    monkeypatch.setenv("TOOLENVS_DATABASES", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
