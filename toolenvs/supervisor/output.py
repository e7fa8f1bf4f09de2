"""Standard output and error of the code: text streams over the sealed memory files at 1 and 2."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any, TextIO

_PIECE = 1 << 16
_FULL = (errno.EPERM, errno.EFBIG)  # beyond the seal; beyond the largest file, after a seek


class OutputLimitReached(BaseException):
    """The code has written all that it may; ``except Exception`` must not keep it printing."""


class SealedFile(io.RawIOBase):
    """A raw file that raises ``OutputLimitReached`` where the kernel refuses to let it grow."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.full = False
        self.discards = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        if self.discards:
            return len(data)
        try:
            return os.write(self._number, data[:_PIECE])
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self.full = True
            raise OutputLimitReached from None


class Streams:
    """The pair of streams, made anew when the code has closed, filled or broken one."""

    def __init__(self) -> None:
        self._raw: list[SealedFile] = []
        self._text: list[TextIO] = []
        self._stdin: TextIO = sys.stdin
        self._open()

    @property
    def full(self) -> bool:
        """True when a limit was reached since ``restore``."""
        return any(raw.full for raw in self._raw)

    def restore(self) -> None:
        """Make ``sys.stdin``, ``stdout`` and ``stderr`` usable again, whatever became of them."""
        stdout, stderr = self._text
        if self.full or stdout.closed or stderr.closed:
            self._open()
        sys.stdout, sys.stderr = self._text
        if getattr(sys, "stdin", None) is not self._stdin or self._stdin.closed:
            self._stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
            sys.stdin = self._stdin
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, f"__{name}__", getattr(sys, name))

    def flush(self) -> None:
        """Write out what is buffered, here and in streams that the code has put in their place."""
        for stream in (*self._text, getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
            with contextlib.suppress(BaseException):  # it may be an object of the code
                if stream is not None:
                    stream.flush()

    def complain(self, text: str) -> None:
        """Write to stderr itself, also when the code has replaced ``sys.stderr``."""
        with contextlib.suppress(Exception, OutputLimitReached):
            self._text[1].write(text)

    def _open(self) -> None:
        for raw in self._raw:
            raw.discards = True  # what is still buffered must not appear in a later call
        for stream in self._text:
            with contextlib.suppress(Exception):
                stream.close()
        self._raw = [SealedFile(1), SealedFile(2)]
        self._text = [
            io.TextIOWrapper(
                io.BufferedWriter(raw),
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=True,
            )
            for raw in self._raw
        ]
