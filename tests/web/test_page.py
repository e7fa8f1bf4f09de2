"""Pages of the web, served by this process: only its own address is let through."""

from __future__ import annotations

import contextlib
import errno
import gzip
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.server import LocalServer, Reply
from toolenvs.errors import RuntimeFailure
from toolenvs.web import AgentFaultError, NetworkPolicy, PageFetcher, PageLimits, policy
from toolenvs.web.body import read_body

HERE = NetworkPolicy(allow=("127.0.0.1/32",))


@pytest.fixture
def site() -> Iterator[LocalServer]:
    """A running site."""
    server = LocalServer()
    yield server
    server.close()


def fetch(url: str, policy: NetworkPolicy = HERE, **limits: Any) -> str:
    """The text of a page."""
    return PageFetcher(policy, PageLimits(**{"timeout_s": 10.0, **limits})).fetch(url).text


def fault(url: str, policy: NetworkPolicy = HERE, **limits: Any) -> AgentFaultError:
    """Why a page cannot be had."""
    with pytest.raises(AgentFaultError) as raised:
        fetch(url, policy, **limits)
    return raised.value


def test_a_page_of_html_is_its_title_and_text(site: LocalServer) -> None:
    """Without scripts and tags; entities are read."""
    html = (
        "<html><head><title>A &amp;\n b</title><script>x()</script></head><body><p>Hi &lt;you&gt;."
    )
    url = site.page("/a", html, Content_Type="text/html")
    page = PageFetcher(HERE).fetch(url + "#part")
    assert (page.title, page.text) == ("A & b", "Hi <you>.")
    assert (page.id, page.url) == (url + "#part", url)


@pytest.mark.parametrize("media", ["text/plain", "application/json", "application/rss+xml", ""])
def test_other_text_is_shown_as_it_is(site: LocalServer, media: str) -> None:
    """JSON, XML and plain text keep every character."""
    assert fetch(site.page("/t", ' {"a": "<b>"} ', Content_Type=media)) == '{"a": "<b>"}'


def test_a_page_without_a_type_may_be_html(site: LocalServer) -> None:
    """It is told by its beginning."""
    assert fetch(site.page("/t", "\n<!DOCTYPE html><p>Hello")) == "Hello"


@pytest.mark.parametrize(
    "media", ["application/pdf", "image/png", "application/octet-stream", "video/mp4"]
)
def test_what_is_no_text_is_refused_by_its_type(site: LocalServer, media: str) -> None:
    """The message names the type and what can be shown."""
    error = fault(site.page("/f", b"...", Content_Type=media))
    assert error.kind == "refused"
    assert media in str(error)
    assert "HTML" in str(error)


@pytest.mark.parametrize("content", [b"%PDF-1.7 ...", b"PK\x03\x04...", b"a\x00b"])
def test_a_file_that_calls_itself_text_is_refused(site: LocalServer, content: bytes) -> None:
    """A type is only a claim."""
    assert fault(site.page("/f", content, Content_Type="text/html")).kind == "refused"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1.2.3:8080/",
        "http://localhost/",
        "http://[::1]/",
        "http://0.0.0.0/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://192.0.0.192/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378::1]/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[3fff::1]/",
        "http://8.8.8.8:22/",
    ],
)
def test_what_is_not_the_public_web_is_refused(url: str) -> None:
    """However its number is written; no connection is made."""
    assert fault(url, NetworkPolicy()).kind == "refused"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "/etc/passwd",
        "x",
        "",
        "http://",
        "gopher://a",
    ],
)
def test_only_http_is_fetched(url: str) -> None:
    """The message says how an address begins."""
    error = fault(url)
    assert error.kind == "bad_arguments"
    assert "http" in str(error)


def test_a_name_in_an_address_is_refused(site: LocalServer) -> None:
    """It is a trick to make one host look like another."""
    assert fault(f"http://wikipedia.org@127.0.0.1:{site.port}/").kind == "refused"


