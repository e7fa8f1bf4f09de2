"""One connection to the web: to a judged address only, and never beyond a deadline."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache

import httpcore

from toolenvs.web.faults import AgentFaultError
from toolenvs.web.policy import NetworkPolicy


class Deadline:
    """A moment at which every connection that it watches is cut.

    Time-outs of sockets begin anew with each byte, so a server that sends a byte now and then could
    hold a fetch for days. Use it as a context; it ends with the block.
    """

    def __init__(self, timeout_s: float) -> None:
        self._at = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._watched: list[socket.socket] = []
        self._timer = threading.Timer(timeout_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for watched in self._watched:
                watched.close()
            self._watched.clear()

    @property
    def left_s(self) -> float:
        """Seconds until it passes, at least a millisecond."""
        return max(0.001, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self._at

    def watch(self, connected: socket.socket) -> None:
        """Cut this connection too. TLS takes the socket over, hence a descriptor of its own."""
        with self._lock:
            self._watched.append(connected.dup())

    def _cut(self) -> None:
        with self._lock:
            for watched in self._watched:
                with contextlib.suppress(OSError):  # the other side has hung up
                    watched.shutdown(socket.SHUT_RDWR)


class JudgedBackend(httpcore.NetworkBackend):
    """Connects to what the policy lets through, by the very number that it judged."""

    def __init__(self, policy: NetworkPolicy, deadline: Deadline) -> None:
        self._policy = policy
        self._deadline = deadline
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers; see ``NetworkPolicy.addresses`` for errors."""
        found = self._policy.addresses(host, port, timeout_s=self._deadline.left_s)
        problem: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in found:
            try:
                stream = self._plain.connect_tcp(address, port, timeout=self._deadline.left_s)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:
                problem = error
                continue
            self._deadline.watch(stream.get_extra_info("socket"))
            return stream
        assert problem is not None
        raise problem

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Refuse: a page is nowhere on this machine."""
        raise AgentFaultError("refused", "a page is fetched from the web.")


@contextlib.contextmanager
def opened(
    url: httpcore.URL,
    headers: list[tuple[str, str]],
    *,
    policy: NetworkPolicy,
    deadline: Deadline,
) -> Iterator[httpcore.Response]:
    """Get ``url`` over a connection of its own, without proxy; its body is read by the caller."""
    each = dict.fromkeys(("connect", "read", "write", "pool"), deadline.left_s)
    with (
        httpcore.ConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=JudgedBackend(policy, deadline),
        ) as pool,
        pool.stream("GET", url, headers=headers, extensions={"timeout": each}) as response,
    ):
        yield response


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    return httpcore.default_ssl_context()
