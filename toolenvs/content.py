"""Files by what is in them: digests that are read again only where a file has changed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from toolenvs.errors import DataError

BUILT = "built"
"""Name of the data folder of databases that are built here; their digest is that of the script."""

State = tuple[int, int, int, int]
"""Of a file: its size, the times of its content and of its entry, its number."""


def state_of(file: Path) -> State:
    """What ``stat`` tells of a file: another content shows in it.

    Raises:
        DataError: It cannot be read.
    """
    with _readable(file):
        seen = file.stat()
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


def content_digest(files: Sequence[Path]) -> str:
    """SHA-256 over the content of files, in their order; of one file, its own.

    Raises:
        DataError: One cannot be read.
    """
    digests = [_digest(file, state_of(file)) for file in files]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@functools.lru_cache(maxsize=4096)
def _digest(file: Path, _: State) -> str:  # a changed file has another entry
    with _readable(file), file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{file}: the database cannot be read: {error.strerror}.") from error
