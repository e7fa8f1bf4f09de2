"""Empty a folder that hostile code has filled: any modes, any depth, links, pipes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty(path: str) -> None:
    """Delete everything in the folder ``path`` but not the folder. Run it as the files' owner.

    A folder's folders are moved up before it is removed, so that depth costs neither stack nor
    descriptors nor path length. Links are removed, never followed.

    Raises:
        OSError: Something could not be removed.
    """
    Path(path).chmod(0o700)
    top = os.open(path, _FOLDER)
    try:
        number = 0
        while names := _names(top):
            for name in names:
                if not _is_folder(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                number = _flatten(name, top, number)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _flatten(name: str, top: int, number: int) -> int:
    """Delete the files of a folder in ``top`` and move its folders into ``top``."""
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in _names(folder):
            if not _is_folder(inner, folder):
                os.unlink(inner, dir_fd=folder)
                continue
            os.chmod(inner, 0o700, dir_fd=folder)  # moving a folder writes to it
            number = _free(top, number)
            os.rename(inner, f"{number}.", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    return number


def _free(top: int, number: int) -> int:
    while True:
        number += 1
        try:
            os.stat(f"{number}.", dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return number


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _is_folder(name: str, inside: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode)
