"""Search: one index, or one service, that all episodes of the process share.

A sandbox's "programs" are requests in JSON, and what it prints is the answer in JSON:

    {"op": "search", "query": "...", "top_k": 5}    {"hits": [{"id", "title", "score", ...}, ...]}
    {"op": "open", "id": "..."}  or  "url"          {"id", "title", "text", "url"}

What an agent did wrong is an answer too: ``{"error": {"kind": "...", "message": "..."}}``.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from toolenvs.backends import Backend, make_over
from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.locks import ForkLock
from toolenvs.types import ExecResult
from toolenvs.web.faults import AgentFaultError

MOST_HITS = 1000
"""Hits of one search."""

_MOST_SHOWN = 200  # characters of an unknown id


class SearchRequest(msgspec.Struct, tag_field="op", tag="search", forbid_unknown_fields=True):
    """Find passages; see ``Backend.search``."""

    query: str
    top_k: Annotated[int, msgspec.Meta(ge=1, le=MOST_HITS)] = 5


class OpenRequest(msgspec.Struct, tag_field="op", tag="open", forbid_unknown_fields=True):
    """Return one passage whole, by its id or its URL; exactly one is given."""

    id: str = ""
    url: str = ""


_decode = msgspec.json.Decoder(SearchRequest | OpenRequest).decode


class Index:
    """A search backend as a runtime.

    Starting a worker builds the index if this machine has none of the corpus and options yet. A
    worker takes any number of episodes; one more costs next to nothing. The last worker that stops
    closes the backend's connections.

    Args:
        backend: a ``Backend``, or the name of one.
        corpus: for a backend that is given by name and searches a corpus: the corpus, a path, or a
            list of these.
        options: keyword options of a backend that is given by name.

    Attributes:
        external: True when the backend asks the world outside.

    Raises:
        UsageError: An option has no meaning.
    """

    name = "index"

    def __init__(
        self, *, backend: str | Backend = "bm25", corpus: object = None, **options: Any
    ) -> None:
        if isinstance(backend, str):
            self.backend = make_over(corpus, backend, options)
        elif not isinstance(backend, Backend):
            raise UsageError(f"backend={backend!r} must be a backend, or the name of one.")
        else:
            if options:
                raise UsageError(
                    f"the options {', '.join(options)} go with a backend's name; give them to the "
                    "backend instead."
                )
            self.backend = backend
        self.external = self.backend.external
        self._workers = 0
        self._told = ""
        self._lock = ForkLock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has no workers yet."""
        return {**self.__dict__, "_workers": 0, "_told": ""}

    def fingerprint(self) -> str:
        """The backend's, as it was when it was first asked for: results are kept under it."""
        self._told = self._told or self.backend.fingerprint()
        return self._told

    async def start(self) -> IndexWorker:
        prepare: Callable[[], None] | None = getattr(self.backend, "prepare", None)
        if prepare is not None:
            await Blocking(prepare)
        with self._lock:
            self._workers += 1
        if await Blocking(self.backend.fingerprint) != self.fingerprint():
            await self._release()
            raise RuntimeFailure(
                "data",
                f"the corpus of the backend {self.backend.name!r} has changed since the "
                "environment was made: make a new one, and let nothing write to the file.",
            )
        return IndexWorker(self.backend, self._release)

    async def _release(self) -> None:
        """A worker has stopped; the last one closes the backend, which the next opens again."""
        with self._lock:
            self._workers -= 1
            unused = self._workers == 0
        close: Callable[[], None] | None = getattr(self.backend, "close", None)
        if unused and close is not None:
            await Blocking(close)


class IndexWorker:
    """A prepared backend."""

    capacity = 1_000_000

    def __init__(self, backend: Backend, release: Callable[[], Awaitable[None]]) -> None:
        self._backend = backend
        self._release = release
        self._alive = True

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> IndexSandbox:
        self.check_alive()
        return IndexSandbox(self._backend, self)

    def healthy(self) -> bool:
        return self._alive

    async def stop(self) -> None:
        if self._alive:
            self._alive = False
            await self._release()

    def check_alive(self) -> None:
        """Refuse to go on once the worker was stopped.

        Raises:
            RuntimeFailure: It was.
        """
        if not self._alive:
            raise RuntimeFailure("sandbox_died", "the search index was closed")


class IndexSandbox:
    """One episode's access to the backend; it holds no state."""

    __slots__ = ("_backend", "_open", "_worker")

    def __init__(self, backend: Backend, worker: IndexWorker) -> None:
        self._backend = backend
        self._worker = worker
        self._open = True

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Answer a request; ``timeout_s`` is not used, since a backend has its own limits."""
        self._worker.check_alive()
        if not self._open:
            raise RuntimeFailure("sandbox_died", "this sandbox has ended")
        if getattr(self._backend, "inline", False):
            answer = answer_request(self._backend, code)
        else:
            answer = await Blocking(lambda: answer_request(self._backend, code))
        return ExecResult(status="ok", stdout=answer)

    async def stop(self) -> None:
        self._open = False


def answer_request(backend: Backend, request: str) -> str:
    """Answer a request, JSON to JSON, as the module's docstring says.

    Raises:
        RuntimeFailure: The backend failed.
    """
    try:
        asked = _decode(request.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return _error("bad_arguments", f"the request cannot be read: {error}")
    try:
        if isinstance(asked, SearchRequest):
            return _search(backend, asked)
        return _open(backend, asked)
    except AgentFaultError as fault:
        return _error(fault.kind, str(fault))


def _search(backend: Backend, asked: SearchRequest) -> str:
    query = asked.query.strip()
    if not query:
        return _error("bad_arguments", "the query is blank; say what to search for.")
    return _encoded({"hits": list(backend.search(query, asked.top_k))[: asked.top_k]})


def _open(backend: Backend, asked: OpenRequest) -> str:
    if bool(asked.id) == bool(asked.url):
        return _error("bad_arguments", "give either an id or a url.")
    wanted = asked.id or asked.url
    passage = backend.open(wanted)
    if passage is not None:
        return _encoded(passage)
    shown = wanted[:_MOST_SHOWN]
    what = "id" if asked.id else "url"
    near = _nearest(backend, shown)
    hint = f"Did you mean {near!r}?" if near else "Ids stand in the results of a search."
    return _error("bad_arguments", f"nothing with the {what} {shown!r} was found. {hint}")


def _nearest(backend: Backend, name: str) -> str:
    """The id most like ``name``: of all where the backend knows, else of what a search finds."""
    known = getattr(backend, "nearest", None)
    if near := known(name) if known is not None else "":
        return str(near)
    if backend.external:
        return ""
    ids = [hit.id for hit in backend.search(name, 5)] if name.strip() else []
    return next(iter([*difflib.get_close_matches(name, ids, n=1), *ids[:1]]), "")


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _error(kind: str, message: str) -> str:
    return _encoded({"error": {"kind": kind, "message": message}})
