"""Whether a task's files can be laid into a sandbox's working folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from toolenvs.types import Limits

_MAX_PART = 255  # bytes: the longest name that file systems hold
_MAX_PATH = 1000  # bytes, below PATH_MAX of every system by what stands before it
_BLOCK = 4096  # bytes that the smallest file takes


def why_not_laid_out(files: Mapping[str, str]) -> str:
    """Say why no sandbox can hold ``files``; ``""`` when one of the default limits can."""
    paths: dict[PurePosixPath, str] = {}
    folders: dict[PurePosixPath, str] = {}
    size = 0
    for name, text in files.items():
        path = PurePosixPath(name)
        if why := _why_no_name(name, path):
            return f"files cannot hold {_short(name)}; {why}."
        if path in paths:
            return f"files cannot hold both {_short(paths[path])} and {_short(name)}; they are one."
        paths[path] = name
        folders.update(dict.fromkeys(list(path.parents)[:-1], name))
        size += -(-len(text.encode("utf-8", "surrogatepass")) // _BLOCK) * _BLOCK
    for path, name in paths.items():
        if path in folders:
            inside = _short(folders[path])
            return f"files cannot hold both {_short(name)} and {inside}; a file is no folder."
    size += len(folders) * _BLOCK
    limit = Limits().disk_bytes
    if size > limit:
        return f"files take {size} bytes; a sandbox's disk holds {limit}."
    return ""


def _why_no_name(name: str, path: PurePosixPath) -> str:
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        return "a file's name is relative and stays inside the working folder"
    if name.endswith(("/", "/.")):
        return "it names a folder"
    try:
        sizes = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair"
    if max(sizes) > _MAX_PART:
        return f"a part of it is longer than {_MAX_PART} bytes"
    return f"it is longer than {_MAX_PATH} bytes" if len(name.encode()) > _MAX_PATH else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
