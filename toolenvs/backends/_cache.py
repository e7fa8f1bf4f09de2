"""Folders that are made once for a machine, kept in the user's cache, and opened once a process."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from toolenvs.backends._manifest import check_manifest, write_manifest
from toolenvs.errors import RuntimeFailure, ToolenvsError
from toolenvs.locks import ForkLock

T = TypeVar("T")
_log = logging.getLogger(__name__)
_REPORT_EVERY_S = 5.0


def share(
    kind: str, facts: object, *, make: Callable[[Path], None], open_folder: Callable[[Path], T]
) -> T:
    """Return the opened content of a folder of the cache, the same to everybody in this process.

    Many processes may ask at once: one makes the folder and the others wait. It appears under its
    name only when it is complete, with a list of its files. One that differs from its list (see
    ``_manifest``), or cannot be opened, is made anew, once.

    Args:
        kind: what it is; the folder's name begins with it.
        facts: what its content depends on; ``repr`` must tell two contents apart.
        make: fills an empty folder.
        open_folder: opens a finished one; it raises if the content is damaged.

    Raises:
        RuntimeFailure: ``index``: the cache cannot be written, or what was made cannot be opened.
    """
    name = f"{kind}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}"
    try:
        folder = _root() / name
        with _locks.setdefault(str(folder), ForkLock()):
            held: T | None = _held.get(str(folder))
            if held is None:
                held = _held[str(folder)] = _opened(folder, make, open_folder)
            return held
    except OSError as error:
        raise RuntimeFailure(
            "index",
            f"{error.filename or name}: {error.strerror or error}: the search index cannot be kept "
            "there. Free space, or set XDG_CACHE_HOME to a folder that can be written.",
        ) from error


def _opened(folder: Path, make: Callable[[Path], None], open_folder: Callable[[Path], T]) -> T:
    _make_once(folder, make)
    try:
        check_manifest(folder)
        return open_folder(folder)
    except ToolenvsError:
        raise
    except Exception as error:  # whatever a damaged file makes a library raise
        # As a text: a record of the log that is kept must not keep what was half opened.
        _log.warning("%s is damaged (%s) and made again", folder, str(error))
        _discard(folder)
    _make_once(folder, make)
    try:
        return open_folder(folder)
    except Exception as error:
        raise RuntimeFailure(
            "index", f"{folder}: what was made cannot be opened: {error}"
        ) from error


def _make_once(folder: Path, make: Callable[[Path], None]) -> None:
    if folder.is_dir():
        return
    with _alone(folder):
        if folder.is_dir():  # made by another meanwhile
            return
        for left in folder.parent.glob(f"{folder.name}.part-*"):  # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
        try:
            make(part)
            write_manifest(part)
            part.replace(folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def _discard(folder: Path) -> None:
    """Take a folder away; processes that have it open keep what they read."""
    with _alone(folder):
        aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):  # another took it away
            folder.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only one, among threads and processes, to make this folder."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _root() -> Path:
    from toolenvs.images import cache_folder  # it loads docker-py, which only building needs

    root = cache_folder() / "search"
    root.mkdir(parents=True, exist_ok=True)
    return root


def reported(items: Iterable[T], doing: str, *, total: int) -> Iterator[T]:
    """Pass items on and log every few seconds how many there were, and how many a second."""
    began = told = time.monotonic()
    _log.info("%s: %d in all", doing, total)
    count = 0
    for count, item in enumerate(items, start=1):
        yield item
        if count % 256 == 0 and (now := time.monotonic()) - told > _REPORT_EVERY_S:
            told = now
            _log.info(
                "%s: %d of %d (%.0f %%), %.0f a second",
                *(doing, count, total, 100 * count / max(total, 1), count / (now - began)),
            )
    seconds = time.monotonic() - began
    _log.info("%s: %d in %.1f s, %.0f a second", doing, count, seconds, count / max(seconds, 1e-6))


_held: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_locks: dict[str, ForkLock] = {}
