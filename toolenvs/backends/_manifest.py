"""A list of a folder's files, by which damage is seen before anything is read from it.

It holds each file's size and a digest of it: of all of a file of up to 8 MiB, and of 128 blocks of
64 KiB spread evenly over a larger one, the first and the last among them. So a file that was cut,
emptied, removed or swapped is always found, a changed byte of a large one only in such a block; and
looking takes milliseconds for an index of any size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

NAME = "manifest.json"
_BLOCK_BYTES = 64 << 10
_BLOCKS = 128


class _File(msgspec.Struct, frozen=True):
    size: int
    digest: str


def write_manifest(folder: Path) -> None:
    """List the files that a folder holds now."""
    (folder / NAME).write_bytes(msgspec.json.encode(_listed(folder)))


def check_manifest(folder: Path) -> None:
    """Compare a folder with its list; files that came later do not count.

    Raises:
        OSError: A file is missing, or cannot be read.
        ValueError: A file differs, or there is no list that can be read.
    """
    try:
        wanted = msgspec.json.decode((folder / NAME).read_bytes(), type=dict[str, _File])
    except FileNotFoundError:
        raise ValueError("it has no list of its files") from None
    for name, file in wanted.items():
        path = folder / name
        # First the size: it tells most, and costs nothing.
        if not path.is_file() or path.stat().st_size != file.size or _facts(path) != file:
            raise ValueError(f"{name} is not what was written")


def _listed(folder: Path) -> Mapping[str, _File]:
    # A lock is no content: libraries make and remove them.
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): _facts(path) for path in sorted(paths)}


def _facts(path: Path) -> _File:
    size = path.stat().st_size
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        last = max(size - _BLOCK_BYTES, 0)
        whole = size <= _BLOCKS * _BLOCK_BYTES
        count = -(-size // _BLOCK_BYTES) if whole else _BLOCKS
        for block in range(count):
            file.seek(block * _BLOCK_BYTES if whole else last * block // (_BLOCKS - 1))
            digest.update(file.read(_BLOCK_BYTES))
    return _File(size, digest.hexdigest())