def test_a_huge_address_is_refused() -> None:
    """And is not repeated whole."""
    error = fault("http://127.0.0.1/" + "a" * 100_000)
    assert error.kind == "bad_arguments"
    assert len(str(error)) < 500


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str] | OSError) -> list[str]:
    """Let names resolve to these addresses, one answer after the other; returns who was asked."""
    asked: list[str] = []
    left = list(answers)

    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *rest: Any, **named: Any) -> list[Any]:
        if host[0].isdigit():  # a number is itself
            return list(real(host, port, *rest, **named))
        asked.append(host)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, OSError):
            raise answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in answer]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_a_name_is_judged_by_what_it_resolves_to(
    site: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public name of a private address is refused."""
    resolving(monkeypatch, ["10.0.0.7"])
    assert fault("http://harmless.example/").kind == "refused"


def test_one_private_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever would have been taken."""
    resolving(monkeypatch, ["93.184.215.14", "127.0.0.2"])
    assert fault("http://mixed.example/").kind == "refused"


def test_the_address_that_was_judged_is_the_one_connected_to(
    site: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is resolved once for each connection: a second answer is never asked for."""
    url = site.page("/a", "hello", Content_Type="text/plain")
    asked = resolving(monkeypatch, ["127.0.0.1"], ["10.0.0.7"])
    assert fetch(url.replace("127.0.0.1", "rebind.example")) == "hello"
    assert asked == ["rebind.example"]
    assert site.received[0].headers["host"] == f"rebind.example:{site.port}"


def test_a_redirect_is_judged_like_the_first_address(site: LocalServer) -> None:
    """To the metadata service, another scheme, a private address: refused."""
    for target in ("http://169.254.169.254/", "http://10.0.0.1/x", "//192.168.1.1/"):
        assert fault(site.page("/r", status="302", Location=target)).kind == "refused"
    error = fault(site.page("/r", status="307", Location="file:///etc/passwd"))
    assert error.kind == "bad_arguments"


def test_redirects_are_followed_a_few_times(site: LocalServer) -> None:
    """Relative ones too; then it is enough."""
    site.page("/end", "here", Content_Type="text/plain")
    site.page("/b", status="301", Location="end")
    url = site.page("/a", status="302", Location="/b?x#y")
    site.page("/b?x", status="301", Location="end")
    page = PageFetcher(HERE).fetch(url)
    assert (page.text, page.url) == ("here", f"{site.url}/end")
    assert fault(url, max_redirects=1).kind == "refused"
    assert fault(site.page("/loop", status="302", Location="/loop")).kind == "refused"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 500, 503])
def test_a_site_that_gives_no_page_is_no_failure_of_this_machine(
    site: LocalServer, status: int
) -> None:
    """Whoever chose the address reads why; an agent cannot end its episode by it."""
    error = fault(site.page("/x", "secret", status=str(status)))
    assert (error.kind, f"status {status}" in str(error)) == ("refused", True)


def test_a_host_that_is_not_there_is_told() -> None:
    """No such name, and nobody at the port."""
    assert fault("http://nothing.invalid/").kind in ("bad_arguments", "refused")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert "cannot be reached" in str(fault(f"http://127.0.0.1:{port}/"))


def test_a_machine_without_names_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the page's fault."""
    resolving(monkeypatch, socket.gaierror(socket.EAI_AGAIN, "try again"))
    with pytest.raises(RuntimeFailure) as raised:
        fetch("http://example.com/")
    assert raised.value.kind == "network"


def test_a_name_whose_servers_are_broken_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks like a broken resolver, but other names resolve: the agent reads it."""
    resolving(monkeypatch, socket.gaierror(socket.EAI_AGAIN, "try again"), ["93.184.215.14"])
    assert fault("http://lame.example/").kind == "bad_arguments"


@pytest.mark.parametrize(
    ("address", "number", "route", "fails"),
    [
        ("93.184.215.14", errno.ENETUNREACH, False, True),
        ("93.184.215.14", errno.ENETUNREACH, True, False),
        ("2606:4700::1", errno.ENETUNREACH, False, False),
        ("93.184.215.14", errno.ENETDOWN, True, True),
        ("93.184.215.14", errno.EMFILE, True, True),
        ("93.184.215.14", errno.EHOSTUNREACH, False, False),
    ],
)
def test_a_machine_without_a_network_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, address: str, number: int, route: bool, fails: bool
) -> None:
    """Where a known address has no route either: a router may call any network unreachable.

    One without IPv6 is none: an agent can always write such an address.
    """
    import httpcore

    def connect_tcp(*_: Any, **__: Any) -> Any:
        try:
            raise OSError(number, "it failed")
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect_tcp)
    monkeypatch.setattr(policy, "_knows_way_to", lambda _: route)
    resolving(monkeypatch, [address])
    with pytest.raises(RuntimeFailure if fails else AgentFaultError):
        fetch("http://far.example/", NetworkPolicy())


def test_a_name_that_takes_all_the_time_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time limit is for both look-ups: a slow name server of the agent's is no failure."""

    def getaddrinfo(host: str, *_: Any, **__: Any) -> Any:
        if host == "example.com":
            time.sleep(20)
        time.sleep(0.15)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert fault("http://lame.example/", timeout_s=0.2).kind == "bad_arguments"


def test_a_resolver_that_never_answers_is_waited_for_in_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``getaddrinfo`` has no limit of its own."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(20))
    assert fault("http://slow.example/", timeout_s=0.2).kind == "timeout"


def drip(seconds: float) -> Reply:
    """A body of which a byte comes now and then."""

    def pieces() -> Iterator[bytes]:
        for _ in range(int(seconds / 0.05)):
            yield b"x"
            time.sleep(0.05)

    return Reply(200, {"Content-Type": "text/plain"}, pieces)


def test_a_body_that_drips_is_cut_off(site: LocalServer) -> None:
    """Each byte comes in time, the whole does not."""
    site.pages["/drip"] = drip(60.0)
    assert fault(f"{site.url}/drip", timeout_s=0.5).kind == "timeout"


def test_headers_that_drip_are_cut_off() -> None:
    """A server that never gets to its body, and one that says nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert fault(url, timeout_s=0.5).kind == "timeout"
        assert fault(url.replace("http:", "https:"), timeout_s=0.5).kind == "timeout"


def test_a_long_body_is_cut_and_says_so(site: LocalServer) -> None:
    """At the bound of bytes, or that of characters."""
    url = site.page("/long", "a" * 5000, Content_Type="text/plain")
    for text in (fetch(url, max_bytes=1000), fetch(url, max_chars=1000)):
        assert text.startswith("a" * 1000 + "\n")
        assert "left out" in text
    assert fetch(url) == "a" * 5000


def test_an_endless_body_ends(site: LocalServer) -> None:
    """At the bound, without a length that says so before."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield b"a" * 65536

    site.pages["/endless"] = Reply(200, {"Content-Type": "text/plain"}, pieces)
    assert len(fetch(f"{site.url}/endless", max_bytes=300_000)) < 301_000


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda b: zlib.compress(b)[2:-4]])
def test_a_packed_page_is_unpacked(site: LocalServer, pack: Any) -> None:
    """As gzip, as deflate, and as what some servers mean by deflate."""
    kind = "gzip" if pack is gzip.compress else "deflate"
    body = pack("naïve".encode())
    url = site.page("/z", body, Content_Type="text/plain; charset=utf-8", Content_Encoding=kind)
    assert fetch(url) == "naïve"


