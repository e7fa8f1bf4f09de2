"""The backend ``http``: Search-R1's route in every dialect in use (case Q06)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.web.server import LocalServer
from toolenvs import backends
from toolenvs.backends.http import Http
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import Passage
from toolenvs.web import AgentFaultError, Retries

QUICK = Retries(attempts=2, first_s=0.01, longest_s=1.0)
LYON = {"id": "7", "contents": '"Lyon"\nA city.'}


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A running retrieval server."""
    made = LocalServer()
    yield made
    made.close()


def http(server: LocalServer, **options: Any) -> Http:
    """The backend at that server."""
    return Http(url=server.url, retries=QUICK, timeout_s=2.0, **options)


def test_it_is_a_backend(server: LocalServer) -> None:
    """By its file's name, external, with a fingerprint that holds the address."""
    made = backends.make("http", url=server.url)
    assert isinstance(made, backends.Backend)
    assert (made.name, made.external) == ("http", True)
    assert server.url in made.fingerprint()
    assert made.fingerprint() != http(server, dialect="query").fingerprint()


@pytest.mark.parametrize("packed", [False, True], ids=["json", "msgpack"])
@pytest.mark.parametrize(
    ("result", "scores"),
    [
        ([[{"document": LYON, "score": 0.9}]], [0.9]),
        ([[LYON]], [0.0]),
        ([LYON], [0.0]),
        ([{"document": LYON}], [0.0]),
        ([[{"document": {"title": "Lyon", "text": "A city.", "id": 7}, "score": 2}]], [2.0]),
        ([[{"document": {"title": "Lyon", "text": "A city.", "contents": "x", "id": "7"}}]], [0.0]),
        ([[]], []),
    ],
)
def test_Q06_every_shape_gives_the_same_hits(
    server: LocalServer, result: Any, scores: list[float], packed: bool
) -> None:
    """Scored or bare, nested or flat, JSON or MessagePack; an empty list is no error."""
    body = {"result": result}
    server.reply(200, msgspec.msgpack.encode(body) if packed else body)
    hits = http(server).search("lyon", 3)
    assert [(hit.id, hit.title, hit.snippet) for hit in hits] == [("7", "Lyon", "A city.")] * len(
        scores
    )
    assert [hit.score for hit in hits] == scores


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"results": [[]]},
        {"result": None},
        {"result": []},
        {"result": [[], []]},
        {"result": [[1]]},
        {"result": [[{"document": None}]]},
        {"result": [[{"score": 1.0}]]},
        {"error": "index not loaded"},
        [],
        "<html>Bad gateway</html>",
        "",
        b"\xff\xff",
        "[" * 100_000,
    ],
)
def test_Q06_a_reply_without_documents_is_never_no_results(server: LocalServer, body: Any) -> None:
    """It is a failure of the machine that says what came."""
    server.reply(200, body)
    with pytest.raises(RuntimeFailure) as raised:
        http(server).search("lyon", 3)
    assert raised.value.kind == "search"
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("status", [500, 502, 503])
def test_Q06_a_server_error_is_a_failure(server: LocalServer, status: int) -> None:
    """After it was asked again."""
    server.reply(status, {"result": [[]]})
    server.reply(status, {"result": [[]]})
    with pytest.raises(RuntimeFailure, match=str(status)):
        http(server).search("lyon", 3)


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_a_server_that_is_not_what_was_meant_is_a_failure(server: LocalServer, status: int) -> None:
    """A wrong key or a wrong route is no query's fault."""
    server.reply(status, "no")
    with pytest.raises(RuntimeFailure, match=str(status)):
        http(server).search("lyon", 3)


@pytest.mark.parametrize("status", [400, 413, 414, 422, 431])
def test_a_query_that_is_not_taken_is_the_agents_fault(server: LocalServer, status: int) -> None:
    """A typed fault without the server's own words, which may name its files or echo the query."""
    server.reply(status, {"detail": "field required, says a query, at /srv/index.py:7"})
    server.reply(200, {"result": [[LYON]]})  # to a plain word
    with pytest.raises(AgentFaultError) as raised:
        http(server).search("lyon", 3)
    assert raised.value.error.kind == "bad_arguments"
    assert "/srv" not in str(raised.value)
    assert "lyon" not in str(server.received[1].body)


