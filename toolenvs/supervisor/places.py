"""Places in the worker's data: files and folders that one sandbox may read, and no other."""

from __future__ import annotations

import os
import stat

from . import wire
from .landlock import Rules

FOLDER = "/data"
"""Each of the worker's data folders is shown in here, read-only, under its name."""


def admit(place: str, rules: Rules) -> int:
    """Let this process read a place once the rules hold; return ``wire.OK`` or what is wrong.

    Args:
        place: the name of a data folder and a path in it, joined by ``/``; checked by the client
            to be relative and without ``..``.
        rules: to which it is added.
    """
    top = f"{FOLDER}/{place.partition('/')[0]}"
    try:
        path = os.path.realpath(f"{FOLDER}/{place}", strict=True)
        if path != top and not path.startswith(f"{top}/"):
            return wire.PLACE_OUTSIDE
        if not _is_file_or_folder(path):
            return wire.NO_PLACE
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return wire.PLACE_CLOSED
    except OSError:
        return wire.NO_PLACE
    try:
        rules.admit(number, folder=stat.S_ISDIR(os.fstat(number).st_mode))
    finally:
        os.close(number)
    return wire.OK


def _is_file_or_folder(path: str) -> bool:
    mode = os.stat(path).st_mode  # noqa: PTH116 - pathlib costs more
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
