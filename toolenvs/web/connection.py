"""One connection to the web: to a judged address only, and never beyond a deadline."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterable, Iterator
from functools import lru_cache

import httpcore

from toolenvs.web.deadline import Deadline
from toolenvs.web.faults import AgentFaultError
from toolenvs.web.policy import NetworkPolicy


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
                # Without IPv6 here its networks are unreachable: no sign of a broken machine.
                problem = httpcore.ConnectError(str(error)) if ":" in address else error
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
