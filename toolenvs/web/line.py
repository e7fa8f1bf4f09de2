"""One connection to a service: kept from one request to the next, and cut at a deadline."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolenvs.web.deadline import Deadline

if TYPE_CHECKING:
    import ssl
    from contextlib import AbstractContextManager

    import httpx


class Line:
    """A client that has one connection, so that its requests can be cut; for one thread at once.

    It goes through the proxy that the environment names, if any.

    Args:
        timeout_s: seconds to wait for a connection (at most 10), and for each piece of a reply.
    """

    def __init__(self, timeout_s: float) -> None:
        import httpx

        self._process = os.getpid()
        self._socket: socket.socket | None = None
        self._client = httpx.Client(
            verify=_ssl_context(),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            timeout=httpx.Timeout(timeout_s, connect=min(10.0, timeout_s)),
        )

    @property
    def inherited(self) -> bool:
        """Whether a fork brought it here: its connection then belongs to the parent."""
        return self._process != os.getpid()

    def stream(
        self, method: str, url: str, *, deadline: Deadline, **request: Any
    ) -> AbstractContextManager[httpx.Response]:
        """Send a request; it fails with an ``httpx.HTTPError`` when the deadline passes."""

        def trace(event: str, facts: Mapping[str, Any]) -> None:
            if event.endswith("connect_tcp.complete"):  # to the service, or to the proxy
                self._socket = facts["return_value"].get_extra_info("socket")
                self._watch(deadline)

        self._watch(deadline)
        return self._client.stream(method, url, extensions={"trace": trace}, **request)

    def close(self) -> None:
        """Close the connection, unless it is the parent's."""
        if not self.inherited:
            self._client.close()

    def _watch(self, deadline: Deadline) -> None:
        if self._socket is not None and self._socket.fileno() >= 0:
            deadline.watch(self._socket)


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    """What every line trusts; it takes longer to load than a request takes."""
    import httpx

    return httpx.create_ssl_context()
