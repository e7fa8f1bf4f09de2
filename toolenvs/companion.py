"""A program of ``toolenvs/supervisor`` that runs on this machine, beside this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from toolenvs import supervisor

_END_S = 5.0


class Companion:
    """A started program that ends by itself once its control connection is closed.

    It has no environment, no terminal, and no descriptor but those given.

    Args:
        arguments: for ``supervisor/boot.py``.
        fds: descriptors that it inherits, under their numbers.
    """

    def __init__(self, arguments: Sequence[str], fds: Sequence[int]) -> None:
        self._pid = os.getpid()
        boot = str(Path(supervisor.__path__[0]) / "boot.py")
        # A pipe that is never read would block a program that complains a lot: nobody listens.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", boot, *arguments],
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # an interrupt typed at the terminal is for the client alone
        )

    def end(self) -> None:
        """Wait for its end, for a while; then make it end. Nothing happens in a forked copy."""
        if os.getpid() != self._pid:  # not its child
            return
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None and process.returncode is None:
            process.returncode = 0  # of another process, or about to end: no warning
