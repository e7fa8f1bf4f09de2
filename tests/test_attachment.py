"""A container's attached stream, taken over from docker-py."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from toolenvs.engine.attachment import Attachment


def chunk(kind: int, text: bytes) -> bytes:
    """A chunk as the engine frames it."""
    return struct.pack("!B3xI", kind, len(text)) + text


def test_what_was_printed_is_kept_and_the_end_is_told() -> None:
    """Both streams, without their headers."""
    ours, theirs = socket.socketpair()
    attachment = Attachment(ours)
    assert attachment.drain()
    theirs.sendall(chunk(1, b"one ") + chunk(2, b"two"))
    assert attachment.drain()
    theirs.close()
    assert not attachment.drain()
    assert attachment.text == "one two"
    attachment.close()


def test_a_plain_socket_is_handed_over_as_it_is() -> None:
    """Both directions go on, without anything in between."""
    ours, theirs = socket.socketpair()
    with theirs, Attachment(ours).hand_over() as stream:
        stream.sendall(b"in")
        assert theirs.recv(10) == b"in"
        theirs.sendall(b"out")
        stream.settimeout(20.0)
        assert stream.recv(10) == b"out"
    assert ours.fileno() < 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_an_encrypted_stream_is_copied_to_a_plain_socket(tmp_path: Path) -> None:
    """Megabytes both ways at once arrive whole; the end of one side is the end of the other."""
    ours, theirs = encrypted_pair(tmp_path)
    stream = Attachment(ours).hand_over()
    stream.settimeout(20.0)
    sent = bytes(range(256)) * 8000
    received: list[bytes] = []

    def echo() -> None:
        left = len(sent)
        while left:
            part = theirs.recv(1 << 16)
            left -= len(part)
            theirs.sendall(part)
        theirs.close()

    def collect() -> None:
        while part := stream.recv(1 << 16):
            received.append(part)

    threads = [threading.Thread(target=target) for target in (echo, collect)]
    for thread in threads:
        thread.start()
    stream.sendall(sent)
    for thread in threads:
        thread.join(60.0)
    assert b"".join(received) == sent
    stream.close()


def encrypted_pair(folder: Path) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """The two ends of a TLS connection, as of an engine at a ``tcp://`` address."""
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=engine", *files],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert", folder / "key")
    client = ssl.create_default_context(cafile=str(folder / "cert"))
    one, two = socket.socketpair()
    ends: list[ssl.SSLSocket] = []
    accepting = threading.Thread(
        target=lambda: ends.append(server.wrap_socket(two, server_side=True))
    )
    accepting.start()
    ours = client.wrap_socket(one, server_hostname="engine")
    accepting.join()
    return ours, ends[0]
