"""A retrieval server: Search-R1's route ``/retrieve`` over any search backend.

POST /retrieve      {"queries": [...], "topk": 3, "return_scores": true} -> {"result": [[...]]}
GET  /document      ?id=... -> one passage, whole
GET  /health  /metrics  /openapi.json
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolenvs.backends import Backend, Hit
from toolenvs.errors import RuntimeFailure
from toolenvs.serving import metrics
from toolenvs.serving.description import MAX_ID_CHARS, describe
from toolenvs.serving.limits import SearchLimits
from toolenvs.serving.metrics import SearchMetrics
from toolenvs.serving.reading import (
    Encoding,
    Problem,
    RefusedError,
    RequestReader,
    encoding_of,
    refused,
)
from toolenvs.web import AgentFaultError

_log = logging.getLogger(__name__)
_BATCH = 32  # queries that one thread searches before another request may have it
_ENCODE: dict[Encoding, tuple[Callable[[Any], bytes], str]] = {
    "json": (msgspec.json.encode, "application/json"),
    "msgpack": (msgspec.msgpack.encode, "application/msgpack"),
}
_Handler = Callable[[Request], Awaitable[Response]]


class SearchServer:
    """The server's routes. ``app`` is an ASGI application, for uvicorn or any other server.

    Args:
        backend: what is searched; its ``prepare`` should have run.
        passages: passages that it holds, None where nobody knows.
        limits: the bounds.
    """

    def __init__(
        self, backend: Backend, *, passages: int | None = None, limits: SearchLimits | None = None
    ) -> None:
        self._backend = backend
        self._passages = passages
        self._fingerprint = backend.fingerprint()  # it may read a whole corpus
        self._limits = limits or SearchLimits()
        self._reader = RequestReader(self._limits)
        self._metrics = SearchMetrics(passages)
        self._description = describe(self._limits, self._reader.types)
        self._threads: CapacityLimiter | None = None
        self._held_bytes = 0
        routes = {
            ("GET", "/health"): self.health,
            ("GET", "/metrics"): self.metrics,
            ("GET", "/openapi.json"): self.openapi,
            ("GET", "/document"): self.document,
            ("POST", "/retrieve"): self.retrieve,
        }
        self._paths = {path for _, path in routes}
        app = Starlette(
            routes=[
                Route(path, _answering(handler), methods=[method])
                for (method, path), handler in routes.items()
            ],
            exception_handlers={HTTPException: _http_problem, Exception: _internal_problem},
        )
        app.router.redirect_slashes = False
        self.app: ASGIApp = self._counted(app)

    async def retrieve(self, request: Request) -> Response:
        """Search for each query."""
        self._enter()
        body = bytearray()
        try:
            await self._receive(request, body)
            encoding = encoding_of(request.headers.get("content-type", ""), body[:1])
            begin = time.perf_counter()
            asked = self._reader.read(body, encoding)
            top_k = asked.topk or self._limits.top_k
            items = functools.partial(self._items, top_k=top_k, scores=asked.return_scores)
            result = await self._searched(asked.queries, items)
            flat = asked.single and encoding == "msgpack"
            response = _encoded({"result": result[0] if flat else result}, encoding=encoding)
            seconds = time.perf_counter() - begin
            hits = sum(map(len, result))
            self._metrics.searched(queries=len(result), hits=hits, seconds=seconds)
            return response
        finally:
            self._metrics.in_progress -= 1
            self._held_bytes -= len(body)

    async def document(self, request: Request) -> Response:
        """One passage, by its id or URL."""
        name = request.query_params.get("id", "")
        if not 1 <= len(name) <= MAX_ID_CHARS:
            kind = "bounds" if name else "missing"
            raise refused(422, kind, f"id has 1 to {MAX_ID_CHARS} characters", "query", "id")
        self._enter()
        try:
            passage = await self._in_thread(functools.partial(self._backend.open, name))
        finally:
            self._metrics.in_progress -= 1
        if passage is None:
            raise refused(404, "unknown", "no passage has this id", "query", "id")
        fields = msgspec.structs.asdict(passage)
        return _encoded({name: _encodable(text) for name, text in fields.items()})

    async def health(self, request: Request) -> Response:
        """What is searched."""
        return _encoded(
            {
                "status": "ok",
                "backend": self._backend.name,
                "fingerprint": self._fingerprint,
                "passages": self._passages,
            }
        )

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus."""
        return Response(self._metrics.text(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def openapi(self, request: Request) -> Response:
        """The description of all this."""
        return _encoded(self._description)

    def _enter(self) -> None:
        """Count one more request that is being answered, unless there are too many."""
        if self._metrics.in_progress >= self._limits.max_requests:
            raise refused(503, "busy", f"{self._limits.max_requests} requests are being answered")
        self._metrics.in_progress += 1

    async def _receive(self, request: Request, body: bytearray) -> None:
        """Fill ``body``, within the bounds of size and time."""
        limits = self._limits
        try:
            with anyio.fail_after(limits.body_timeout_s):
                async for chunk in request.stream():
                    body += chunk
                    self._held_bytes += len(chunk)
                    if len(body) > limits.max_body_bytes:
                        problem = f"the body has more than {limits.max_body_bytes} bytes"
                        raise refused(413, "bounds", problem)
                    if self._held_bytes > limits.max_held_bytes:
                        raise refused(503, "busy", "large requests are being answered; ask again")
        except TimeoutError:
            raise refused(408, "timeout", "the body did not come in time") from None

    async def _searched(
        self, queries: Sequence[str], items: Callable[[str], list[Any]]
    ) -> list[list[Any]]:
        """Search batch by batch, so that a request of thousands lets others through."""
        batches = [queries[at : at + _BATCH] for at in range(0, len(queries), _BATCH)]
        found: list[list[list[Any]]] = [[] for _ in batches]
        faults: list[Exception] = []

        async def search(index: int) -> None:
            if faults:
                return
            try:
                work = functools.partial(lambda batch: [*map(items, batch)], batches[index])
                found[index] = await self._in_thread(work)
            except Exception as error:  # one of them is told; a group of them tells nobody
                faults.append(error)

        async with anyio.create_task_group() as group:
            for index in range(len(batches)):
                group.start_soon(search, index)
        if faults:
            raise faults[0]
        return [*itertools.chain.from_iterable(found)]

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        """Run what blocks on one of the threads; a fault of the machine is told as one."""
        self._threads = self._threads or CapacityLimiter(self._limits.threads)
        try:
            return await to_thread.run_sync(work, limiter=self._threads)
        except AgentFaultError as fault:
            raise refused(422, fault.kind, str(fault)) from None
        except RuntimeFailure as failure:
            _log.warning("the search failed: %s", failure)
            raise refused(503, "failure", "the search failed; ask again") from None

    def _items(self, query: str, *, top_k: int, scores: bool) -> list[Any]:
        """The passages for one query, as they are sent; blank queries find nothing."""
        if not query.strip():
            return []
        hits = self._backend.search(query, top_k)
        documents = [self._document_of(hit) for hit in hits]
        if not scores:
            return documents
        return [
            {"document": document, "score": float(hit.score) if math.isfinite(hit.score) else 0.0}
            for hit, document in zip(hits, documents, strict=True)
        ]

    def _document_of(self, hit: Hit) -> dict[str, str]:
        """A hit's passage, whole; of the live web what the search itself tells."""
        passage = None if self._backend.external else self._backend.open(hit.id)
        text = hit.snippet if passage is None else passage.text
        contents = f'"{" ".join(hit.title.split())}"\n{text}'
        document = {"id": hit.id, "contents": _encodable(contents)}
        return {**document, "url": hit.url} if hit.url else document

    def _counted(self, app: ASGIApp) -> ASGIApp:
        """Count every answer by its route; paths that are none are one."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            route = scope["path"] if scope["path"] in self._paths else "other"

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._metrics.answered(route, message["status"])
                await send(message)

            await app(scope, receive, noted)

        return counted


def _answering(handler: _Handler) -> _Handler:
    """Turn what a handler refuses into the answer."""

    async def answering(request: Request) -> Response:
        try:
            return await handler(request)
        except RefusedError as error:
            return _told(error.status, error.problem)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it

    return answering


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    loc = ("method",) if error.status_code == 405 else ("path",)
    problem = Problem(type=f"status_{error.status_code}", loc=loc, msg=error.detail)
    response = _told(error.status_code, problem)
    response.headers.update(error.headers or {})
    return response


async def _internal_problem(request: Request, error: Exception) -> Response:
    """An error of our own: logged by the server; its text may name what no client should know."""
    return _told(500, Problem(type="internal", loc=("server",), msg="an error inside the server"))


def _encodable(text: str) -> str:
    """A text of a corpus without halves of surrogate pairs, which no encoding has."""
    return text.encode("utf-8", "replace").decode()


def _told(status: int, problem: Problem) -> Response:
    response = _encoded({"detail": [problem]}, status=status)
    if status == 503:
        response.headers["Retry-After"] = "1"
    return response


def _encoded(value: Any, *, encoding: Encoding = "json", status: int = 200) -> Response:
    encode, media_type = _ENCODE[encoding]
    return Response(encode(value), status_code=status, media_type=media_type)