def test_a_byte_order_mark_before_a_reply_is_none_of_it(server: LocalServer) -> None:
    """As some servers send it before UTF-8."""
    server.reply(200, b'\xef\xbb\xbf{"result": [[{"id": "a", "contents": "Lyon"}]]}')
    assert [hit.id for hit in http(server).search("lyon", 3)] == ["a"]


@pytest.mark.parametrize("dialect", ["query", "msgpack"])
def test_one_empty_list_answers_one_query(server: LocalServer, dialect: Any) -> None:
    """Servers with one query send one list of items: an empty one is no error there."""
    server.reply(200, {"result": []})
    assert http(server, dialect=dialect).search("lyon", 3) == []


def test_a_request_in_the_wrong_dialect_is_nobodys_query(server: LocalServer) -> None:
    """A plain word is not taken either; the other dialects are named."""
    missing = {"detail": [{"type": "missing", "loc": ["body", "queries"], "msg": "Field required"}]}
    server.reply(422, missing)
    server.reply(422, missing)
    with pytest.raises(RuntimeFailure, match="queries, query, msgpack"):
        http(server, dialect="query").search("lyon", 3)


@pytest.mark.parametrize("query", ["", "  ", "\n\t"])
def test_Q07_a_blank_query_is_not_sent(server: LocalServer, query: str) -> None:
    """It is the agent's fault, told apart from a search without hits."""
    with pytest.raises(AgentFaultError) as raised:
        http(server).search(query, 3)
    assert raised.value.error.kind == "bad_arguments"
    assert server.received == []


def test_Q07_a_huge_query_is_not_sent(server: LocalServer) -> None:
    """The message names the bound and does not repeat it."""
    with pytest.raises(AgentFaultError, match="at most 8192") as raised:
        http(server).search("x" * 50_000, 3)
    assert len(str(raised.value)) < 200
    assert server.received == []


def test_what_is_sent_is_what_such_servers_read(server: LocalServer) -> None:
    """The bodies of Search-R1's clients, of skyrl-gym's, and one for GEM's servers of any age."""
    for dialect in ("queries", "query", "msgpack"):
        server.reply(200, {"result": [[]]})
        assert http(server, dialect=dialect).search(" lyon \ud800", 3) == []
    listed, single, packed = server.received
    assert {got.path for got in server.received} == {"/retrieve"}
    assert json.loads(listed.body) == {"queries": ["lyon ?"], "topk": 3, "return_scores": True}
    assert json.loads(single.body) == {"query": "lyon ?", "topk": 3, "return_scores": True}
    assert msgspec.msgpack.decode(packed.body) == json.loads(listed.body) | json.loads(single.body)
    assert listed.headers["content-type"] == "application/json"


def test_no_more_than_was_asked_for(server: LocalServer) -> None:
    """A server that ignores ``topk`` is cut."""
    server.reply(200, {"result": [[{"id": str(n), "contents": f"t{n}\nx"} for n in range(9)]]})
    assert [hit.id for hit in http(server).search("lyon", 2)] == ["0", "1"]


def test_odd_documents_are_read(server: LocalServer) -> None:
    """Quotes in titles, no title, numbers as ids, no id, a score that is none."""
    documents = [
        {"id": 1, "contents": '""Weird Al" Yankovic"\nA singer.'},
        {"id": 2, "contents": "One line only."},
        {"contents": "No id\nbut text."},
        {"document": {"id": "4", "contents": "a\nb", "url": "http://x/"}, "score": None},
        "Plain\ntext.",
    ]
    server.reply(200, {"result": [documents]})
    hits = http(server).search("lyon", 9)
    assert [hit.title for hit in hits] == ['"Weird Al" Yankovic', "", "No id", "a", "Plain"]
    assert [hit.id for hit in hits][:2] == ["1", "2"]
    assert len({hit.id for hit in hits}) == 5
    assert (hits[3].url, hits[3].score) == ("http://x/", 0.0)
    server.reply(200, '{"result": [[{"document": {"id": "1", "contents": "a"}, "score": NaN}]]}')
    assert http(server).search("lyon", 9)[0].score == 0.0


def test_what_was_retrieved_is_opened_without_asking(server: LocalServer) -> None:
    """Whole, though the snippet was cut; the oldest is forgotten."""
    text = "word " * 1000
    server.reply(200, {"result": [[{"id": str(n), "contents": f"t\n{text}"} for n in range(3)]]})
    made = http(server, kept=2)
    assert len(made.search("lyon", 3)[0].snippet) == 1000
    assert made.open("2") == Passage("2", "t", text.strip())
    server.reply(404)
    assert made.open("0") is None
    assert len(server.received) == 2


