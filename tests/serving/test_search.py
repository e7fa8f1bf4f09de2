"""The retrieval server: known clients work, bad requests are told, nothing hangs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest

from tests.serving.running import Words, running
from toolenvs.backends import Hit
from toolenvs.backends.http import Http
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.serving.limits import SearchLimits
from toolenvs.serving.running import address, listen

LYON = {"id": "7", "contents": '"Lyon"\nA city on the Rhône.'}


def post(url: str, body: Any, **options: Any) -> httpx.Response:
    """Ask for passages."""
    return httpx.post(f"{url}/retrieve", json=body, timeout=30, **options)


def test_search_r1s_own_request_is_answered_as_its_server_does() -> None:
    """A batch with scores, as ``search_r1/llm_agent/generation.py`` sends it."""
    with running() as url:
        payload = {"queries": ["lyon", "oslo"], "topk": 1, "return_scores": True}
        found = post(url, payload).json()["result"]
    assert found[0] == [{"document": LYON, "score": 1.0}]
    assert found[1][0]["document"]["contents"].split("\n")[0] == '"Oslo two"'
    title, _, text = LYON["contents"].partition("\n")  # what the client does with it
    assert (title, text) == ('"Lyon"', "A city on the Rhône.")


def test_skyrls_request_and_bare_documents() -> None:
    """One query with scores as SkyRL's search tool asks; without scores documents are bare."""
    with running() as url:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        asked = {"queries": ["lyon"], "topk": 3, "return_scores": True}
        scored = post(url, asked, headers=headers).json()["result"][0]
        bare = post(url, {"queries": ["lyon"]}).json()["result"][0]
    assert [item["document"] for item in scored] == bare
    assert bare[0] == LYON


def test_released_clients_with_one_query() -> None:
    """skyrl-gym 0.4 reads a list of lists, GEM 0.1 one list in MessagePack; both name all."""
    asked = {"query": "lyon", "topk": 1, "return_scores": True}
    with running() as url:
        skyrl = post(url, asked).json()["result"]
        packed = httpx.post(f"{url}/retrieve", content=msgspec.msgpack.encode(asked)).content
        bare = post(url, {**asked, "return_scores": False}).json()["result"]
        blank = post(url, {**asked, "query": " "}).json()["result"]
    assert skyrl == [[{"document": LYON, "score": 1.0}]]
    assert msgspec.msgpack.decode(packed)["result"] == skyrl[0]
    assert (bare, blank) == ([[LYON]], [[]])


def test_Q06_a_query_alone_is_told_how_it_is_written() -> None:
    """It may be meant either way; the message shows both."""
    with running() as url:
        answers = [post(url, {"query": "lyon", **more}) for more in ({}, {"topk": 1})]
    for answer in answers:
        (problem,) = answer.json()["detail"]
        assert (answer.status_code, problem["type"]) == (422, "missing")
        assert problem["loc"] == ["body", "queries"]
        assert '{"queries": [query]}' in problem["msg"]


def test_our_own_backend_finds_and_opens_there() -> None:
    """``http`` in each dialect; a passage is opened by its id."""
    with running() as url:
        for dialect in ("queries", "query", "msgpack"):
            backend = Http(url=url, dialect=dialect)
            assert [hit.id for hit in backend.search("lyon", 1)] == ["7"]
            passage = backend.open("a/b c")
            backend.close()
    assert passage is not None
    assert passage.text == "The capital of Norway."


