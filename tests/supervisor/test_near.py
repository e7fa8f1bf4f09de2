"""The relay beside the client, with a far end that the test plays."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from toolenvs.channel import ChannelWorker, open_worker
from toolenvs.companion import Companion
from toolenvs.drivers import Loop, run
from toolenvs.errors import RuntimeFailure
from toolenvs.slot import ChannelSandbox
from toolenvs.supervisor import frames, wire
from toolenvs.supervisor.frames import Frame, Frames, frame
from toolenvs.types import ExecResult, Limits

HELLO = wire.HELLO + json.dumps({"version": wire.VERSION}).encode()


class Container:
    """The far end of a stream: what a container's engine would hold."""

    def __init__(self) -> None:
        self.stream, ours = socket.socketpair()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            ends = theirs.fileno(), ours.fileno()
            self.relay = Companion(["near", *map(str, ends)], ends)
        self.stream.settimeout(20.0)
        self._frames = Frames(1 << 20)
        self._ready: list[Frame] = []
        assert self.next() == Frame(0, frames.OPENING, b"")
        self.send(frame(0, frames.CONTROL, HELLO))
        limits = Limits(output_bytes=1000)
        self.worker: ChannelWorker = run(
            open_worker(control, limits=limits, capacity=2, spares=0, end=self.relay.end)
        )

    def send(self, *parts: bytes, kind: int = 1) -> None:
        """Send frames as one chunk of the attached stream."""
        data = b"".join(parts)
        self.stream.sendall(struct.pack("!B3xI", kind, len(data)) + data)

    def next(self) -> Frame:
        """The relay's next frame but letters."""
        while not self._ready:
            self._read(self.stream.recv(1 << 16))
        return self._ready.pop(0)

    def attend(self) -> None:
        """Answer what letters have come: on a busy machine a client asks how its call is doing."""
        if select.select([self.stream], [], [], 0)[0]:
            self._read(self.stream.recv(1 << 16))

    def _read(self, piece: bytes) -> None:
        for item in self._frames.feed(piece):
            if item.kind != frames.LETTER:
                self._ready.append(item)
            elif item.payload == wire.USAGE:
                used = wire.USAGE + bytes(wire.USED.size - 1)
                self.send(frame(item.number, frames.LETTER, used))

    def answer(self, status: int = wire.OK, *, before: bytes = b"") -> None:
        """Answer the next request."""
        request = self.next()
        assert request.kind == frames.REQUEST
        nonce = request.payload[5:13]
        reply = wire.REPLY.pack(nonce, status, 0)
        self.send(before, frame(request.number, frames.ANSWER, reply))


@pytest.fixture
def container() -> Iterator[Container]:
    """A container with a worker over it."""
    made = Container()
    yield made
    made.stream.close()
    run(made.worker.stop())


def spawned(container: Container) -> ChannelSandbox:
    """A sandbox that has begun."""
    outcomes: list[object] = []
    loop = Loop()
    opening = container.worker.spawn(seed=0, files={})
    loop.spawn(opening, lambda value, error: outcomes.append(error or value))
    assert container.next().kind == frames.SPAWN
    container.answer()
    while not outcomes:
        loop.pump(10.0)
    loop.close()
    assert isinstance(outcomes[0], ChannelSandbox)
    return outcomes[0]


class Call:
    """A call that runs while the test plays the container."""

    def __init__(self, container: Container, sandbox: ChannelSandbox, code: str = "1") -> None:
        self._container = container
        self._loop = Loop()
        self._outcomes: list[ExecResult | BaseException | None] = []
        self._loop.spawn(
            sandbox.execute(code), lambda value, error: self._outcomes.append(error or value)
        )

    def go_on(self) -> None:
        """Let it write what it has."""
        self._loop.pump(0.05)

    def outcome(self) -> ExecResult | BaseException | None:
        """How it ended."""
        give_up = time.monotonic() + 60
        while not self._outcomes:
            assert time.monotonic() < give_up
            self._loop.pump(0.05)
            if self._container.stream.fileno() >= 0:
                self._container.attend()
        self._loop.close()
        return self._outcomes[0]


