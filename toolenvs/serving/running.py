"""Run an ASGI application by uvicorn, on an address of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from toolenvs.errors import UsageError


def listen(host: str, port: int) -> socket.socket:
    """Take an address; port 0 takes any free one.

    Raises:
        UsageError: It cannot be had; the message says why.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {host}:{port}: {why}.") from None


def address(taken: socket.socket) -> str:
    """The address of a socket that listens, as a URL."""
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: ASGIApp,
    taken: socket.socket,
    *,
    started: Callable[[], None],
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Answer until the process is told to end (SIGINT, SIGTERM); then finish what has begun.

    Args:
        app: what answers.
        taken: the socket to listen on; it is closed in the end.
        started: called once, when requests are answered.
        ended: called once, when none are any more; then the signal that ended it takes its course.
    """
    server = make_server(app)
    plain_startup, plain_shutdown = server.startup, server.shutdown

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await plain_startup(sockets)
        started()

    async def shutdown(sockets: list[socket.socket] | None = None) -> None:
        await plain_shutdown(sockets)
        ended()

    server.startup = startup  # type: ignore[method-assign]  # uvicorn has no hooks for these
    server.shutdown = shutdown  # type: ignore[method-assign]
    server.run(sockets=[taken])


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server that logs warnings only, by this process's own handlers."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    return uvicorn.Server(config)
