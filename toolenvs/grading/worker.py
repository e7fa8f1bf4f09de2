"""The client of the killable helper process that compares expressions by sympy.

One helper per process, started when first needed and kept: it takes half a second to start. A
request has a deadline in *processor* time of the helper, read from outside, so that a loaded
machine turns no answer into a time-out; past it the helper is killed. There is no signal in it, so
it works the same in any thread, event loop or forked worker. A fork forgets the parent's helper and
starts its own. The helper ends when its parent is gone or nothing was asked for a while.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolenvs.errors import RuntimeFailure
from toolenvs.grading.nodes import Node, TooLargeError

IDLE_S = 20.0
_START_S = 120.0
_BACKSTOP = 5.0  # wall seconds, as a multiple of the processor seconds allowed
_LEAST_WALL_S = 5.0
_LOOK_S = 0.05
PROGRAM = Path(__file__).with_name("symbolic.py")
_FAULT_SIGNALS = {-6, -8, -11, -24}  # ABRT, FPE, SEGV, XCPU: what it computed broke it


class _GoneError(Exception):
    """The helper ended before it answered."""


class _Request(msgspec.Struct):
    left: Node
    right: Node
    cpu_s: float


class _Reply(msgspec.Struct):
    equal: bool | None = None
    why: str = ""
    cpu_s: float = 0.0


class Proof(NamedTuple):
    """What the helper found: ``equal`` is None if it proved neither; and the time that it took."""

    equal: bool | None
    cpu_s: float


class Helper:
    """One helper process and the pipes to it."""

    def __init__(self) -> None:
        own = str(PROGRAM.parent)  # its math.py would hide the standard one
        folders = [path for path in sys.path if Path(path).is_absolute() and path != own]
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM), str(IDLE_S), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
        )
        try:
            self._receive(time.monotonic() + _START_S, cpu_s=_START_S)
        except TooLargeError as error:  # nothing was asked yet, so no answer is to blame
            self.stop()
            raise _GoneError from error
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process id, for tests and diagnosis."""
        return self._process.pid

    def ask(self, left: Node, right: Node, *, cpu_s: float) -> _Reply:
        """Compare two expressions.

        Raises:
            TooLargeError: It took more than ``cpu_s`` seconds of processor time; the helper must
                be stopped.
            _GoneError: The helper ended, or stands still: it did not answer in several times
                that in wall time either.
        """
        body = msgspec.json.encode(_Request(left, right, cpu_s))
        try:
            self._write(len(body).to_bytes(4, "big") + body)
        except OSError as error:
            raise _GoneError from error
        return self._receive(time.monotonic() + max(_LEAST_WALL_S, cpu_s * _BACKSTOP), cpu_s=cpu_s)

    def stop(self) -> None:
        """Kill it and collect it. More than once is harmless."""
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def forget(self) -> None:
        """Let go of it in a forked child: it belongs to the parent."""
        self._process.returncode = 0
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self._process.stdin.write(view) or 0 :]

    def _receive(self, backstop: float, *, cpu_s: float) -> _Reply:
        deadline = self._cpu() + cpu_s
        head = self._read(4, deadline, backstop)
        body = self._read(int.from_bytes(head, "big"), deadline, backstop)
        return msgspec.json.decode(body, type=_Reply)

    def _read(self, count: int, deadline: float, backstop: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        data = b""
        while len(data) < count:
            # poll rather than select: a descriptor may be beyond 1024 in a large trainer
            poll = select.poll()
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
            if poll.poll(_LOOK_S * 1000):
                piece = os.read(descriptor, count - len(data))
                if not piece:
                    raise self._end()
                data += piece
            elif self._cpu() >= deadline:
                raise TooLargeError("the time of the comparison is used up")
            elif time.monotonic() >= backstop:
                raise _GoneError
        return data

    def _end(self) -> Exception:
        """Say why it ended: by the work it was given, or by the machine."""
        status = self._process.wait()
        return TooLargeError("too much work") if status in _FAULT_SIGNALS else _GoneError()

    def _cpu(self) -> float:
        """Return the processor seconds that it has used; wall time where nothing tells."""
        try:
            # The clock of another process, as clock_getcpuclockid(3) makes its number.
            return time.clock_gettime(~self._process.pid << 3 | 2)
        except (OSError, AttributeError):
            return time.monotonic()


class _Slot:
    """This process's helper, if it runs, and the lock for those who ask it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.helper: Helper | None = None


_slot = _Slot()


def prove_equal(left: Node, right: Node, *, timeout_s: float) -> Proof:
    """Tell by sympy whether two expressions are equal.

    Callers take turns; the time that one waits for its turn does not count.

    Args:
        left: an expression.
        right: an expression.
        timeout_s: processor seconds that the helper may use.

    Raises:
        TooLargeError: That was not enough.
        RuntimeFailure: The helper cannot be started; or twice it ended, or stood still, though it
            was not the question's fault.
    """
    slot = _slot
    with slot.lock:
        for _ in range(2):
            try:
                slot.helper = slot.helper or Helper()
                reply = slot.helper.ask(left, right, cpu_s=timeout_s)
            except _GoneError:
                _stop_in(slot)
                continue
            except OSError as error:
                raise _failure(f"could not be started: {error}") from error
            except BaseException:
                _stop_in(slot)  # a reply that nobody read must not answer the next request
                raise
            if reply.why == "too_large":
                raise TooLargeError("too large to evaluate")
            return Proof(reply.equal, reply.cpu_s)
    raise _failure("ended or stood still twice before it answered")


def stop() -> None:
    """End this process's helper, if one runs. The next comparison that needs one starts it."""
    slot = _slot
    with slot.lock:
        _stop_in(slot)


def helper_pid() -> int | None:
    """Return the process id of this process's helper, None if none runs."""
    return _slot.helper.pid if _slot.helper is not None else None


def _stop_in(slot: _Slot) -> None:
    helper, slot.helper = slot.helper, None
    if helper is not None:
        helper.stop()


def _failure(what: str) -> RuntimeFailure:
    return RuntimeFailure("grader", f"The helper that compares expressions {what}.")


def _forget_after_fork() -> None:
    global _slot
    helper = _slot.helper
    _slot = _Slot()
    if helper is not None:
        helper.forget()


atexit.register(stop)
os.register_at_fork(after_in_child=_forget_after_fork)
