"""Data that sandboxes read: folders that a worker shows, and the places in them of one sandbox.

A runtime gets folders of the engine's machine by name (``{"spider": "/srv/spider/database"}``) and
shows each, read-only, at ``/data/<name>``. A sandbox may read the places that ``spawn`` is given
(``"spider/concert_singer/concert_singer.sqlite"``, a file or a folder) and nothing else of it.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath

from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.supervisor import wire
from toolenvs.supervisor.places import FOLDER as DATA_FOLDER

__all__ = ["DATA_FOLDER", "checked_folders", "checked_places", "refusal"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST = 255  # a sandbox tells by one byte which of them is wrong


def checked_folders(data: Mapping[str, str | PathLike[str]] | None) -> dict[str, str]:
    """Return the data folders by name, as absolute paths.

    Whether they exist is the engine's to say: it may be on another machine.

    Raises:
        UsageError: A name cannot name a folder, or what is here under the path is none.
    """
    folders = {}
    for name, folder in (data or {}).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(
                f"data: {name!r} cannot name a folder: letters, digits, '.', '_' and '-', "
                "beginning with a letter or digit, at most 64."
            )
        if not isinstance(folder, (str, PathLike)):
            raise UsageError(f"data: {name!r} is {folder!r}; it is the path of a folder.")
        path = Path(folder).expanduser().absolute()
        if path.exists() and not path.is_dir():
            raise UsageError(f"data: {name!r} is {str(path)!r}, which is no folder.")
        folders[name] = str(path)
    return folders


def checked_places(places: Sequence[str], folders: Collection[str] | None = None) -> list[str]:
    """Return the places that a sandbox is to read; whether they exist is seen in the worker.

    Args:
        places: the name of a folder and a path in it, joined by ``/``.
        folders: the names of the worker's folders; None where they are not known.

    Raises:
        UsageError: One is absolute, has ``..`` or a zero byte, or is empty; or there are too many.
        UnknownNameError: One is in none of the folders.
    """
    if isinstance(places, str):
        raise UsageError(f"data is the text {places!r}; it is a sequence of places.")
    if len(places) > _MOST:
        raise UsageError(f"{len(places)} places for one sandbox; at most {_MOST}: name a folder.")
    for place in places:
        path = PurePosixPath(place)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in place:
            raise UsageError(f"{place!r} is no place of data: it must be relative, without '..'.")
        if folders is not None and path.parts[0] not in folders:
            raise UnknownNameError("a data folder of this worker", path.parts[0], folders)
    return [str(PurePosixPath(place)) for place in places]


def refusal(status: int, place: str, folders: Mapping[str, str]) -> RuntimeFailure:
    """Say why a sandbox cannot read a place, and what to do.

    Args:
        status: ``wire.NO_PLACE``, ``PLACE_OUTSIDE`` or ``PLACE_CLOSED``.
        place: the place.
        folders: the worker's folders.
    """
    name, _, rest = place.partition("/")
    folder = Path(folders[name])
    if status == wire.PLACE_OUTSIDE:
        why = f"a link in it leads out of {folder}, and nothing else is shown to the sandbox"
    elif status == wire.PLACE_CLOSED:
        why = _who_is_kept_out(folder, rest)
    else:
        why = (
            f"{folder / rest} is neither a file nor a folder there (links must be relative and "
            f"stay in {folder})"
        )
    return RuntimeFailure("data", f"The sandbox cannot read the place {place!r}: {why}.")


def _who_is_kept_out(folder: Path, rest: str) -> str:
    """Name the first folder or file on the way that other users may not pass or read."""
    path = folder
    for part in ("", *PurePosixPath(rest).parts):
        path = path / part
        try:
            mode = path.stat().st_mode
        except OSError:
            break
        needed, word = (stat.S_IROTH, "r") if path == folder / rest else (0, "")
        if stat.S_ISDIR(mode):
            needed, word = needed | stat.S_IXOTH, f"{word}x"
        if mode & needed != needed:
            return (
                f"{path} has mode {stat.S_IMODE(mode):o}, and sandboxes run as users of their own: "
                f"chmod o+{word} {path}"
            )
    return (
        f"it may not be read by other users there, or the engine's machine labels files (SELinux): "
        f"chmod -R o+rX {folder}"
    )
