"""The backends of the live web, against a service of this process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import gymnasium as gym
import pytest

import toolenvs  # noqa: F401 - registers the environments
from tests.web.server import LocalServer, Received
from toolenvs import backends
from toolenvs.backends import Backend, Hit
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import ToolCall
from toolenvs.web import AgentFaultError, Retries

QUICK = Retries(attempts=2, first_s=0.01, longest_s=1.0)


class Service(NamedTuple):
    """How one service is asked and answers.

    ``results`` is the key of its results, ``fields`` their keys for address, title and text.
    """

    name: str
    key_variable: str
    results: str
    fields: tuple[str, str, str]
    path: str
    key_header: str

    def entry(self, url: str, title: str = "T", text: str = "x") -> dict[str, str]:
        """One result."""
        return dict(zip(self.fields, (url, title, text), strict=True))


SERVICES = [
    Service(
        "searxng", "SEARXNG_KEY", "results", ("url", "title", "content"), "/search", "authorization"
    ),
    Service("serper", "SERPER_API_KEY", "organic", ("link", "title", "snippet"), "/", "x-api-key"),
    Service(
        "tavily", "TAVILY_API_KEY", "results", ("url", "title", "content"), "/", "authorization"
    ),
]
each = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """A running service; every key is set."""
    for service in SERVICES:
        monkeypatch.setenv(service.key_variable, "sk-secret")
    made = LocalServer()
    yield made
    made.close()


def make(service: Service, server: LocalServer, **options: Any) -> Backend:
    """The backend at that server."""
    return backends.make(
        service.name, url=server.url, retries=QUICK, per_second=None, timeout_s=2.0, **options
    )


def asked(request: Received) -> Mapping[str, Any]:
    """The parameters or the body of a request."""
    if request.body:
        found: dict[str, Any] = json.loads(request.body)
        return found
    return {key: values[0] for key, values in parse_qs(urlsplit(request.path).query).items()}


@each
def test_results_become_hits(service: Service, server: LocalServer) -> None:
    """Ids are addresses, the best first, each address once, no more than asked for."""
    pages = [service.entry(f"https://{host}/", f" T\n{host}", f"about {host} ") for host in "abac"]
    junk = [{}, None, service.entry("javascript:x"), service.entry("")]
    server.reply(200, {service.results: [*junk, *pages]})
    made = make(service, server)
    hits = made.search(" lyon\ud800 ", 2)
    assert hits == [
        Hit(id="https://a/", title="T a", score=1.0, snippet="about a", url="https://a/"),
        Hit(id="https://b/", title="T b", score=0.5, snippet="about b", url="https://b/"),
    ]
    assert made.external
    sent = asked(server.received[0])
    assert sent.get("q", sent.get("query")) == "lyon?"
    assert urlsplit(server.received[0].path).path == service.path
    assert "sk-secret" in server.received[0].headers[service.key_header]


@each
def test_no_results_are_no_error(service: Service, server: LocalServer) -> None:
    """An empty list is an answer."""
    server.reply(200, {service.results: []})
    assert make(service, server).search("lyon", 3) == []


@each
@pytest.mark.parametrize("body", [{}, {"other": []}, [], "", "<html>", '{"results": 3}'])
def test_a_reply_of_another_shape_is_a_failure(
    service: Service, server: LocalServer, body: Any
) -> None:
    """Never "no results"."""
    server.reply(200, body)
    with pytest.raises(RuntimeFailure):
        make(service, server).search("lyon", 3)


@each
@pytest.mark.parametrize("status", [401, 402, 403, 404, 432, 433])
def test_a_refused_key_is_a_failure(service: Service, server: LocalServer, status: int) -> None:
    """The operator's fault is told with the status and without the key."""
    server.reply(status, "the key sk-secret is not known")
    with pytest.raises(RuntimeFailure, match=f"status {status}") as raised:
        make(service, server).search("lyon", 3)
    assert "secret" not in str(raised.value)


@each
def test_a_key_that_the_service_repeats_is_shown_to_nobody(
    service: Service, server: LocalServer
) -> None:
    """Not in a message that is cut in the midst of it, and not in a hit."""
    server.reply(401, "x" * 195 + " sk-secret is bad")
    with pytest.raises(RuntimeFailure) as raised:
        make(service, server).search("lyon", 3)
    assert "sk-" not in str(raised.value)
    server.reply(200, {service.results: [service.entry("https://a/", "debug: sk-secret")]})
    assert make(service, server).search("lyon", 3)[0].title == "debug: [key]"


@each
def test_a_busy_service_is_asked_again(service: Service, server: LocalServer) -> None:
    """Then it is a failure."""
    server.reply(429, "slow", Retry_After="0")
    server.reply(200, {service.results: [service.entry("https://a/")]})
    assert len(make(service, server).search("lyon", 3)) == 1
    server.reply(500)
    server.reply(500)
    with pytest.raises(RuntimeFailure, match="500"):
        make(service, server).search("lyon", 3)