def test_messagepack_is_answered_in_messagepack() -> None:
    """As GEM's client sends it, with or without a content type."""
    body = msgspec.msgpack.encode({"queries": ["lyon"], "return_scores": True})
    with running() as url:
        for headers in ({"Content-Type": "application/msgpack"}, {"Content-Type": ""}):
            answer = httpx.post(f"{url}/retrieve", content=body, headers=headers)
            found = msgspec.msgpack.decode(answer.content)["result"]
            assert found[0][0]["document"] == LYON


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "missing"),
        ({"query": "lyon"}, 422, "missing"),
        ({"queries": "lyon"}, 422, "type"),
        ({"queries": ["lyon", 3]}, 422, "type"),
        ({"queries": ["lyon"], "topk": 0}, 422, "bounds"),
        ({"queries": ["lyon"], "topk": 5}, 422, "bounds"),
        ({"queries": ["lyon"], "topk": 1.5}, 422, "type"),
        ({"queries": ["lyon"], "return_scores": "yes"}, 422, "type"),
        ({"queries": ["x"] * 4}, 422, "bounds"),
        ({"queries": ["x" * 101]}, 422, "bounds"),
        ({"query": "x" * 101, "topk": 1, "return_scores": True}, 422, "bounds"),
        ({"query": 7, "topk": 1, "return_scores": True}, 422, "type"),
        ({"query": "x", "topk": 9, "return_scores": True}, 422, "bounds"),
        ([1], 422, "type"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(body: Any, status: int, kind: str) -> None:
    """Its place and what is allowed, as FastAPI lays it out."""
    with running(max_top_k=4, max_queries=3, max_query_chars=100) as url:
        answer = post(url, body)
    (problem,) = answer.json()["detail"]
    assert (answer.status_code, problem["type"]) == (status, kind)
    assert problem["loc"][0] == "body"


def test_unreadable_bodies_types_routes_and_sizes_have_their_status() -> None:
    """Never 500, and the server goes on."""
    with running(max_body_bytes=2000) as url:
        statuses = [
            httpx.post(f"{url}/retrieve", content=b"{", headers={"Content-Type": kind}).status_code
            for kind in ("application/json", "application/msgpack", "text/plain")
        ]
        assert statuses == [422, 422, 415]
        assert post(url, {"queries": ["x" * 3000]}).status_code == 413
        assert httpx.get(f"{url}/retrieve").status_code == 405
        assert httpx.get(f"{url}/nothing").status_code == 404
        assert httpx.get(f"{url}/document", params={"id": "unknown"}).status_code == 404
        assert httpx.get(f"{url}/document").status_code == 422
        assert post(url, {"queries": ["lyon"]}).status_code == 200


def test_a_machines_fault_is_503_and_says_nothing_of_the_machine() -> None:
    """The client may ask again; an error of our own is 500 without its text."""
    with running(Words(RuntimeFailure("search", "secret path"))) as url:
        answer = post(url, {"queries": ["lyon"]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    with running(Words(ValueError("secret path"))) as url:
        broken = post(url, {"queries": ["lyon"]})
    assert broken.status_code == 500
    assert "secret" not in answer.text + broken.text


def test_more_requests_than_it_takes_are_told_so() -> None:
    """The others are answered; nobody waits without end."""
    words = Words()
    words.wait.clear()
    with running(words, max_requests=2) as url, ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(post, url, {"queries": ["lyon"]}) for _ in range(3)]
        first = next(iter([one for one in asked if _done(one)]), asked[0])
        words.wait.set()
        statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [200, 200, 503]
    assert first.result().status_code == 503


def test_documents_count_as_requests() -> None:
    """The bound holds for both routes together."""
    words = Words()
    words.wait.clear()
    with running(words, max_requests=1) as url, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(post, url, {"queries": ["lyon"]})
        while httpx.get(f"{url}/metrics").text.find("in_progress 1") < 0:
            pass
        refused = httpx.get(f"{url}/document", params={"id": "7"})
        words.wait.set()
        asked.result()
        found = httpx.get(f"{url}/document", params={"id": "7"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert found.status_code == 200


def _done(future: Any) -> bool:
    try:
        future.result(timeout=3)
    except TimeoutError:
        return False
    return True


def test_bodies_that_are_too_large_together_are_told_so() -> None:
    """One alone is answered, and memory is free again afterwards."""
    words = Words()
    words.wait.clear()
    large = {"queries": ["x" * 3000]}
    with running(words, max_held_bytes=5000) as url, ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(post, url, large) for _ in range(2)]
        first = next(iter([one for one in asked if _done(one)]), asked[0])
        words.wait.set()
        statuses = sorted(one.result().status_code for one in asked)
        again = [post(url, large).status_code for _ in range(3)]
    assert (statuses, first.result().status_code) == ([200, 503], 503)
    assert again == [200, 200, 200]


def test_blank_queries_find_nothing_and_cost_nothing() -> None:
    """An empty list beside the others, so that results stay with their queries."""
    words = Words()
    with running(words) as url:
        found = post(url, {"queries": ["", "lyon", "  "], "topk": 1}).json()["result"]
    assert [len(hits) for hits in found] == [0, 1, 0]
    assert words.asked == [("lyon", 1)]


def test_scores_that_are_no_numbers_are_sent_as_0() -> None:
    """JSON has no NaN."""

    class Odd(Words):
        def search(self, query: str, top_k: int) -> list[Hit]:
            return [Hit(id="7", title="Lyon", score=float("nan"), snippet="", url="")]

    with running(Odd()) as url:
        found = post(url, {"queries": ["x"], "return_scores": True}).json()["result"]
    assert found[0][0]["score"] == 0.0


def test_a_fingerprint_is_computed_once_before_anybody_asks() -> None:
    """It may read a whole corpus, which would keep everybody waiting."""

    class Slow(Words):
        computed = 0

        def fingerprint(self) -> str:
            self.computed += 1
            return "slow 1"

    backend = Slow()
    with running(backend) as url:
        assert backend.computed == 1
        for _ in range(3):
            assert httpx.get(f"{url}/health").json()["fingerprint"] == "slow 1"
    assert backend.computed == 1


def test_health_metrics_and_description_are_there() -> None:
    """Counts by route and status; every route of the description exists, and no other answers."""
    with running() as url:
        post(url, {"queries": ["lyon"]})
        post(url, {})
        health = httpx.get(f"{url}/health").json()
        metrics = httpx.get(f"{url}/metrics").text
        description = httpx.get(f"{url}/openapi.json").json()
    assert health == {
        "status": "ok",
        "backend": "words",
        "fingerprint": "words 1",
        "passages": 3,
    }
    assert 'toolenvs_search_requests_total{route="/retrieve",code="200"} 1' in metrics
    assert 'toolenvs_search_requests_total{route="/retrieve",code="422"} 1' in metrics
    assert set(description["paths"]) == {
        "/retrieve",
        "/document",
        "/health",
        "/metrics",
        "/openapi.json",
    }
    retrieve = description["components"]["schemas"]["Retrieve"]["properties"]
    assert retrieve["queries"]["maxItems"] == SearchLimits().max_queries
    assert json.dumps(description).count("Problems") > 3


def test_an_address_that_cannot_be_had_is_clear() -> None:
    """Taken, or not of this machine."""
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(UsageError, match=str(port)):
            listen("127.0.0.1", port)
    with pytest.raises(UsageError, match="above 0"):
        SearchLimits(threads=0)
    with pytest.raises(UsageError, match="above max_top_k"):
        SearchLimits(top_k=101)