def test_a_page_may_be_packed_in_several_members() -> None:
    """However it is cut into pieces; padding behind them is none of the page."""
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\x00\x00"
    for size in range(1, len(packed) + 1):
        pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
        assert read_body(pieces, "gzip", max_bytes=100) == (b"one two", False)
    assert read_body([packed], "gzip", max_bytes=5) == (b"one t", True)


def test_a_bomb_is_cut_while_it_is_unpacked(site: LocalServer) -> None:
    """A hundred megabytes in a few kilobytes give no more than the bound."""
    bomb = gzip.compress(b"\n" * 100_000_000)
    url = site.page("/bomb", b"<p>x" + b"", Content_Type="text/plain")
    url = site.page("/bomb", bomb, Content_Type="text/plain", Content_Encoding="gzip")
    assert "left out" in fetch(url, max_bytes=100_000)


@pytest.mark.parametrize(("kind", "body"), [("br", b"x"), ("gzip", b"\x1fx"), ("gzip, gzip", b"x")])
def test_packing_that_was_not_asked_for_is_refused(
    site: LocalServer, kind: str, body: bytes
) -> None:
    """So is a broken one."""
    url = site.page("/z", body, Content_Type="text/plain", Content_Encoding=kind)
    assert fault(url).kind == "refused"