@each
@pytest.mark.parametrize("query", [" ", "x" * 3000])
def test_a_query_that_cannot_be_asked_is_not_sent(
    service: Service, server: LocalServer, query: str
) -> None:
    """Blank or longer than the service takes."""
    with pytest.raises(AgentFaultError) as raised:
        make(service, server).search(query, 3)
    assert raised.value.error.kind == "bad_arguments"
    assert server.received == []


@each
def test_a_query_that_is_not_taken_is_the_agents_fault(
    service: Service, server: LocalServer
) -> None:
    """A status of 400 or 422."""
    for status in (400, 422):
        server.reply(status, "bad query")
        with pytest.raises(AgentFaultError):
            make(service, server).search("lyon", 3)


@each
def test_keys_are_in_no_record(service: Service, server: LocalServer) -> None:
    """Nor in a repr or a pickle; the fingerprint is the same with another key."""
    made = make(service, server)
    server.reply(200, {service.results: []})
    made.search("lyon", 3)
    assert "secret" not in made.fingerprint() + repr(made) + repr(vars(made))
    assert b"secret" not in pickle.dumps(made)
    assert pickle.loads(pickle.dumps(made)).fingerprint() == made.fingerprint()


@each
def test_pages_are_fetched_under_the_policy(service: Service, server: LocalServer) -> None:
    """A private address is refused unless it was allowed."""
    url = server.page("/page", "<title>T</title><p>Lyon lies.", Content_Type="text/html")
    with pytest.raises(AgentFaultError) as raised:
        make(service, server).open(url)
    assert raised.value.error.kind == "refused"
    page = make(service, server, allow=["127.0.0.1"]).open(url)
    assert page is not None
    assert (page.title, page.text) == ("T", "Lyon lies.")
    with pytest.raises(AgentFaultError):
        make(service, server).open("some id")


@each
def test_a_live_episode_replays_exactly(
    service: Service, server: LocalServer, tmp_path: Path
) -> None:
    """Search, page and refusal: equal observations and rewards when the service is gone."""
    page = server.page("/page", "<title>Lyon</title><p>Lyon lies.", Content_Type="text/html")
    server.reply(200, {service.results: [service.entry(page, "Lyon", "about it")]})
    options = {"backend": service.name, "url": server.url, "allow": ["127.0.0.1/32"]}
    calls = [
        ToolCall("search", {"query": "lyon"}),
        ToolCall("open_page", {"url": page}),
        ToolCall("open_page", {"url": "http://10.0.0.1/"}),
        ToolCall("submit", {"answer": "x"}),
    ]

    def played(mode: str) -> list[object]:
        cache = f"sqlite:///{tmp_path / 'cache.db'}"
        made = gym.make("toolenvs/Search-v0", replay=mode, cache=cache, runtimes={"index": options})
        env: Any = made.unwrapped
        env.reset(seed=0)
        steps = [env.act([call])[:4] for call in calls]
        env.close()
        return steps

    recorded = played("record")
    assert "Lyon lies." in str(recorded[1])
    assert "not on the public internet" in str(recorded[2])
    asked = len(server.received)
    assert played("replay") == recorded
    assert len(server.received) == asked


