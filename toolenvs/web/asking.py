"""Ask a service over HTTP: tried again where that helps, no oftener than allowed."""

from __future__ import annotations

import email.utils
import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from toolenvs.errors import RuntimeFailure, UsageError

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)
_RETRIED = {408, 425, 429, 500, 502, 503, 504, 529}
_opening = threading.Lock()


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How a request that failed is tried again.

    Attributes:
        attempts: requests in all, at least 1.
        first_s: seconds before the second; each further wait is twice as long. The wait is drawn
            between half of that and all of it, so that many episodes do not come back at once.
        longest_s: bound of one wait; a ``Retry-After`` beyond it fails the request.
    """

    attempts: int = 5
    first_s: float = 0.5
    longest_s: float = 30.0

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after the ``attempt``-th request, counted from 0."""
        wait_s = min(self.longest_s, self.first_s * 2.0**attempt)
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - only spreads retries


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a service said: any status that another try would not change."""

    status: int
    content: bytes
    content_type: str = ""

    def excerpt(self) -> str:
        """The beginning of its text in one line, for a message."""
        return " ".join(self.content[:2000].decode("utf-8", "replace").split())[:200] or "no text"


class Asker:
    """Sends requests to one service. It may be used by many threads, and after a fork.

    Args:
        service: what it is called in messages.
        key_variable: the environment variable that holds its key. The key is read for each request
            and is in no message, no record and no ``repr``; ``""``: it needs none.
        per_second: most requests a second that this object begins; None: as many as come.
        timeout_s: seconds to wait for each connection and each piece of a reply.
        max_bytes: most bytes of one reply.
        retries: what to do on 429, 5xx and lost connections.

    Raises:
        UsageError: A number is not positive.
    """

    def __init__(
        self,
        service: str,
        *,
        key_variable: str = "",
        per_second: float | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = 16 << 20,
        retries: Retries | None = None,
    ) -> None:
        if not timeout_s > 0 or (per_second is not None and not per_second > 0):
            raise UsageError(
                f"{service}: timeout_s={timeout_s} and per_second={per_second} must be above 0."
            )
        self.service = service
        self._key_variable = key_variable
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._retries = retries or Retries()
        self._pace = _Pace(per_second)
        self._client: tuple[int, httpx.Client] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def key(self) -> str:
        """The key, ``""`` where none is set.

        Raises:
            UsageError: It cannot stand in a header.
        """
        key = os.environ.get(self._key_variable, "").strip() if self._key_variable else ""
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{self._key_variable} holds characters that no key has.")
        return key

    def needed_key(self) -> str:
        """The key of a service that answers nobody without one.

        Raises:
            RuntimeFailure: None is set.
        """
        key = self.key()
        if not key:
            raise RuntimeFailure(
                "search",
                f"{self.service} needs a key: set {self._key_variable}.",
                reason=f"{self._key_variable} is not set",
            )
        return key

    def ask(self, method: str, url: str, **request: Any) -> Answer:
        """Send a request, again where that may help.

        Args:
            method: ``"GET"`` or ``"POST"``.
            url: where to; nothing of it is secret.
            **request: what else ``httpx.Client.stream`` takes: ``params``, ``content``,
                ``headers`` ...

        Returns:
            The reply, whose status is neither 5xx nor one of those that a wait heals.

        Raises:
            RuntimeFailure: kind ``"search"``: no reply came, or only such ones; ``reason`` says why
                in brief.
        """
        problem = reason = ""
        for attempt in range(self._retries.attempts):
            self._pace.wait()
            said = self._once(method, url, request)
            if isinstance(said, Answer):
                return said
            problem, reason = self._hidden(said.problem), said.reason
            wait_s = max(self._retries.wait_s(attempt), said.retry_after_s)
            if wait_s > self._retries.longest_s:
                problem += f" It asks to wait {wait_s:.0f} s."
                break
            if attempt + 1 < self._retries.attempts:
                _log.info("%s: %s; asking again", self.service, problem)
                self._pace.pause(said.retry_after_s)  # for the others too
                time.sleep(wait_s)
        raise RuntimeFailure("search", f"{self.service}: {problem}", reason=reason)

    def failure(self, answer: Answer) -> RuntimeFailure:
        """The failure that an unexpected reply is, such as a refused key."""
        told = self._hidden(answer.excerpt())
        return RuntimeFailure(
            "search",
            f"{self.service}: status {answer.status}: {told}",
            reason=f"status {answer.status}",
        )

    def no_answer(self, answer: Answer, what: str) -> RuntimeFailure:
        """The failure that a reply is which is no answer to what was asked."""
        return RuntimeFailure(
            "search",
            f"{self.service} sent {what}: {self._hidden(answer.excerpt())}",
            reason="a reply of another shape",
        )

    def close(self) -> None:
        """Close the connections; a later request opens them again."""
        client, self._client = self._client, None
        if client is not None and client[0] == os.getpid():
            client[1].close()

    def _hidden(self, text: str) -> str:
        """A text without the key, should the service have repeated it."""
        key = os.environ.get(self._key_variable, "").strip() if self._key_variable else ""
        return text.replace(key, "[key]") if key else text

    def _once(self, method: str, url: str, request: Mapping[str, Any]) -> Answer | _Again:
        import httpx

        try:
            with self._connection().stream(method, url, **request) as response:
                content = bytearray()
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > self._max_bytes:
                        problem = f"a reply of more than {self._max_bytes} bytes"
                        raise RuntimeFailure("search", f"{self.service}: {problem}", reason=problem)
        except httpx.InvalidURL as error:
            raise UsageError(f"{self.service}: {url!r} is no address: {error}.") from None
        except httpx.HTTPError as error:
            reason = lost_reason(error)
            return _Again(f"no reply: {reason} ({type(error).__name__})", reason)
        answer = Answer(
            status=response.status_code,
            content=bytes(content),
            content_type=response.headers.get("Content-Type", ""),
        )
        if answer.status in _RETRIED or answer.status >= 500:
            after = retry_after_s(response.headers.get("Retry-After", ""))
            status = f"status {answer.status}"
            return _Again(f"{status}: {answer.excerpt()}", status, after)
        return answer

    def _connection(self) -> httpx.Client:
        """This process's client: connections that a fork inherited belong to its parent."""
        with _opening:
            if self._client is None or self._client[0] != os.getpid():
                import httpx

                limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
                timeout = httpx.Timeout(self._timeout_s, connect=min(10.0, self._timeout_s))
                self._client = os.getpid(), httpx.Client(limits=limits, timeout=timeout)
            return self._client[1]