def test_output_comes_before_the_answer(container: Container) -> None:
    """What a call printed is there when its answer is, and nothing of an earlier call."""
    sandbox = spawned(container)
    for text in (b"first", b"2"):
        call = Call(container, sandbox)
        container.answer(before=frame(1, frames.STDOUT, text))
        result = call.outcome()
        assert isinstance(result, ExecResult)
        assert result.stdout == text.decode()


def test_output_beyond_the_limit_is_cut_here_too(container: Container) -> None:
    """A container that sends more than its sandbox may print cannot flood the client."""
    sandbox = spawned(container)
    call = Call(container, sandbox)
    container.answer(before=frame(1, frames.STDOUT, b"x" * 5000))
    result = call.outcome()
    assert isinstance(result, ExecResult)
    assert (result.status, len(result.stdout), result.output_cut) == ("output", 1000, True)


def test_long_requests_arrive_in_pieces(container: Container) -> None:
    """The first piece of a request is told from the others."""
    sandbox = spawned(container)
    call = Call(container, sandbox, "x" * 300_000)
    first = container.next()
    assert first.kind == frames.REQUEST
    received = len(first.payload)
    while received < 300_000 + wire.REQUEST.size:
        call.go_on()
        more = container.next()
        assert more.kind == frames.MORE
        received += len(more.payload)
    reply = wire.REPLY.pack(first.payload[5:13], wire.OK, 0)
    container.send(frame(1, frames.ANSWER, reply))
    assert isinstance(call.outcome(), ExecResult)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack("!B3xI", 1, 9) + frames.FRAME.pack(1, frames.ANSWER, 1 << 30), "is damaged"),
        (struct.pack("!B3xI", 7, 9), "is damaged: a chunk of stream 7"),
        (struct.pack("!B3xI", 1, 9) + frame(99, frames.END), "sandbox 99"),
        (struct.pack("!B3xI", 1, 9) + frame(1, 77), "kind 77"),
        (struct.pack("!B3xI", 2, 4) + b"oops" + struct.pack("!B3xI", 1, 900), "amid a frame.*oops"),
        (b"", "ended"),
    ],
    ids=["oversized", "no stream", "unknown sandbox", "unknown kind", "torn", "lost"],
)
def test_a_bad_stream_is_a_failure_of_every_sandbox(
    container: Container, sent: bytes, words: str
) -> None:
    """A call that runs fails at once, kind ``sandbox_died``; the worker says why."""
    sandbox = spawned(container)
    call = Call(container, sandbox)
    container.stream.sendall(sent)
    if "damaged" not in words and not words.startswith(("sandbox", "kind")):
        container.stream.close()
    failure = call.outcome()
    assert isinstance(failure, RuntimeFailure)
    assert failure.kind == "sandbox_died"
    assert not container.worker.healthy()
    with pytest.raises(RuntimeFailure, match=words):
        run(container.worker.spawn(seed=0, files={}))


def test_a_client_that_goes_away_ends_the_stream(container: Container) -> None:
    """Closing the control connection is enough; the relay ends and the stream with it."""
    spawned(container)
    run(container.worker.stop())
    assert container.relay._process.returncode == 0
    last = b""
    while piece := container.stream.recv(1 << 16):
        last = piece
    assert len(last) < 1 << 16


def test_a_sandbox_that_was_let_go_is_closed_at_the_far_end(container: Container) -> None:
    """And what still comes for it is ignored."""
    sandbox = spawned(container)
    call = Call(container, sandbox)
    assert container.next().kind == frames.REQUEST
    call._loop.close()  # given up half-way, which closes the sandbox
    assert container.next() == Frame(1, frames.CLOSE, b"")
    container.send(frame(1, frames.ANSWER, b"late"), frame(1, frames.CLOSE))
    other = spawned(container)
    call = Call(container, other)
    container.answer()
    assert isinstance(call.outcome(), ExecResult)