@pytest.mark.parametrize("service", SERVICES[1:], ids=lambda service: service.name)
def test_a_missing_key_is_a_failure(
    service: Service, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent; the message names the variable."""
    monkeypatch.delenv(service.key_variable)
    with pytest.raises(RuntimeFailure, match=service.key_variable):
        make(service, server).search("lyon", 3)
    assert server.received == []


def test_searxng_without_its_engines_is_a_failure(server: LocalServer) -> None:
    """Nothing found while engines failed is not "no results"; something found is."""
    searxng = SERVICES[0]
    failed = {"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout"]]}
    server.reply(200, failed)
    server.reply(200, failed)  # for a plain word too
    with pytest.raises(RuntimeFailure, match="google, bing"):
        make(searxng, server).search("lyon", 3)
    server.reply(200, {**failed, "results": [searxng.entry("https://a/")]})
    assert len(make(searxng, server).search("lyon", 3)) == 1


def test_searxng_that_fails_at_one_query_is_no_failure(server: LocalServer) -> None:
    """Nor one that takes a query for a command and redirects: the agent reads it."""
    searxng = SERVICES[0]
    plain = {"results": [searxng.entry("https://a/")]}
    failed = {"results": [], "unresponsive_engines": [["google", "unexpected crash"]]}
    for status, content in ((200, failed), (302, "")):
        server.reply(status, content, Location="https://elsewhere.example/")
        server.reply(200, plain)
        with pytest.raises(AgentFaultError):
            make(searxng, server).search("lyon", 3)
    server.reply(302, Location="https://moved.example/")
    server.reply(302, Location="https://moved.example/")
    with pytest.raises(RuntimeFailure, match="status 302"):
        make(searxng, server).search("lyon", 3)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("!!g lyon", "g lyon"),
        ("lyon !images ?maps :fr <1", "lyon images maps fr 1"),
        ("! : a", "a"),
        ("a<b C++ what? 3:4 wow!", "a<b C++ what? 3:4 wow!"),
        ("lyon\u2003!!g", "lyon g"),
    ],
)
def test_no_word_is_a_command_of_searxng(server: LocalServer, query: str, sent: str) -> None:
    """Marks at a word's beginning are left out, and only those."""
    server.reply(200, {"results": []})
    make(SERVICES[0], server).search(query, 3)
    assert asked(server.received[0])["q"] == sent
    with pytest.raises(AgentFaultError, match="blank"):
        make(SERVICES[0], server).search("?! !!", 3)


def test_what_searxng_shows_above_its_results_is_found(server: LocalServer) -> None:
    """Answers and infoboxes with an address come first, each address once; others are left out."""
    results = [{"url": f"https://{name}/", "title": name, "content": "x"} for name in "abc"]
    boxes = [{"infobox": "Lyon", "id": "https://a/", "content": "A town."}, {"infobox": "?"}, 5]
    answers = ["42", {"answer": "513,275", "url": "https://d/"}]
    server.reply(200, {"results": results, "infoboxes": boxes, "answers": answers})
    server.reply(200, {"results": [], "infoboxes": "none", "answers": None})
    hits = make(SERVICES[0], server).search("lyon", 3)
    assert [(hit.id, hit.title, hit.snippet) for hit in hits] == [
        ("https://d/", "", "513,275"),
        ("https://a/", "Lyon", "A town."),
        ("https://b/", "b", "x"),
    ]
    assert make(SERVICES[0], server).search("lyon", 3) == []


def test_searxng_is_asked_for_json(server: LocalServer) -> None:
    """With its engines and language; the score is its own."""
    entry = {"url": "https://a/", "title": "T", "content": "x", "score": 3.5}
    server.reply(200, {"results": [entry]})
    made = make(SERVICES[0], server, engines="wikipedia", language="en")
    assert made.search("lyon", 3)[0].score == 3.5
    sent = asked(server.received[0])
    assert sent == {"q": "lyon", "format": "json", "engines": "wikipedia", "language": "en"}
    assert "wikipedia" in made.fingerprint()


def test_serper_that_ran_out_of_credits_is_a_failure(server: LocalServer) -> None:
    """Its status is that of a bad query."""
    server.reply(400, {"message": "Not enough credits", "statusCode": 400})
    with pytest.raises(RuntimeFailure, match="credits"):
        make(SERVICES[1], server).search("lyon", 3)
    server.reply(400, {"message": "Bad query", "query": "not enough credits", "statusCode": 400})
    with pytest.raises(AgentFaultError):
        make(SERVICES[1], server).search("not enough credits", 3)


def test_serper_and_tavily_are_asked_for_as_many_as_they_give(server: LocalServer) -> None:
    """At most 100 and 20."""
    server.reply(200, {"organic": []})
    make(SERVICES[1], server, gl="fr", hl="en").search("lyon", 500)
    server.reply(200, {"results": []})
    make(SERVICES[2], server, topic="news").search("lyon", 500)
    first, second = map(asked, server.received)
    assert first == {"q": "lyon", "num": 100, "gl": "fr", "hl": "en"}
    assert second == {
        "query": "lyon",
        "max_results": 20,
        "search_depth": "basic",
        "topic": "news",
    }


def test_wrong_options_are_refused() -> None:
    """At construction."""
    for name, options in (
        ("searxng", {"url": "localhost"}),
        ("searxng", {"url": "http://a", "allow": ["x"]}),
        ("searxng", {"url": "http://a", "allow": "10.0.0.0/8"}),
        ("searxng", {"url": "http://a", "allow": 5}),
        ("searxng", {"url": "http://a", "allow": [5]}),
        ("searxng", {"url": "http://a", "safesearch": 9}),
        ("tavily", {"topic": "sports"}),
        ("tavily", {"depth": "deep"}),
        ("serper", {"per_second": 0.0}),
        ("serper", {"url": "http://a/?key=1"}),
    ):
        with pytest.raises(UsageError):
            backends.make(name, **options)


@each
def test_an_address_that_cannot_be_shown_whole_is_left_out(
    service: Service, server: LocalServer
) -> None:
    """The agent could not open it; one of 500 characters can be."""
    long = "http://a/" + "x" * 491
    entries = [service.entry(long), service.entry(long + "y"), service.entry("http://a/b")]
    server.reply(200, {service.results: entries})
    assert [hit.id for hit in make(service, server).search("q", 5)] == [long, "http://a/b"]
