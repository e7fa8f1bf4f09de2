"""The relays' stream: what goes in comes out, in whatever pieces; what is no frame is found."""

from __future__ import annotations

import itertools
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.supervisor import frames
from toolenvs.supervisor.frames import Damaged, Frame, Frames, Outlet, Watch, frame
from toolenvs.supervisor.near import Attached

FRAMES = st.lists(
    st.builds(
        Frame,
        number=st.integers(0, 2**32 - 1),
        kind=st.integers(0, 255),
        payload=st.binary(max_size=40),
    ),
    max_size=8,
)


def pieces(whole: bytes, cuts: list[int]) -> list[bytes]:
    """``whole`` cut at some places."""
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    return [whole[low:high] for low, high in itertools.pairwise(places)]


@given(sent=FRAMES, cuts=st.lists(st.integers(0, 1000), max_size=20))
def test_frames_come_out_as_they_went_in(sent: list[Frame], cuts: list[int]) -> None:
    """For any frames and any cuts of their bytes, the same frames; none is left half-read."""
    reader = Frames(longest=40)
    found: list[Frame] = []
    for piece in pieces(b"".join(frame(*item) for item in sent), cuts):
        found += reader.feed(piece)
    assert found == sent
    assert not reader.torn


def test_a_torn_frame_is_known() -> None:
    """After part of a frame the reader says so."""
    reader = Frames(longest=40)
    assert list(reader.feed(frame(1, 2, b"abc")[:-1])) == []
    assert reader.torn


def test_an_oversized_frame_is_refused_before_it_is_read() -> None:
    """Its header is enough, so that nobody can make the reader take memory."""
    reader = Frames(longest=40)
    with pytest.raises(Damaged, match="41 bytes; at most 40"):
        list(reader.feed(frames.FRAME.pack(1, 2, 41)))


@given(
    chunks=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=30)), max_size=8),
    cuts=st.lists(st.integers(0, 1000), max_size=20),
)
def test_an_attached_stream_is_taken_apart(
    chunks: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    """For any chunks and any cuts: stdout in order, stderr kept as words."""
    whole = b"".join(struct.pack("!B3xI", kind, len(text)) + text for kind, text in chunks)
    reader = Attached()
    out = b"".join(reader.feed(piece) for piece in pieces(whole, cuts))
    assert out == b"".join(text for kind, text in chunks if kind == 1)
    assert reader.words == b"".join(text for kind, text in chunks if kind == 2)
    assert not reader.torn


def test_a_chunk_of_an_unknown_stream_is_refused() -> None:
    """It is no attached stream, or not that of a container without a terminal."""
    with pytest.raises(Damaged, match="stream 72"):
        Attached().feed(b"HTTP/1.1 400 Bad Request")


def test_what_does_not_fit_follows() -> None:
    """An outlet never waits, loses nothing and keeps the order."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = Watch()
        outlet = Outlet(ours.fileno(), watch)
        sent = os.urandom(3_000_000)
        for start in range(0, len(sent), 100_000):
            outlet.put(sent[start : start + 100_000])
        found = bytearray()
        watch.read(theirs.fileno(), lambda: found.extend(os.read(theirs.fileno(), 1 << 20)))
        while len(found) < len(sent):
            watch.wait(1.0)
        assert bytes(found) == sent
        assert not outlet.broken


def test_an_outlet_that_nobody_reads_says_so() -> None:
    """Its reader's end is not an exception in the middle of something else."""
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        outlet = Outlet(ours.fileno(), Watch())
        outlet.put(b"x")
        assert outlet.broken
