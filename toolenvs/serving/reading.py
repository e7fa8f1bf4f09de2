"""Read what a client asks: its body, decoded and checked, or one clear problem."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from toolenvs.serving.limits import SearchLimits

Encoding = Literal["json", "msgpack"]
_MSGPACK = {"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"}
_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<field>\w+)`")
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")


class Retrieve(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    queries: Sequence[str]
    topk: int | None = None
    return_scores: bool = False


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a request, as FastAPI says it, whose servers the clients know.

    Attributes:
        type: a short, stable word: ``"missing"``, ``"type"``, ``"bounds"``, ``"unreadable"`` ...
        loc: where, such as ``["body", "queries", 0]``.
        msg: what is wrong and what is allowed.
    """

    type: str
    loc: tuple[str | int, ...]
    msg: str


class RefusedError(Exception):
    """A request is not served.

    Args:
        status: the HTTP status.
        problem: why.
    """

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(problem.msg)
        self.status = status
        self.problem = problem


def refused(status: int, kind: str, msg: str, *loc: str | int) -> RefusedError:
    """Make the error of a request that is not served."""
    return RefusedError(status, Problem(type=kind, loc=loc or ("body",), msg=msg))


class RequestReader:
    """Reads the bodies of ``/retrieve``.

    The type that bounds are checked by is the one that the description of the interface shows.

    Args:
        limits: the bounds.
    """

    def __init__(self, limits: SearchLimits) -> None:
        query = Annotated[str, msgspec.Meta(max_length=limits.max_query_chars)]
        queries = Annotated[list[query], msgspec.Meta(max_length=limits.max_queries)]
        topk = Annotated[int, msgspec.Meta(ge=1, le=limits.max_top_k)]
        self.type: Any = msgspec.defstruct(
            "Retrieve",
            [
                ("queries", queries),
                ("topk", topk | None, None),
                ("return_scores", bool, False),
            ],
            kw_only=True,
        )

    def read(self, body: bytes, encoding: Encoding) -> Retrieve:
        """Read a body; fields that it has besides are ignored, as such servers do.

        Raises:
            RefusedError: 422: it cannot be decoded, misses a field, or passes a bound.
        """
        decode = msgspec.json.decode if encoding == "json" else msgspec.msgpack.decode
        try:
            found = decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise refused(422, "unreadable", f"the body is no valid {encoding}: {error}.") from None
        if isinstance(found, dict) and isinstance(topk := found.get("topk"), float):
            found["topk"] = int(topk) if topk.is_integer() else topk  # 3.0 is an integer in JSON
        try:
            asked = msgspec.convert(found, self.type)
        except msgspec.ValidationError as error:
            raise RefusedError(422, _problem(str(error), found)) from None
        return Retrieve(queries=asked.queries, topk=asked.topk, return_scores=asked.return_scores)


def encoding_of(content_type: str, body: bytes) -> Encoding:
    """Tell how a body is written: by its content type, and without one by its first byte.

    Raises:
        RefusedError: 415: the content type is neither.
    """
    media = content_type.partition(";")[0].strip().lower()
    if media in _MSGPACK:
        return "msgpack"
    if media == "application/json" or (
        media.startswith("application/") and media.endswith("+json")
    ):
        return "json"
    if not media:  # GEM's client names none; an object in MessagePack begins with no character
        return "msgpack" if body[:1] >= b"\x80" else "json"
    raise refused(
        415,
        "content_type",
        f"the content type {media[:60]!r} is not read; send application/json or "
        "application/msgpack.",
        "header",
        "content-type",
    )


def _problem(message: str, found: Any) -> Problem:
    """What msgspec says of a value, with its place."""
    place = _PATH.search(message)
    missing = _MISSING.match(message)
    said = message[: place.start()] if place else message
    loc: list[str | int] = ["body"]
    for name, index in _PART.findall(place["path"] if place else ""):
        loc.append(name or int(index))
    if missing:
        hint = ", a list of texts"
        if isinstance(found, dict) and "query" in found:
            hint += "; a request with one 'query' is written {\"queries\": [query]}"
        field = missing["field"]
        return Problem(
            type="missing", loc=(*loc, field), msg=f"the field {field!r} is missing{hint}"
        )
    kind = "type" if ", got" in said else "bounds"
    return Problem(type=kind, loc=tuple(loc), msg=said.replace("`", ""))
