"""One sandbox as the client sees it: two sockets, two memory files, and the clock of a call."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import select
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from toolenvs.admission import Admission, admission
from toolenvs.descriptors import Descriptors
from toolenvs.drivers import Blocking, Readable
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.places import refusal
from toolenvs.reckoning import CallClock, Death, Used
from toolenvs.supervisor import wire
from toolenvs.types import ExecResult, ExecStatus, Limits

_ANSWER_S = 30.0  # for the supervisor on a crowded machine; it normally needs 0.1 ms
_FIRST_LOOK_S = 0.05  # shorter calls never trouble the supervisor
_INTERRUPTS = 3
_GRACE_BACKSTOP = 3.0
_NO_MEMORY = (
    "the sandbox's machine ran out of memory while this sandbox was within its limit: give the "
    "container more (memory_bytes), or let it hold fewer sandboxes"
)

_STATUS: Mapping[int, ExecStatus] = {
    wire.OK: "ok",
    wire.RAISED: "raised",
    wire.EXITED: "exited",
    wire.INTERRUPTED: "raised",  # a KeyboardInterrupt that nobody asked for is the code's own
    wire.NO_MEMORY: "memory",
    wire.NO_DISK: "disk",
    wire.NO_PROCESSES: "processes",
    wire.TOO_MUCH_OUTPUT: "output",
}
_BEGUN = (wire.OK, wire.NO_DISK, wire.NO_PLACE, wire.PLACE_OUTSIDE, wire.PLACE_CLOSED)


class Forks(Protocol):
    """What a sandbox asks of its worker."""

    async def branch(self, sandbox: ChannelSandbox) -> ChannelSandbox | None:
        """Make a sandbox that goes on where this one is."""
        ...


class _Over(Exception):  # noqa: N818 - not an error: the call ended in an unusual way
    """The child can give no answer any more."""


class _Broken(Exception):  # noqa: N818 - as above
    """The child broke the protocol: code of the sandbox has written to its socket."""


class ChannelSandbox:
    """A child of a supervisor, as ``protocols.Sandbox``; made by ``ChannelWorker.spawn``.

    Processes and threads that a finished call leaves behind live on until the sandbox stops, and
    count against its limits; what they print between two calls is dropped. A call that runs out of
    time takes all other processes with it.

    A call that breaks the protocol (only code that runs in the child can write to its socket)
    kills the sandbox and counts as the code's own doing: status ``"killed"``. Were it a failure of
    the machine, code could choose to be forgiven.

    Args:
        owned: the client's ends of data and slot, then the files of stdout and stderr.
        limits: what it may use.
        gate: where its calls wait for their turn; the process's own when None.
    """

    def __init__(self, owned: Descriptors, limits: Limits, gate: Admission | None = None) -> None:
        self.limits = limits
        self._gate = gate or admission()
        self.worker: Forks | None = None  # kept alive as long as this is in use
        self.meanwhile: Callable[[], None] | None = None  # called once, when its first call runs
        self.ended = False
        self._owned = owned
        self._data, self._slot, self._stdout, self._stderr = owned.numbers
        self._busy = False
        self._stopping = False
        self._is_branch = False
        self._rests = False  # nothing has run since it was last forked
        self._death: Death | None = None

    async def begin(
        self, setup: bytes, *, data: Sequence[str] = (), folders: Mapping[str, str] | None = None
    ) -> None:
        """Admit the child to its data, seed it and lay out its files.

        Args:
            setup: payload of ``wire.SETUP``.
            data: the places that it names.
            folders: the worker's data folders, to say what is wrong with a place.

        Raises:
            RuntimeFailure: It did not come up, the files do not fit (kind ``"setup"``), or a place
                cannot be read (``"data"``).
        """
        try:
            nonce = await self._send(wire.SETUP, setup)
            if not await Readable(self._data, time.monotonic() + _ANSWER_S):
                raise RuntimeFailure("sandbox_died", "a new sandbox did not answer")
            status, number = self._reply(nonce, _BEGUN)
        except (_Over, _Broken):
            death = await self._kill()
            self._close()
            raise RuntimeFailure("sandbox_died", f"a new sandbox died: {death}") from None
        except BaseException:
            self._close()
            raise
        if status == wire.OK:
            return
        self._close()
        if status == wire.NO_DISK:
            raise RuntimeFailure(
                "setup", f"the task's files do not fit in {self.limits.disk_bytes} bytes"
            )
        raise refusal(status, data[number], folders or {})

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        if self._owned.inherited:
            raise RuntimeFailure("forked", "this sandbox belongs to the parent process")
        if self.ended:
            raise RuntimeFailure("sandbox_died", "this sandbox has ended")
        if self._busy:
            raise UsageError("this sandbox is running another call: one at a time")
        limit_s = min(timeout_s or self.limits.timeout_s, self.limits.timeout_s)
        self._busy = True
        try:
            turn = await self._gate.enter(self._data)
            self._rests = False
            try:
                result = await self._execute(code.encode("utf-8", "surrogatepass"), limit_s)
                if self._is_branch:
                    await self._vouch_for(result)
            except BaseException:  # whether the code ran is unknown now
                self._close()
                raise
            finally:
                turn.leave()
        finally:
            self._busy = False
        if self._stopping:
            self._close()
            raise RuntimeFailure("sandbox_died", "this sandbox was stopped during the call")
        return result

    async def fork(self) -> ChannelSandbox | None:
        """See ``protocols.Sandbox``."""
        if self._owned.inherited or self.ended or self.worker is None:
            return None
        if self._busy:
            raise UsageError("this sandbox is running a call: fork it before or after")
        self._busy = True
        try:
            return await self.worker.branch(self)
        finally:
            self._busy = False

    async def fork_into(self, twin: ChannelSandbox, theirs: list[int]) -> bool:
        """Fork the child, for a sandbox whose sockets and files are ready; tell whether it worked.

        Args:
            twin: the branch to be; of no use if it did not work.
            theirs: descriptors as ``wire.SPAWN`` has them.
        """
        try:
            if not self._rests and not await self._ask(wire.MAY_FORK):
                return False
            twin._is_branch = True
            nonce = await self._send(wire.FORK, b"")
            with socket.socket(fileno=os.dup(self._data)) as data:
                socket.send_fds(data, [b"\0"], theirs[:3])
            for one in (self, twin):
                if not await Readable(one._data, time.monotonic() + _ANSWER_S):
                    return False
                if one._reply(nonce, (wire.OK, wire.NO_BRANCH))[0] != wire.OK:
                    return False
            with socket.socket(fileno=os.dup(self._slot)) as slot:
                socket.send_fds(slot, [wire.ADOPT], theirs)
            packet = await self._answer(wire.ADOPT)
        except (_Over, _Broken, OSError):  # the next call will see what has become of it
            return False
        self._rests = twin._rests = bool(wire.YES_OR_NO.unpack(packet)[1])
        return self._rests

    async def stop(self) -> None:
        """End it; the supervisor kills and wipes at once, and this does not wait for it.

        A call that is running elsewhere then raises ``RuntimeFailure``.
        """
        if self._busy:  # whoever waits for the sockets must wake up before they are closed
            self._stopping = True
            self._tell(wire.KILL)
        else:
            self._close()

    def _close(self) -> None:
        self.ended = True
        self._owned.close()

    def __del__(self) -> None:
        if hasattr(self, "_owned"):
            self._owned.close()

    async def _execute(self, payload: bytes, limit_s: float) -> ExecResult:
        os.lseek(self._stdout, 0, os.SEEK_SET)  # what threads printed between calls is dropped
        os.lseek(self._stderr, 0, os.SEEK_SET)
        clock = CallClock(limit_s, self.limits.backstop)
        late = False
        try:
            nonce = await self._send(wire.RUN, payload)
            if self.meanwhile is not None:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()
            if not await self._wait(clock):
                late = True
                return await self._interrupt(nonce, clock)
            status, exit_code = self._reply(nonce)
        except _Over:
            death = await self._obituary()
            if death.nobodys_fault and not late:
                raise RuntimeFailure("memory", _NO_MEMORY) from None
            return self._result("timeout" if late else death.kind, clock, death=death)
        except _Broken:
            death = await self._kill()
            return self._result("timeout" if late else "killed", clock, death=death)
        if clock.wall_s > _FIRST_LOOK_S:
            with contextlib.suppress(_Over):  # it answered and died since: the next call will see
                clock.used = await self._look()
            if clock.used.doubtful:
                raise RuntimeFailure("memory", _NO_MEMORY)
        return self._result(_STATUS[status], clock, exit_code=exit_code)

    async def _vouch_for(self, result: ExecResult) -> None:
        """Let a result pass that does not depend on what others behind the same walls did.

        Raises:
            RuntimeFailure: It may; this sandbox is of no further use.
        """
        if result.status == "timeout" and result.session_lost:
            return
        if not result.session_lost and result.status not in ("disk", "processes"):
            with contextlib.suppress(_Over):
                if await self._ask(wire.IS_SOUND):
                    return
        raise RuntimeFailure("branch", "this branch did, or met, what a fork cannot keep apart")

    async def _wait(self, clock: CallClock) -> bool:
        """Wait for the child's answer; False when the clock ran out first."""
        if await Readable(self._data, clock.started + min(_FIRST_LOOK_S, clock.limit_s / 4)):
            return True
        clock.head_s = clock.wall_s
        if clock.head_s > 2 * _FIRST_LOOK_S:  # nobody drove this for a while: what was missed?
            clock.head_s -= (await self._look()).delay_s
        self._tell(wire.BEGIN)
        while pause := clock.pause():
            if await Readable(self._data, time.monotonic() + pause):
                return True
            clock.used = await self._look()
        return False

    async def _interrupt(self, nonce: bytes, clock: CallClock) -> ExecResult:
        """Ask the code to end, and after the grace time kill it; a late answer changes nothing.

        It is asked more than once: an interrupt can fall into a callback that swallows it.
        """
        for _ in range(_INTERRUPTS):
            self._tell(wire.INTERRUPT)
            await self._answer(wire.INTERRUPT)
            grace = CallClock(self.limits.grace_s / _INTERRUPTS, _GRACE_BACKSTOP)
            if await self._wait(grace):
                self._reply(nonce)
                return self._result("timeout", clock)
        return self._result("timeout", clock, death=await self._kill())

    async def _kill(self) -> Death:
        self._tell(wire.KILL)
        return await self._obituary()

    async def _obituary(self) -> Death:
        """How the child ended, which the supervisor tells before the data socket ends."""
        with contextlib.suppress(_Over):
            await self._answer(b"")
        assert self._death is not None
        return self._death

    async def _look(self) -> Used:
        self._tell(wire.USAGE)
        packet = await self._answer(wire.USAGE)
        _, passed_ns, cpu_ns, delay_ns, _, doubtful = wire.USED.unpack(packet)
        return Used(passed_ns / 1e9, cpu_ns / 1e9, delay_ns / 1e9, doubtful)

    async def _ask(self, letter: bytes) -> bool:
        """Put a question to the supervisor."""
        self._tell(letter)
        return bool(wire.YES_OR_NO.unpack(await self._answer(letter))[1])

    def _tell(self, letter: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # ``_answer`` tells why
            os.write(self._slot, letter)

    async def _answer(self, letter: bytes) -> bytes:
        """Wait for the supervisor's answer that begins with ``letter``.

        Raises:
            _Over: The child is dead; ``_death`` says how.
            RuntimeFailure: The supervisor is.
        """
        deadline = time.monotonic() + _ANSWER_S
        while self._death is None:
            if not await Readable(self._slot, deadline):
                raise RuntimeFailure("sandbox_died", "the supervisor does not answer")
            try:
                packet = os.read(self._slot, 64)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                packet = b""
            if not packet:
                raise RuntimeFailure("sandbox_died", "the supervisor has ended")
            if packet[:1] == letter:
                return packet
            if packet[:1] == wire.DEATH:
                _, status, flags, _ = wire.DIED.unpack(packet)
                self._death = Death(
                    status, bool(flags & wire.OUT_OF_MEMORY), bool(flags & wire.NOBODYS_FAULT)
                )
        raise _Over

    async def _send(self, operation: int, payload: bytes) -> bytes:
        """Send one request and return its nonce."""
        with contextlib.suppress(BlockingIOError):
            raise _Broken if self._read() else _Over
        nonce = secrets.token_bytes(8)
        rest = memoryview(wire.REQUEST.pack(len(payload), operation, nonce) + payload)
        while rest:
            try:
                rest = rest[os.write(self._data, rest) :]
            except BlockingIOError:
                if not await Blocking(functools.partial(_writable, self._data)):
                    raise _Broken from None
            except (BrokenPipeError, ConnectionResetError):
                raise _Over from None
        return nonce

    def _reply(self, nonce: bytes, known: Collection[int] = _STATUS) -> tuple[int, int]:
        """The child's answer: its status and exit code."""
        packet = self._read()
        if not packet:
            raise _Over
        if len(packet) != wire.REPLY.size or packet[:8] != nonce or packet[8] not in known:
            raise _Broken
        return packet[8], packet[9]

    def _read(self) -> bytes:
        try:
            return os.read(self._data, 64)
        except ConnectionResetError:
            return b""

    def _result(
        self,
        status: ExecStatus,
        clock: CallClock,
        *,
        exit_code: int = 0,
        death: Death | None = None,
    ) -> ExecResult:
        stdout, stdout_cut = self._text(self._stdout)
        stderr, stderr_cut = self._text(self._stderr)
        cut = stdout_cut or stderr_cut
        if cut and death is None and status != "timeout":
            status = "output"
        if death is not None:
            self._close()
        wall_s = clock.wall_s
        return ExecResult(
            status=status,
            stdout=stdout,
            stderr=stderr,
            exit_code=death.exit_code if death else exit_code,
            signal=death.signal if death else 0,
            session_lost=death is not None,
            output_cut=cut,
            cpu_s=clock.used.cpu_s + min(wall_s, _FIRST_LOOK_S),
            wall_s=wall_s,
        )

    def _text(self, number: int) -> tuple[str, bool]:
        """What was written since the call began, and whether the limit cut it."""
        limit = self.limits.output_bytes
        written = os.lseek(number, 0, os.SEEK_CUR)
        text = os.pread(number, min(written, limit), 0).decode("utf-8", "replace")
        if "\ufffd" in text:  # it takes three bytes where the undecodable one took one
            text = text.encode()[:limit].decode("utf-8", "ignore")
        return text, written > limit


def _writable(number: int) -> bool:
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return bool(poll.poll(_ANSWER_S * 1000))