def web_address(url: str, *, of: str) -> str:
    """Return the address of a service, without a slash at its end.

    Raises:
        UsageError: It is none that begins with http(s), or holds what may be secret: it is recorded
            with every run.
    """
    import httpx

    try:
        address = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{of}: {url!r} is no address: {error}.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise UsageError(f"{of}: {url!r} is no address: it begins with http:// or https://.")
    if address.userinfo or address.query or address.fragment:
        raise UsageError(
            f"{of}: the address is recorded, so it may hold no name, password or parameters: "
            "a key belongs into the environment."
        )
    return str(address).rstrip("/")


def retry_after_s(value: str) -> float:
    """Seconds that a ``Retry-After`` header asks for, as a number or a date; 0 without one."""
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def lost_reason(error: Exception) -> str:
    """A lost connection in the words that people know."""
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return "connection timed out"
    if isinstance(error, httpx.TimeoutException):
        return "reply timed out"
    text = str(error).lower()
    known = ("connection refused", "name or service not known", "no route to host", "certificate")
    return next((word for word in known if word in text), type(error).__name__)


class _Again(msgspec.Struct, frozen=True):
    """Why a request should be sent again, and when at the earliest."""

    problem: str
    reason: str
    retry_after_s: float = 0.0


class _Pace:
    """Spreads the beginnings of requests evenly over time, for all threads together."""

    def __init__(
        self, per_second: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {"gap_s": self._gap_s}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(1.0 / state["gap_s"] if state["gap_s"] else None)  # type: ignore[misc]

    def wait(self) -> None:
        """Return when it is this caller's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap_s
        if turn > now:
            time.sleep(turn - now)

    def pause(self, seconds: float) -> None:
        """Let nobody begin before ``seconds`` have passed."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
