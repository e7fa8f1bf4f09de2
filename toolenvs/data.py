"""Where the files that are not Python live: built-in tasks and the contexts of sandbox images."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from toolenvs.errors import DataError

_PACKAGE = Path(__file__).parent


def data_folder(name: Literal["tasks", "sandboxes"]) -> Path:
    """The folder of that name: inside the installed package, or at the root of a checkout.

    Raises:
        DataError: Neither has it; the message names both places.
    """
    installed = _PACKAGE / "_data" / name
    checkout = _PACKAGE.parent / name
    if installed.is_dir():
        return installed
    # A "tasks" folder that merely happens to lie beside site-packages' toolenvs is not ours.
    if checkout.is_dir() and (_PACKAGE.parent / "pyproject.toml").is_file():
        return checkout
    raise DataError(
        f"{installed}: the folder is missing, and {checkout} is no part of a checkout: "
        "install toolenvs again."
    )
