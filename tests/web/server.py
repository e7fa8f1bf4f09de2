"""A server of this process that answers as told, for whatever asks over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request: its method, path with parameters, headers by lower name, and body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """One reply; ``pieces`` are sent one after the other, so that they may wait."""

    status: int
    headers: Mapping[str, str]
    pieces: Callable[[], Any]


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: the client's side is what is tested."""


class LocalServer:
    """Pages by path, or replies in order; it keeps what it was sent."""

    def __init__(self) -> None:
        self.pages: dict[str, Reply] = {}
        self.replies: list[Reply] = []
        self.received: list[Received] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                got = Received(self.command, self.path, headers, self.rfile.read(length))
                outer.received.append(got)
                reply = outer.pages.get(self.path) or outer.replies.pop(0)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in reply.pieces():
                    self.wfile.write(piece)
                    self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - inherited
                """Keep the test's output clean."""

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def page(self, path: str, content: bytes | str = b"", **headers: str) -> str:
        """Add a page and return its address; ``status`` among the headers is its status."""
        self.pages[path] = _reply(content, headers)
        return self.url + path

    def reply(self, status: int, content: object = "", **headers: str) -> None:
        """Add a reply; an object is sent as JSON."""
        sent = content if isinstance(content, bytes | str) else json.dumps(content)
        self.replies.append(_reply(sent, {**headers, "status": str(status)}))

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


def _reply(content: bytes | str, headers: dict[str, str]) -> Reply:
    body = content.encode() if isinstance(content, str) else content
    status = int(headers.pop("status", "200"))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"Content-Length": str(len(body)), **named}, lambda: [body])
