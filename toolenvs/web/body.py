"""The body of a response, read as it comes and unpacked, never beyond a bound."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from toolenvs.web.faults import AgentFaultError

_AUTO = 32 + zlib.MAX_WBITS  # gzip or zlib, by the header
_MEMBER = b"\x1f\x8b"  # what a member of gzip begins with; several are one text (RFC 1952, 2.2)
_RAW = -zlib.MAX_WBITS  # what some servers mean by "deflate"


class Body(NamedTuple):
    """The unpacked bytes, and whether more would have come."""

    content: bytes
    cut: bool


def read_body(chunks: Iterable[bytes], encoding: str, *, max_bytes: int) -> Body:
    """Read a body, stopping where it passes its bound.

    Args:
        chunks: the bytes as they are sent.
        encoding: the header ``Content-Encoding``.
        max_bytes: most bytes that are read, and most that they are unpacked to: however small it
            is sent, no more memory is used.

    Raises:
        AgentFaultError: It is packed in a way that was not asked for, or broken.
    """
    packing = encoding.strip().lower()
    if packing in ("", "identity"):
        return _plain(chunks, max_bytes)
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise AgentFaultError("refused", f"the page is packed as {packing[:40]!r}.")
    return _unpacked(chunks, max_bytes)


def _plain(chunks: Iterable[bytes], max_bytes: int) -> Body:
    content = bytearray()
    for chunk in chunks:
        content += chunk[: max_bytes + 1 - len(content)]
        if len(content) > max_bytes:
            return Body(bytes(content[:max_bytes]), cut=True)
    return Body(bytes(content), cut=False)


def _unpacked(chunks: Iterable[bytes], max_bytes: int) -> Body:
    content = bytearray()
    sent = 0
    unpacker = None
    held = b""  # one byte, with which another member of gzip may begin
    for chunk in chunks:
        sent += len(chunk)
        packed, held = held + chunk, b""
        while packed:
            if unpacker is None:
                unpacker = zlib.decompressobj(_AUTO if _has_header(packed) else _RAW)
            elif unpacker.eof:
                if packed == _MEMBER[:1]:
                    held = packed
                    break
                if not packed.startswith(_MEMBER):  # padding
                    return Body(bytes(content), cut=False)
                unpacker = zlib.decompressobj(_AUTO)
            content += _decompressed(unpacker, packed, max_bytes + 1 - len(content))
            if len(content) > max_bytes:
                return Body(bytes(content[:max_bytes]), cut=True)
            packed = unpacker.unused_data
        if sent > max_bytes:
            return Body(bytes(content), cut=True)
    return Body(bytes(content), cut=unpacker is not None and not unpacker.eof)


def _decompressed(unpacker: Any, packed: bytes, most: int) -> bytes:
    try:
        unpacked: bytes = unpacker.decompress(packed, most)
    except zlib.error:
        raise AgentFaultError("refused", "the page is packed, and broken.") from None
    return unpacked


def _has_header(first: bytes) -> bool:
    """Tell whether packed bytes begin as gzip or zlib do (RFC 1950, 1952)."""
    return first[0] == 0x1F or (first[0] & 0x0F == 8 and first[0] >> 4 <= 7)
