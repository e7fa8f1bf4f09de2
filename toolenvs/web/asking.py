"""Ask a service over HTTP: tried again where that helps, no oftener than allowed."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.locks import ForkLock
from toolenvs.web.deadline import Deadline
from toolenvs.web.line import Line
from toolenvs.web.retrying import RETRIED, Retries, lost_reason, retry_after_s

_log = logging.getLogger(__name__)


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
        timeout_s: seconds of one request, to the last byte of its reply, however it trickles in.
        max_bytes: most bytes of one reply.
        retries: what to do on 429, 5xx and lost connections.
        clock: seconds that only grow, by which requests are spread.
        sleep: waits for some seconds.

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
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
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
        self._sleep = sleep
        self._pace = _Pace(per_second, clock, sleep)
        self._idle: deque[Line] = deque()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": deque()}

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
                self._sleep(wait_s)
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
        """Close the connections that wait; a later request opens others."""
        while self._idle:
            self._idle.pop().close()

    def _hidden(self, text: str) -> str:
        """A text without the key, should the service have repeated it."""
        key = os.environ.get(self._key_variable, "").strip() if self._key_variable else ""
        return text.replace(key, "[key]") if key else text

    def _once(self, method: str, url: str, request: Mapping[str, Any]) -> Answer | _Again:
        import httpx

        line = self._line()
        try:
            with Deadline(self._timeout_s) as deadline:
                said = self._sent(line, method, url, {**request, "deadline": deadline})
                # A reply that ends where its connection does looks whole when it was cut.
                return said if not deadline.passed else _LATE
        except httpx.InvalidURL as error:
            raise UsageError(f"{self.service}: {url!r} is no address: {error}.") from None
        except httpx.HTTPError as error:
            if deadline.passed:
                return _LATE
            reason = lost_reason(error)
            return _Again(f"no reply: {reason} ({type(error).__name__})", reason)
        finally:
            self._idle.append(line)

    def _sent(
        self, line: Line, method: str, url: str, request: Mapping[str, Any]
    ) -> Answer | _Again:
        with line.stream(method, url, **request) as response:
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > self._max_bytes:
                    problem = f"a reply of more than {self._max_bytes} bytes"
                    raise RuntimeFailure("search", f"{self.service}: {problem}", reason=problem)
        answer = Answer(
            status=response.status_code,
            content=bytes(content),
            content_type=response.headers.get("Content-Type", ""),
        )
        if answer.status in RETRIED or answer.status >= 500:
            after = retry_after_s(response.headers.get("Retry-After", ""))
            status = f"status {answer.status}"
            return _Again(f"{status}: {answer.excerpt()}", status, after)
        return answer

    def _line(self) -> Line:
        """A connection that nobody uses; those that a fork inherited are let go."""
        while self._idle:
            try:
                line = self._idle.pop()
            except IndexError:  # another thread took the last
                break
            if not line.inherited:
                return line
        return Line(self._timeout_s)


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


class _Again(msgspec.Struct, frozen=True):
    """Why a request should be sent again, and when at the earliest."""

    problem: str
    reason: str
    retry_after_s: float = 0.0


_LATE = _Again("no reply: reply timed out", "reply timed out")


class _Pace:
    """Spreads the beginnings of requests evenly over time, for all threads together."""

    def __init__(
        self,
        per_second: float | None,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._lock = ForkLock()
        self._next = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_next": 0.0}  # another machine's clock is another

    def wait(self) -> None:
        """Return when it is this caller's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap_s
        if turn > now:
            self._sleep(turn - now)

    def pause(self, seconds: float) -> None:
        """Let nobody begin before ``seconds`` have passed."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