def test_no_proxy_is_asked(site: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would connect to addresses that nobody judged."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert fetch(site.page("/a", "hello", Content_Type="text/plain")) == "hello"


def test_a_connection_is_not_kept(site: LocalServer) -> None:
    """Each page has its own, so no name rides on another's certificate."""
    url = site.page("/a", "hello", Content_Type="text/plain")
    fetch(url)
    assert site.received[0].headers["connection"] == "close"
    assert "cookie" not in site.received[0].headers


URL_PIECES = (
    *("http://", "https://", "xn--", "xn--a", "xn--mgb", "/", "//", "?", "#", "@", ":", "[", "]"),
    *("%", "%zz", "%00", "::1", "[::1]", "[fe80::1%25eth0]", "a", "a" * 70, ".", " ", "\t", "\n"),
    *("\x00", "\u00df", "\u3002", "\ud800", "\u202e", "0x7f.1", "127.1", ":80", ":99999", ":-1"),
    *(":0", "..", "\u00e9", "\\", "\u0663", "\U0001f4a9", "-"),
)
any_url = (
    st.lists(st.sampled_from(URL_PIECES), max_size=8).map("".join)
    | st.text(max_size=30).map("http://{}/".format)
    | st.text(max_size=30)
)


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name but this machine's number is a private address; none is asked for."""
    asked = socket.getaddrinfo

    def resolved(host: str, *more: Any, **options: Any) -> Any:
        host.encode("idna")
        return asked(host if host == "127.0.0.1" else "10.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


@pytest.mark.parametrize("url", ["http://xn--a/", "http://a.xn--zz\u0663/", "https://xn--/"])
def test_a_name_that_is_no_punycode_is_the_agents_fault(url: str) -> None:
    """It is told as an address that is none."""
    assert fault(url).kind == "bad_arguments"


@pytest.mark.usefixtures("no_names")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_url)
def test_no_address_ends_an_episode(url: str) -> None:
    """Whatever an agent asks for, it gets a page or is told its fault."""
    with contextlib.suppress(AgentFaultError):
        PageFetcher(NetworkPolicy()).fetch(url)


@pytest.mark.usefixtures("no_names")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    any_url.map(lambda url: b"HTTP/1.1 302 Found\r\nLocation: " + url.encode("utf-8", "replace"))
    | st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda junk: b"HTTP/1.1 200 OK\r\nContent-" + junk)
)
def test_no_site_ends_an_episode(reply: bytes) -> None:
    """Neither by where it redirects nor by what else it sends."""

    def work() -> None:
        with contextlib.suppress(OSError), listening.accept()[0] as taken:
            taken.recv(65536)
            taken.sendall(reply + b"\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20.0)
        thread = threading.Thread(target=work)
        thread.start()
        port = listening.getsockname()[1]
        with contextlib.suppress(AgentFaultError):
            fetch(f"http://127.0.0.1:{port}/", max_redirects=0)
        thread.join()


def test_a_network_of_ipv4_may_be_written_as_ipv6(site: LocalServer) -> None:
    """It lets the same addresses through."""
    url = site.page("/a", "hello")
    assert fetch(url, NetworkPolicy(allow=("::ffff:127.0.0.1/128",))) == "hello"
    assert fetch(url, NetworkPolicy(allow=("::ffff:127.0.0.0/104",))) == "hello"
    assert fault(url, NetworkPolicy(allow=("::ffff:10.0.0.0/104", "::/0"))).kind == "refused"
