"""Files by what is in them: digests that are read again only where a file has changed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

from toolenvs.errors import DataError

BUILT = "built"
"""Name of the data folder of databases that are built here; their digest is that of the script."""

_CHUNK = 1 << 20

State = tuple[int, int, int, int]
"""Of a file: its size, the times of its content and of its entry, its number."""


def state_of(file: Path) -> State:
    """What ``stat`` tells of a file: another content shows in it.

    Raises:
        DataError: It cannot be read.
    """
    try:
        seen = file.stat()
    except OSError as error:
        raise DataError(f"{file}: the database cannot be read: {error.strerror}.") from error
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


def content_digest(files: Sequence[Path]) -> str:
    """SHA-256 over the content of files, in their order; of one file, its own.

    Raises:
        DataError: One cannot be read.
    """
    digests = [_file_digest(file) for file in files]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _file_digest(file: Path) -> str:
    try:
        return _digest(str(file), state_of(file))
    except OSError as error:
        raise DataError(f"{file}: the database cannot be read: {error.strerror}.") from error


@functools.lru_cache(maxsize=4096)
def _digest(file: str, _: State) -> str:  # a changed file has another entry
    digest = hashlib.sha256()
    with Path(file).open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
