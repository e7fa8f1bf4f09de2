"""Fetch one page of the web for an agent: bounded in where, how often, how much and how long."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolenvs.errors import RuntimeFailure
from toolenvs.types import Passage
from toolenvs.web.body import Body, read_body
from toolenvs.web.deadline import Deadline
from toolenvs.web.faults import AgentFaultError
from toolenvs.web.policy import NetworkPolicy, has_route
from toolenvs.web.text import check_media_type, read_text

if TYPE_CHECKING:
    import httpcore
    import httpx

_LONGEST_URL = 4096
_REDIRECTS = {301, 302, 303, 307, 308}
_OFFLINE = {errno.ENETDOWN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS}
_CUT = "\n\n[The page is longer than can be shown: the rest is left out.]"


class PageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one fetch may use.

    Attributes:
        timeout_s: wall seconds in all, from the first name that is resolved to the last byte.
        max_bytes: bytes of the body, both as they are sent and unpacked; a longer one is cut.
        max_chars: characters of its text; a longer one is cut.
        max_redirects: redirects that are followed, each judged like the first address.
    """

    timeout_s: float = 20.0
    max_bytes: int = 2_000_000
    max_chars: int = 500_000
    max_redirects: int = 5


class PageFetcher:
    """Fetches pages as text. It may be used by many threads at once, and keeps no connection.

    No proxy is used, for it would connect to addresses that nobody judged.

    Args:
        policy: where pages may be fetched from.
        limits: what one fetch may use.
        user_agent: what it calls itself.
    """

    def __init__(
        self,
        policy: NetworkPolicy | None = None,
        limits: PageLimits | None = None,
        *,
        user_agent: str = "toolenvs",
    ) -> None:
        self._policy = policy or NetworkPolicy()
        self._limits = limits or PageLimits()
        self._headers = [
            ("User-Agent", user_agent),
            ("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.8"),
            ("Accept-Language", "en;q=0.9,*;q=0.5"),
            ("Accept-Encoding", "gzip, deflate"),
            ("Connection", "close"),
        ]

    def fetch(self, url: str) -> Passage:
        """Fetch the page at ``url``.

        Returns:
            Its title and text; ``id`` is ``url`` and ``url`` where redirects led.

        Raises:
            AgentFaultError: No such page, one that is refused, or one that does not come whole in
                time; whatever a site does is no failure of this machine.
            RuntimeFailure: This machine has no network.
        """
        with Deadline(self._limits.timeout_s) as deadline:
            address, fetched = self._followed(url, deadline)
        page = read_text(fetched.body.content, fetched.content_type)
        text = page.text[: self._limits.max_chars]
        if fetched.body.cut or len(page.text) > len(text):
            text += _CUT
        return Passage(id=url, title=page.title, text=text, url=str(address))

    def _followed(self, url: str, deadline: Deadline) -> tuple[httpx.URL, _Fetched]:
        address = _address(url)
        for _ in range(self._limits.max_redirects + 1):
            fetched = self._once(address, deadline)
            if not fetched.location:
                return address, fetched
            address = _address(fetched.location, base=address)
        raise AgentFaultError(
            "refused", f"the page redirects more than {self._limits.max_redirects} times."
        )

    def _once(self, address: httpx.URL, deadline: Deadline) -> _Fetched:
        import httpcore

        from toolenvs.web.connection import opened

        target = httpcore.URL(
            scheme=address.raw_scheme,
            host=address.raw_host,
            port=address.port,
            target=address.raw_path,
        )
        try:
            with opened(target, self._headers, policy=self._policy, deadline=deadline) as response:
                fetched = self._read(response)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise _lost(error, address.host, passed=deadline.passed) from None
        if deadline.passed:  # a body that ends where the connection does looks whole when cut
            raise _lost(None, address.host, passed=True)
        return fetched

    def _read(self, response: httpcore.Response) -> _Fetched:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        if response.status in _REDIRECTS and headers.get("location"):
            return _Fetched(location=headers["location"])
        if not 200 <= response.status < 300:
            raise _no_page(response.status)
        content_type = headers.get("content-type", "")
        check_media_type(content_type)
        body = read_body(
            response.iter_stream(),
            headers.get("content-encoding", ""),
            max_bytes=self._limits.max_bytes,
        )
        return _Fetched(content_type=content_type, body=body)


class _Fetched(NamedTuple):
    """What one request gave: where to go on, or a body."""

    location: str = ""
    content_type: str = ""
    body: Body = Body(b"", cut=False)


def _address(url: str, *, base: httpx.URL | None = None) -> httpx.URL:
    """Read an address, or where a redirect leads from ``base``.

    Raises:
        AgentFaultError: It is none that can be fetched.
    """
    import httpx

    shown = repr(url if len(url) <= 200 else url[:200] + "...")
    if len(url) > _LONGEST_URL:
        raise AgentFaultError("bad_arguments", f"{shown} is longer than {_LONGEST_URL} characters.")
    try:
        address = base.join(url) if base is not None else httpx.URL(url.strip())
        host = address.host  # read here: a name in Punycode is decoded only now
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise AgentFaultError("bad_arguments", f"{shown} is no address: {error}.") from None
    if address.scheme not in ("http", "https") or not host:
        raise AgentFaultError(
            "bad_arguments",
            f"{shown} cannot be opened: an address begins with http:// or https://.",
        )
    if address.port is not None and not 1 <= address.port <= 65535:
        raise AgentFaultError("bad_arguments", f"{shown} cannot be opened: a port is 1 to 65535.")
    if address.userinfo:
        raise AgentFaultError("refused", f"{shown} cannot be opened: it holds a user's name.")
    return address.copy_with(fragment=None)


def _no_page(status: int) -> AgentFaultError:
    known: Mapping[int, str] = {
        401: "it asks for a password",
        403: "the site forbids it",
        404: "there is no such page",
        410: "the page is gone",
        429: "the site asks to come less often",
    }
    why = known.get(status, "the site is at fault" if status >= 500 else "the site refuses it")
    return AgentFaultError("refused", f"the page cannot be opened: {why} (status {status}).")


def _lost(error: Exception | None, host: str, *, passed: bool) -> Exception:
    import httpcore

    if passed or isinstance(error, httpcore.TimeoutException):
        return AgentFaultError("timeout", f"{host!r} did not send the page in time.")
    cause: Any = error.__cause__ or error.__context__ if error else None
    number = cause.errno if isinstance(cause, OSError) else None
    # Any router on the way may call its network unreachable, and the agent chose where to go.
    if number in _OFFLINE or (number == errno.ENETUNREACH and not has_route()):
        problem = f"this machine cannot reach the web: {cause.strerror}"
        return RuntimeFailure("network", problem, reason=cause.strerror or "no network")
    return AgentFaultError("refused", f"{host!r} cannot be reached, or speaks no HTTP.")
