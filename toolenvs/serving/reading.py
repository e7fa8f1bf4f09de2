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
_MEANT = {"queries": ", a list of texts"}


class Retrieve(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for; ``single`` when it held one ``query`` and no list of them."""

    queries: Sequence[str]
    topk: int | None = None
    return_scores: bool = False
    single: bool = False


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
    """Reads the bodies of ``/retrieve``: a batch as Search-R1 sends it, or one query as SkyRL does.

    Args:
        limits: the bounds.

    Attributes:
        types: what bodies are checked by, and the description of the interface shows.
    """

    def __init__(self, limits: SearchLimits) -> None:
        query = Annotated[str, msgspec.Meta(max_length=limits.max_query_chars)]
        queries = Annotated[list[query], msgspec.Meta(max_length=limits.max_queries)]
        # A float, for 3.0 is a whole number in JSON; ``description`` says integer.
        topk = Annotated[float, msgspec.Meta(ge=1, le=limits.max_top_k)] | None
        self._topk = f"topk is a whole number from 1 to {limits.max_top_k}, or null"
        self._batch: Any = msgspec.defstruct(
            "Retrieve",
            [("queries", queries), ("topk", topk, None), ("return_scores", bool, False)],
            kw_only=True,
        )
        self._single: Any = msgspec.defstruct(
            "RetrieveOne", [("query", query), ("topk", topk), ("return_scores", bool)]
        )
        self.types: tuple[Any, Any] = self._batch, self._single

    def read(self, body: bytes | bytearray, encoding: Encoding) -> Retrieve:
        """Read a body; fields that it has besides are ignored, as such servers do.

        Raises:
            RefusedError: 422: it cannot be decoded, misses a field, or passes a bound.
        """
        decode = msgspec.json.decode if encoding == "json" else msgspec.msgpack.decode
        try:
            asked, single = self._decoded(body, decode)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise refused(422, "unreadable", f"the body is no valid {encoding}: {error}.") from None
        if asked.topk is not None and not asked.topk.is_integer():
            raise refused(422, "type", self._topk, "body", "topk")
        return Retrieve(
            queries=[asked.query] if single else asked.queries,
            topk=None if asked.topk is None else int(asked.topk),
            return_scores=asked.return_scores,
            single=single,
        )

    def _decoded(self, body: bytes | bytearray, decode: Any) -> tuple[Any, bool]:
        """A batch, else one query; and whether it is the latter.

        Raises:
            RefusedError: It is neither; it is told as the one that it looks like.
            msgspec.DecodeError: It cannot be decoded at all.
        """
        try:
            return decode(body, type=self._batch), False
        except msgspec.ValidationError as error:
            problem = _problem(str(error))
        try:
            return decode(body, type=self._single), True
        except msgspec.ValidationError as error:
            of_one = _problem(str(error))
        if problem.type == "missing" and (of_one.type, of_one.loc[-1]) != ("missing", "query"):
            problem = _few(problem) if of_one.type == "missing" else of_one
        if problem.loc[-1] == "topk":
            problem = msgspec.structs.replace(problem, msg=self._topk)
        raise RefusedError(422, problem)


def encoding_of(content_type: str, body: bytes | bytearray) -> Encoding:
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


def _problem(message: str) -> Problem:
    """What msgspec says of a value, with its place."""
    place = _PATH.search(message)
    missing = _MISSING.match(message)
    said = message[: place.start()] if place else message
    loc: list[str | int] = ["body"]
    for name, index in _PART.findall(place["path"] if place else ""):
        loc.append(name or int(index))
    if missing:
        field = missing["field"]
        msg = f"the field {field!r} is missing{_MEANT.get(field, '')}"
        return Problem(type="missing", loc=(*loc, field), msg=msg)
    kind = "type" if ", got" in said else "bounds"
    return Problem(type=kind, loc=tuple(loc), msg=said.replace("`", ""))


def _few(problem: Problem) -> Problem:
    """The problem of a request with a ``query`` alone, which may be meant either way."""
    hint = (
        "; a request with one 'query' names 'topk' and 'return_scores' too, or is written "
        '{"queries": [query]}'
    )
    return msgspec.structs.replace(problem, msg=problem.msg + hint)
