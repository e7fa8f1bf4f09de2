"""Ask a service over HTTP: tried again where that helps, no oftener than allowed."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.locks import ForkLock
from toolenvs.ranges import DAY_S, checked_number
from toolenvs.web.deadline import Deadline
from toolenvs.web.faults import AgentFaultError
from toolenvs.web.line import Line
from toolenvs.web.retrying import RETRIED, Retries, lost_reason, retry_after_s

_log = logging.getLogger(__name__)
_NOT_IMPLEMENTED = 501
_LEAST_KEY = 8  # characters: what is shorter is no key, but may be a word of a document


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a service said: any status that another try would not change.

    Where it repeats the key that it was asked with, ``content`` has ``[key]`` in its place.
    """

    status: int
    content: bytes

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
        timeout_s: seconds of one request, to the last byte of its reply, however it trickles in;
            at most a day.
        max_bytes: most bytes of one reply.
        retries: what to do on 429, 5xx and lost connections.
        clock: seconds that only grow, by which requests are spread.
        sleep: waits for some seconds.

    Raises:
        UsageError: A number is none, or out of range.
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
        checked_number(f"{service}: timeout_s", timeout_s, most=DAY_S, above=True)
        if per_second is not None:
            checked_number(f"{service}: per_second", per_second, least=1e-5)
        if retries is not None and not isinstance(retries, Retries):
            raise UsageError(f"{service}: retries={retries!r} must be a Retries, or None.")
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
            The reply, whose status is none of those that a wait may heal: no 5xx but 501.

        Raises:
            AgentFaultError: ``params``, of which agents choose a part, make no address.
            RuntimeFailure: kind ``"search"``: no reply came, or only such ones; ``reason`` says why
                in brief.
            UsageError: ``url`` is no address.
        """
        problem = reason = ""
        for attempt in range(self._retries.attempts):
            self._pace.wait()
            said = self._once(method, url, request)
            if isinstance(said, Answer):
                return said
            problem, reason = said.problem, said.reason
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
        return RuntimeFailure(
            "search",
            f"{self.service}: status {answer.status}: {answer.excerpt()}",
            reason=f"status {answer.status}",
        )

    def no_answer(self, answer: Answer, what: str) -> RuntimeFailure:
        """The failure that a reply is which is no answer to what was asked."""
        return RuntimeFailure(
            "search",
            f"{self.service} sent {what}: {answer.excerpt()}",
            reason="a reply of another shape",
        )

    def close(self) -> None:
        """Close the connections that wait; a later request opens others."""
        while self._idle:
            self._idle.pop().close()

    def _without_key(self, content: bytes, status: int) -> bytes:
        """A reply without the key, should the service have repeated it."""
        key = self.key()
        if not key or (len(key) < _LEAST_KEY and 200 <= status < 300):
            return content
        for spelt in {key, json.dumps(key)[1:-1], key.replace("/", "\\/")}:
            content = content.replace(spelt.encode(), b"[key]")
        return content

    def _once(self, method: str, url: str, request: Mapping[str, Any]) -> Answer | _Again:
        import httpx

        line = self._line()
        try:
            with Deadline(self._timeout_s) as deadline:
                said = self._sent(line, method, url, {**request, "deadline": deadline})
                # A reply that ends where its connection does looks whole when it was cut.
                return said if not deadline.passed else _LATE
        except httpx.InvalidURL as error:
            web_address(url, of=self.service)
            raise AgentFaultError(
                "bad_arguments", f"{self.service} cannot be asked for this: {error}."
            ) from None
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
        status = response.status_code
        answer = Answer(status=status, content=self._without_key(bytes(content), status))
        if status in RETRIED or (status >= 500 and status != _NOT_IMPLEMENTED):
            after = retry_after_s(response.headers.get("Retry-After", ""))
            reason = f"status {status}"
            return _Again(f"{reason}: {answer.excerpt()}", reason, after)
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

    if not isinstance(url, str):
        raise UsageError(f"{of}: url={url!r} must be a text.")
    try:
        address = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{of}: {url!r} is no address: {error}.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise UsageError(f"{of}: {url!r} is no address: it begins with http:// or https://.")
    if address.port is not None and not 1 <= address.port <= 65535:
        raise UsageError(f"{of}: {url!r} is no address: a port is 1 to 65535.")
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