def test_other_passages_are_asked_for(server: LocalServer) -> None:
    """By the route of ``toolenvs serve search``; a server without it has none."""
    server.reply(200, {"id": "a/b c", "title": "T", "text": "x", "url": "http://x/"})
    made = http(server)
    assert made.open("a/b c") == Passage("a/b c", "T", "x", "http://x/")
    assert (
        server.received[0].path == "/document?id=a%2Fb+c"
        or "id=a%2Fb%20c" in server.received[0].path
    )
    server.reply(500)
    server.reply(500)
    with pytest.raises(RuntimeFailure):
        made.open("nope")


@pytest.mark.parametrize("status", [302, 400, 404, 405, 410, 414, 422, 431, 501])
def test_a_server_without_such_a_route_has_no_such_passage(
    server: LocalServer, status: int
) -> None:
    """An agent that opens what nobody has cannot end its episode."""
    server.reply(status, "no")
    assert http(server).open("nope") is None


@pytest.mark.parametrize("body", ["<html>", "", "[]", "{}", '{"contents": 5}', b"\xff", "null"])
def test_what_is_no_document_is_none(server: LocalServer, body: bytes | str) -> None:
    """Some servers answer every path with a page of their own."""
    server.reply(200, body)
    assert http(server).open("nope") is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_is_refused_only_where_a_search_is_refused_too(
    server: LocalServer, status: int
) -> None:
    """A gateway forbids the routes that it does not know."""
    server.reply(status, "Missing Authentication Token")
    server.reply(200, {"result": [[LYON]]})
    assert http(server).open("nope") is None
    server.reply(status, "no")
    server.reply(status, "no")
    with pytest.raises(RuntimeFailure, match=str(status)):
        http(server).open("nope")


def test_an_id_that_no_search_shows_is_not_sent(server: LocalServer) -> None:
    """Servers bound the length of what they are asked for."""
    assert http(server).open("x" * 70_000) is None
    assert http(server).open("x" * 501) is None
    assert server.received == []
    server.reply(404)
    assert http(server).open("\U0001f600" * 500) is None


def test_no_address_takes_the_place_of_an_id(server: LocalServer) -> None:
    """A document that gives another's id for its address is found by its own alone."""
    evil = {"id": "evil", "url": "7", "contents": "x\nhostile"}
    for documents in ([LYON, evil], [evil, LYON]):
        server.reply(200, {"result": [documents]})
        made = http(server, kept=2)
        made.search("lyon", 3)
        found = made.open("7")
        assert found is not None
        assert found.id == "7"
    server.reply(200, {"result": [[{**LYON, "url": "http://a/"}, {"id": "8", "contents": "y"}]]})
    made.search("lyon", 3)
    found = made.open("http://a/")
    assert found is not None
    assert found.id == "7"


def test_a_key_goes_into_a_header_alone(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And into no fingerprint, repr or pickle."""
    monkeypatch.setenv("TOOLENVS_SEARCH_KEY", "sk-secret")
    server.reply(200, {"result": [[LYON]]})
    made = http(server)
    made.search("lyon", 1)
    assert server.received[0].headers["authorization"] == "Bearer sk-secret"
    assert "secret" not in made.fingerprint() + repr(made) + repr(vars(made))
    again: Http = pickle.loads(pickle.dumps(made))
    assert b"secret" not in pickle.dumps(made)
    assert again.fingerprint() == made.fingerprint()


def test_a_path_of_ones_own_is_kept() -> None:
    """Without a path it is ``/retrieve``; a wrong option is refused."""
    assert "'http://a/b/find'" in Http(url="http://a/b/find").fingerprint()
    assert "'http://a/retrieve'" in Http(url="http://a/").fingerprint()
    for options in (
        {"url": "a:1"},
        {"url": 5},
        {"url": "http://a:99999"},
        {"url": "http://a:0"},
        {"url": "http://a", "dialect": "x"},
        {"url": "http://a", "dialect": 5},
        {"url": "http://a", "kept": -1},
        {"url": "http://a", "kept": "5"},
        {"url": "http://a", "timeout_s": "5"},
        {"url": "http://a", "timeout_s": float("inf")},
        {"url": "http://a", "timeout_s": 1e12},
        {"url": "http://a", "retries": 5},
        {"url": "http://a", "per_second": float("nan")},
    ):
        with pytest.raises(UsageError):
            Http(**options)
