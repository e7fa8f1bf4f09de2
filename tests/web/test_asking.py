"""Asking a service: retries, their waits, the pace, and keys that stay secret."""

from __future__ import annotations

import contextlib
import email.utils
import logging
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.test_locks import in_child
from tests.web.server import LocalServer
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.web import AgentFaultError, Asker, Retries
from toolenvs.web.asking import web_address
from toolenvs.web.retrying import retry_after_s

QUICK = Retries(attempts=3, first_s=0.01, longest_s=2.0)


class Clock:
    """Time that passes only where somebody sleeps; it keeps for how long."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def service() -> Iterator[LocalServer]:
    """A running service."""
    server = LocalServer()
    yield server
    server.close()


@contextlib.contextmanager
def trickling(*heads: bytes) -> Iterator[str]:
    """A server of one connection: it answers each request by a head, then sends bytes for ever."""
    ended = threading.Event()

    def work() -> None:
        with contextlib.suppress(OSError), listening.accept()[0] as taken:
            for head in heads:
                taken.recv(65536)
                taken.sendall(head)
            while not ended.wait(0.02):
                taken.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=work)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        ended.set()
        thread.join()


def asker(key_variable: str = "", **options: Any) -> Asker:
    """One that does not wait long."""
    given = {"timeout_s": 2.0, "retries": QUICK, **options}
    return Asker("Svc", key_variable=key_variable, **given)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
def test_what_a_wait_may_heal_is_tried_again(service: LocalServer, status: int) -> None:
    """And the answer is the later one."""
    service.reply(status, "busy")
    service.reply(200, {"a": 1})
    asking = asker()
    assert asking.ask("GET", service.url).content == b'{"a": 1}'
    asking.close()


@pytest.mark.parametrize("status", [200, 204, 301, 400, 401, 403, 404, 422, 501])
def test_every_other_status_is_an_answer(service: LocalServer, status: int) -> None:
    """Asked once; nothing is followed."""
    service.reply(status, "x" if status != 204 else "", Location="/elsewhere")
    asking = asker()
    assert asking.ask("GET", service.url).status == status
    assert len(service.received) == 1
    asking.close()


def test_a_service_that_stays_down_is_a_failure(service: LocalServer) -> None:
    """It names the service and the status; ``reason`` is the same each time."""
    for _ in range(3):
        service.reply(503, "down for now")
    asking = asker()
    with pytest.raises(RuntimeFailure, match=r"Svc: status 503: down for now") as raised:
        asking.ask("GET", service.url)
    assert (raised.value.kind, raised.value.reason) == ("search", "status 503")
    assert len(service.received) == 3
    asking.close()


def test_nobody_there_is_a_failure() -> None:
    """Told in the words that people know."""
    asking = asker()
    with pytest.raises(RuntimeFailure) as raised:
        asking.ask("GET", "http://127.0.0.1:1/")
    assert raised.value.reason == "connection refused"
    asking.close()


def test_the_time_that_a_service_asks_for_is_waited(service: LocalServer) -> None:
    """Before the next request of anybody; beyond the bound it is a failure at once."""
    service.reply(429, "slow down", Retry_After="1")
    service.reply(200, "a")
    clock = Clock()
    asking = asker(clock=clock, sleep=clock.sleep)
    asking.ask("GET", service.url)
    assert sum(clock.slept) >= 1.0
    service.reply(429, "slow down", Retry_After="3600")
    with pytest.raises(RuntimeFailure, match="asks to wait 3600 s"):
        asking.ask("GET", service.url)
    assert clock.now < 110.0
    assert len(service.received) == 3
    asking.close()


def test_a_wait_is_read_as_number_or_date() -> None:
    """Anything else is none."""
    assert retry_after_s("7") == 7.0
    assert retry_after_s("-1") == retry_after_s("nan") == retry_after_s("soon") == 0.0
    later = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < retry_after_s(later) <= 100


def test_requests_are_spread_over_time(service: LocalServer) -> None:
    """Each begins its share of a second after the one before."""
    for _ in range(6):
        service.reply(200, "a")
    clock = Clock()
    asking = asker(per_second=20.0, clock=clock, sleep=clock.sleep)
    for _ in range(6):
        asking.ask("GET", service.url)
    assert clock.slept == pytest.approx([0.05] * 5)
    asking.close()


def test_many_threads_ask_at_once(service: LocalServer) -> None:
    """Each over a connection of its own, which the next requests use again."""
    for _ in range(12):
        service.reply(200, "a")
    asking = asker()
    for _ in range(2):
        threads = [threading.Thread(target=asking.ask, args=("GET", service.url)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(service.received) == 12
    asking.close()


@pytest.mark.parametrize("part", ["head", "body", "length"])
def test_a_reply_that_trickles_in_is_cut(part: str) -> None:
    """However often a byte comes: in the headers, in a body, or in one that says no length."""
    sent = {
        "head": b"HTTP/1.1 200 OK\r\nX: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        "length": b"HTTP/1.1 200 OK\r\n\r\n",
    }
    with trickling(sent[part]) as url:
        asking = asker(timeout_s=0.4, retries=Retries(attempts=1))
        with pytest.raises(RuntimeFailure, match="reply timed out") as raised:
            asking.ask("GET", url)
    assert raised.value.reason == "reply timed out"
    asking.close()


def test_a_kept_connection_is_cut_too(service: LocalServer) -> None:
    """The second reply over it trickles in."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
    with trickling(head, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n") as url:
        asking = asker(timeout_s=0.4, retries=Retries(attempts=1))
        assert asking.ask("GET", url).content == b"a"
        with pytest.raises(RuntimeFailure, match="reply timed out"):
            asking.ask("GET", url)
    asking.close()


def test_it_may_be_used_after_a_fork_beside_a_busy_thread(service: LocalServer) -> None:
    """Neither its lock nor its connections are those of the parent's thread."""
    service.reply(200, "a")
    asking = asker(per_second=1000.0)
    asking.ask("GET", service.url)
    service.reply(200, "b")
    with asking._pace._lock:  # what another thread of the parent may hold
        held = threading.Event()
        said: list[bool] = []

        def fork() -> None:
            held.wait(20.0)
            said.append(in_child(lambda: asking.ask("GET", service.url).content == b"b"))

        thread = threading.Thread(target=fork)
        thread.start()
        held.set()
        thread.join()
    assert said == [True]
    asking.close()


def test_a_key_is_seen_by_the_service_alone(
    service: LocalServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not by logs, messages or pickles, even when the service repeats it."""
    monkeypatch.setenv("SVC_KEY", "sk-secret")
    caplog.set_level(logging.DEBUG)
    asking = asker("SVC_KEY")
    assert asking.needed_key() == "sk-secret"
    for _ in range(3):
        service.reply(500, "who is sk-secret?")
    with pytest.raises(RuntimeFailure) as raised:
        asking.ask("GET", service.url, headers={"Authorization": f"Bearer {asking.key()}"})
    service.reply(401, "no such key: sk-secret")
    refused = asking.failure(asking.ask("GET", service.url))
    assert service.received[0].headers["authorization"] == "Bearer sk-secret"
    service.reply(200, '{"a": "sk-secret"}')
    assert asking.ask("GET", service.url).content == b'{"a": "[key]"}'
    for text in (str(raised.value), str(refused), caplog.text, repr(asking)):
        assert "sk-secret" not in text
    assert b"sk-secret" not in pickle.dumps(asking)
    asking.close()


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which variable to set."""
    monkeypatch.delenv("SVC_KEY", raising=False)
    with pytest.raises(RuntimeFailure, match="set SVC_KEY"):
        asker("SVC_KEY").needed_key()
    monkeypatch.setenv("SVC_KEY", "a\u00e4\nb")
    with pytest.raises(UsageError, match="SVC_KEY"):
        asker("SVC_KEY").needed_key()


def test_a_huge_reply_is_a_failure(service: LocalServer) -> None:
    """It is not read to its end."""
    service.reply(200, "a" * 10_000)
    asking = Asker("Svc", max_bytes=1000, retries=QUICK)
    with pytest.raises(RuntimeFailure, match="more than 1000 bytes"):
        asking.ask("GET", service.url)
    asking.close()


def test_it_survives_pickle(service: LocalServer) -> None:
    """After use too."""
    service.reply(200, "a")
    service.reply(200, "b")
    asking = asker(per_second=100.0)
    asking.ask("GET", service.url)
    again: Asker = pickle.loads(pickle.dumps(asking))
    assert again.ask("GET", service.url).content == b"b"
    asking.close()
    again.close()


@pytest.mark.parametrize(
    "url",
    [
        "localhost:80",
        "http://a:0",
        "http://a:65536",
        "ftp://a",
        "http://",
        "http://u:p@a",
        "http://a/?key=1",
        "http://a/#k",
        "x",
    ],
)
def test_an_address_that_is_recorded_holds_no_secret(url: str) -> None:
    """It begins with http(s), without names, passwords and parameters."""
    with pytest.raises(UsageError, match="Svc"):
        web_address(url, of="Svc")


def test_parameters_that_make_no_address_are_the_agents_fault(service: LocalServer) -> None:
    """It chose them; nothing is sent."""
    asking = asker()
    with pytest.raises(AgentFaultError) as raised:
        asking.ask("GET", service.url, params={"id": "x" * 70_000})
    assert raised.value.kind == "bad_arguments"
    assert service.received == []
    asking.close()


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"attempts": 1.5}, {"first_s": -1.0}, {"longest_s": float("inf")}]
)
def test_retries_are_numbers_in_range(options: dict[str, Any]) -> None:
    """At construction."""
    with pytest.raises(UsageError, match=next(iter(options))):
        Retries(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"timeout_s": "5"},
        {"timeout_s": 1e12},
        {"timeout_s": True},
        {"per_second": -1.0},
        {"per_second": 1e-300},
        {"retries": 5},
    ],
)
def test_options_are_numbers_in_range(options: dict[str, Any]) -> None:
    """At construction."""
    with pytest.raises(UsageError):
        Asker("Svc", **options)
