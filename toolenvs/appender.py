"""A file of lines that one process holds: each line is added whole or not at all."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

import msgspec

from toolenvs import exactjson
from toolenvs.errors import UsageError

_log = logging.getLogger(__name__)


class Damage(msgspec.Struct, frozen=True):
    """A piece of a file that holds no record.

    Attributes:
        path: the file.
        offset: the byte at which it begins.
        length: bytes, the line's end included if it has one.
        reason: what is wrong with it.
    """

    path: str
    offset: int
    length: int
    reason: str


class Appender:
    """A file of lines that one process holds and only grows by whole lines.

    Args:
        path: the file; made if needed.

    Attributes:
        torn: the unfinished last line that a crash left, which was set aside; None without one.
        lines: how many lines it has.

    Raises:
        UsageError: Another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            _hold(self._fd, path)
            self.torn = self._set_aside_tail()
            self.lines = self._count_lines()
        except BaseException:
            self.close()
            raise

    def append(self, line: bytes) -> int:
        """Add a line, whole or not at all, and return the byte at which it begins.

        Raises:
            OSError: It could not be written.
            UsageError: The file is closed.
        """
        whole = line + b"\n"
        if self._fd < 0:
            raise UsageError(f"{self.path} is closed: the writer takes no more.")
        start = os.fstat(self._fd).st_size
        written = 0
        try:
            written = os.write(self._fd, whole)
        finally:
            if written != len(whole):
                os.ftruncate(self._fd, start)
        if written != len(whole):
            raise OSError(f"{self.path}: only {written} of {len(whole)} bytes could be written.")
        self.lines += 1
        return start

    def take_back(self, start: int) -> None:
        """Remove the last line, which begins at ``start``."""
        os.ftruncate(self._fd, start)
        self.lines -= 1

    def close(self) -> None:
        """Bring everything to the disk and let go of the file. More than once is harmless."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _set_aside_tail(self) -> Damage | None:
        size = os.fstat(self._fd).st_size
        start = _end_of_last_line(self._fd, size)
        if start == size:
            return None
        tail = os.pread(self._fd, size - start, start)
        if _is_whole(tail):  # all but its end: cut there, the reader takes it too
            os.write(self._fd, b"\n")
            return None
        aside = _free_name(self.path)
        aside.write_bytes(tail)
        os.ftruncate(self._fd, start)
        damage = Damage(str(self.path), start, size - start, f"an unfinished line, now in {aside}")
        warn(damage)
        return damage

    def _count_lines(self) -> int:
        with self.path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _hold(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"another writer has {path} open: give each its own folder.") from None
    except OSError:  # a file system without locks; the promise is then the caller's
        _log.warning("%s cannot be locked: let only one process write to it", path, exc_info=True)


def _is_whole(tail: bytes) -> bool:
    """Whether an unfinished line lacks nothing but its end: an object that is cut has no end."""
    try:
        return isinstance(exactjson.decode(tail), dict)
    except exactjson.NotJSONError:
        return False


def _end_of_last_line(fd: int, size: int) -> int:
    """The place after the last line's end, looking backwards so that a large run opens fast."""
    end = size
    while end > 0:
        start = max(0, end - (1 << 16))
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.torn-{number}")).exists():
        number += 1
    return aside


def warn(damage: Damage) -> None:
    """Log a damage."""
    _log.warning(
        "%s: %d bytes at byte %d hold no record: %s",
        damage.path,
        damage.length,
        damage.offset,
        damage.reason,
    )
