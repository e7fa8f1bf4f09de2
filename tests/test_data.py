"""Finding the files that are not Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolenvs import data
from toolenvs.errors import DataError


def test_the_installed_copy_comes_first_then_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel's own data wins; a folder beside the package counts only in a checkout."""
    package = tmp_path / "toolenvs"
    package.mkdir()
    monkeypatch.setattr(data, "_PACKAGE", package)
    (tmp_path / "tasks").mkdir()
    with pytest.raises(DataError, match="install toolenvs again"):
        data.data_folder("tasks")
    (tmp_path / "pyproject.toml").touch()
    assert data.data_folder("tasks") == tmp_path / "tasks"
    (package / "_data" / "tasks").mkdir(parents=True)
    assert data.data_folder("tasks") == package / "_data" / "tasks"
