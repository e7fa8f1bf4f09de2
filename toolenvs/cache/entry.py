"""One record of the cache, and its bytes: canonical JSON, compressed where that saves something."""

from __future__ import annotations

import hashlib
import zlib

import msgspec

from toolenvs import exactjson
from toolenvs.errors import DataError, UsageError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolResult

_PLAIN, _ZLIB = b"\0", b"\1"
_WORTHWHILE = 512  # bytes; below it zlib saves little and costs time
_LARGEST = 1 << 28  # bytes of one value; both databases take such a one, packed or not


class Recording(msgspec.Struct, frozen=True):
    """A result that was recorded for a call in a state.

    Attributes:
        result: what the call gave.
        servable: False for time-outs and memory errors, which only a replay may serve.
        differing: True when the same call was seen to give another result in the same state.
    """

    result: ToolResult
    servable: bool = True
    differing: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it is stored; the names are those of the columns.

    ``request_digest`` is of the request before it was packed: packed, one request may have many
    forms. It is of another kind than the key, which may be the same for two requests.
    """

    key: bytes
    request: bytes
    result: bytes
    digest: bytes
    tool: str
    call: bytes
    state: bytes
    servable: bool
    differing: bool
    created: float
    size: int
    request_digest: bytes


def make_entry(
    key: CallKey, result: bytes, *, servable: bool, created: float, differing: bool = False
) -> Entry:
    """Pack a record.

    Args:
        key: the call in its state.
        result: the result as ``exactjson`` wrote it.
        servable: see ``Recording``.
        created: seconds since 1970.
        differing: see ``Recording``.

    Raises:
        UsageError: The request or the result is larger than a database takes.
    """
    for name, text in (("request", key.request), ("result", result)):
        if len(text) > _LARGEST:
            raise UsageError(
                f"a {name} of {key.tool!r} has {len(text):,} bytes; {_LARGEST:,} can be recorded."
            )
    request, packed = pack(key.request), pack(result)
    return Entry(
        key=key.key,
        request=request,
        result=packed,
        digest=hashlib.sha256(result).digest(),
        tool=key.tool,
        call=key.call,
        state=key.state,
        servable=servable,
        differing=differing,
        created=created,
        size=len(request) + len(packed),
        request_digest=hashlib.blake2b(key.request, digest_size=16).digest(),
    )


def encode_result(result: ToolResult) -> bytes:
    """Encode a result.

    Raises:
        UsageError: It holds what is no JSON.
    """
    return exactjson.encode(result, name="result")


def decode_result(text: bytes) -> ToolResult:
    """Decode a result.

    Raises:
        DataError: It is none.
    """
    try:
        return msgspec.convert(exactjson.decode(text), ToolResult)
    except (exactjson.NotJSONError, msgspec.ValidationError) as error:
        raise DataError(f"it holds no result: {error}") from error


def checked_result(packed: bytes, digest: bytes) -> bytes:
    """Unpack a result and compare its digest.

    Raises:
        DataError: The bytes are not those that were written.
    """
    text = unpack(packed)
    if hashlib.sha256(text).digest() != digest:
        raise DataError("its bytes are not those that were written.")
    return text


def checked_facts(facts: bytes, digest: bytes) -> bytes:
    """Compare what a sandbox setting stood for with its digest.

    Raises:
        DataError: The bytes are not those that were written.
    """
    if not isinstance(facts, bytes) or hashlib.sha256(facts).digest() != digest:
        raise DataError("its bytes are not those that were written.")
    return facts


def pack(text: bytes) -> bytes:
    """Write bytes in as few as they need, with one byte in front that says how."""
    if len(text) >= _WORTHWHILE:
        small = zlib.compress(text, 6)
        if len(small) < len(text):
            return _ZLIB + small
    return _PLAIN + text


def unpack(packed: bytes) -> bytes:
    """The inverse of ``pack``.

    Raises:
        DataError: It was not packed so.
    """
    how, body = packed[:1], packed[1:]
    if how == _PLAIN:
        return body
    if how != _ZLIB:
        raise DataError(f"it begins with the unknown mark {how!r}.")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(body, _LARGEST)
    except zlib.error as error:
        raise DataError(f"it cannot be unpacked: {error}.") from error
    if not unpacking.eof:
        raise DataError("it is cut, or larger than a record can be.")
    return text
