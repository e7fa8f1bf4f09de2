"""The index as a runtime: requests in JSON, answers in JSON, one backend for all episodes."""

from __future__ import annotations

import json
import logging
import pickle
import threading
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.passages import CITIES, Counted, cities
from toolenvs import runtimes
from toolenvs.backends import Hit
from toolenvs.drivers import Loop, run
from toolenvs.errors import DataError, RuntimeFailure, UnknownNameError, UsageError
from toolenvs.pool import SandboxPool, shared_pool
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.runtimes.index import Index, answer_request
from toolenvs.types import Passage
from toolenvs.web import AgentFaultError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep indexes of tests apart."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Echo:
    """A backend that finds the query itself; what it does wrong is told by the query."""

    name = "echo"

    def __init__(self, *, external: bool = False) -> None:
        self.external = external
        self.threads: set[int] = set()

    def fingerprint(self) -> str:
        return "echo 1"

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        self.threads.add(threading.get_ident())
        if query == "down":
            raise RuntimeFailure("search", "the server is down")
        if query == "forbidden":
            raise AgentFaultError("refused", "not allowed")
        return [Hit(id=str(n), title=query, score=1.0, snippet=query) for n in range(top_k + 1)]

    def open(self, id_or_url: str) -> Passage | None:
        return None


def asked(request: Any, backend: Any = None) -> dict[str, Any]:
    """The answer to a request of a worker's new sandbox."""
    runtime = Index(backend=backend) if backend is not None else Index(corpus=cities())
    sandbox = run(run(runtime.start()).spawn(seed=0, files={}))
    code = request if isinstance(request, str) else json.dumps(request)
    result = run(sandbox.execute(code))
    assert result.status == "ok"
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_it_is_a_runtime() -> None:
    """Runtime, worker and sandbox have every member of their protocols."""
    runtime = runtimes.make("index", corpus=cities())
    worker = run(runtime.start())
    sandbox = run(worker.spawn(seed=0, files={}, data=("x",)))
    assert isinstance(runtime, Runtime)
    assert isinstance(worker, Worker)
    assert isinstance(sandbox, Sandbox)
    assert not getattr(runtime, "external", None)
    assert runtime.fingerprint() == Index(corpus=cities()).fingerprint()


def test_a_search_is_answered() -> None:
    """Hits with all fields."""
    (hit,) = asked({"op": "search", "query": "Norway", "top_k": 3})["hits"]
    assert set(hit) == {"id", "title", "score", "snippet", "url"}
    assert (hit["id"], hit["title"], hit["url"]) == ("oslo", "Oslo", "")
    assert asked({"op": "search", "query": "zebra"}) == {"hits": []}


@pytest.mark.parametrize("key", [{"id": "lyon"}, {"url": "https://example.org/lyon"}])
def test_a_passage_is_opened(key: dict[str, str]) -> None:
    """Whole, by id or URL."""
    passage = CITIES[0]
    assert asked({"op": "open", **key}) == {
        "id": "lyon",
        "title": "Lyon",
        "text": passage.text,
        "url": passage.url,
    }


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ({"id": "lyons"}, "Did you mean 'lyon'"),
        ({"id": "capital of Norway"}, "Did you mean 'oslo'"),
        ({"id": "zzz"}, "Ids stand in the results of a search"),
        ({"url": "http://nowhere"}, "the url 'http://nowhere'"),
        ({"id": "x" * 100_000}, "nothing with the id"),
    ],
)
def test_an_unknown_id_is_an_error_that_names_the_nearest(
    wanted: dict[str, str], hint: str
) -> None:
    """Of all ids, else of what a search for it finds; the message is bounded."""
    error = asked({"op": "open", **wanted})["error"]
    assert error["kind"] == "bad_arguments"
    assert hint in error["message"]
    assert len(error["message"]) < 400


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "[]",
        "7",
        "{",
        "[" * 100_000,
        "\ud800",
        {"op": "search"},
        {"op": "find", "query": "x"},
        {"query": "x"},
        {"op": "search", "query": "   "},
        {"op": "search", "query": None},
        {"op": "search", "query": "x", "top_k": 0},
        {"op": "search", "query": "x", "top_k": 10**9},
        {"op": "search", "query": "x", "top_k": True},
        {"op": "search", "query": "x", "more": 1},
        {"op": "open"},
        {"op": "open", "id": "a", "url": "b"},
        {"op": "open", "id": 5},
    ],
)
def test_a_bad_request_is_an_error_answer(request_: Any) -> None:
    """Never an exception, and nothing is searched."""
    error = asked(request_)["error"]
    assert error["kind"] == "bad_arguments"
    assert error["message"]


@given(request=st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_every_request_is_answered(request: str) -> None:
    """For all texts: JSON comes back."""
    assert set(json.loads(answer_request(Echo(), request))) <= {"hits", "error"}


def test_a_backend_that_finds_too_much_is_cut() -> None:
    """No more hits than were asked for."""
    assert len(asked({"op": "search", "query": "x", "top_k": 4}, Echo())["hits"]) == 4


def test_faults_of_the_agent_and_of_the_machine_are_told_apart() -> None:
    """One is an answer, the other an exception."""
    error = asked({"op": "search", "query": "forbidden"}, Echo())["error"]
    assert error == {"kind": "refused", "message": "not allowed"}
    with pytest.raises(RuntimeFailure, match="the server is down"):
        asked({"op": "search", "query": "down"}, Echo())


def test_the_index_is_built_when_a_worker_starts(caplog: pytest.LogCaptureFixture) -> None:
    """Once, with its progress in the log; making the runtime reads nothing."""
    corpus = Counted(CITIES)
    runtime = Index(corpus=corpus)
    assert corpus.reads == 0
    with caplog.at_level(logging.INFO, logger="toolenvs"):
        run(runtime.start())
        run(runtime.start())
    assert corpus.reads == 1
    assert "indexing counted for bm25: 5 in" in caplog.text


def test_a_corpus_may_be_a_path_or_a_list(tmp_path: Path) -> None:
    """As sources give it."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "1", "contents": "\\"Bergen\\"\\nA city in Norway."}\n')
    runtime = Index(corpus=[cities(), str(path)])
    sandbox = run(run(runtime.start()).spawn(seed=0, files={}))
    answer = run(sandbox.execute('{"op": "search", "query": "Norway", "top_k": 5}')).stdout
    assert {hit["id"] for hit in json.loads(answer)["hits"]} == {"oslo", "1"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, UsageError),
        ({"corpus": "nowhere.jsonl"}, DataError),
        ({"backend": "bm52", "corpus": cities()}, UnknownNameError),
        ({"corpus": cities(), "title_boots": 2.0}, UnknownNameError),
        ({"backend": Echo(), "title_boost": 2.0}, UsageError),
        ({"backend": 5}, UsageError),
        ({"backend": None}, UsageError),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """When the runtime is made."""
    with pytest.raises(error):
        runtimes.make("index", **options)


def test_options_reach_the_backend() -> None:
    """And its fingerprint."""
    assert "title_boost=2.0" in Index(corpus=cities(), title_boost=2.0).fingerprint()
    assert Index(backend=Echo(external=True)).external


def test_only_quick_backends_are_asked_on_the_callers_thread() -> None:
    """Others run beside the loop, so that many are waited for at once."""
    echo = Echo()
    sandbox = run(run(Index(backend=echo).start()).spawn(seed=0, files={}))
    loop, done = Loop(), []
    for _ in range(4):
        request = '{"op": "search", "query": "x"}'
        loop.spawn(sandbox.execute(request), lambda value, error: done.append((value, error)))
    while len(done) < 4:
        loop.pump(5.0)
    loop.close()
    assert all(error is None for _, error in done)
    assert threading.get_ident() not in echo.threads


def test_what_was_stopped_refuses() -> None:
    """A sandbox, and all sandboxes of a worker; more than once is harmless."""
    worker = run(Index(corpus=cities()).start())
    first, second = (run(worker.spawn(seed=0, files={})) for _ in range(2))
    request = '{"op": "search", "query": "x"}'
    run(first.stop())
    run(first.stop())
    with pytest.raises(RuntimeFailure):
        run(first.execute(request))
    run(second.execute(request))
    run(worker.stop())
    assert not worker.healthy()
    with pytest.raises(RuntimeFailure):
        run(second.execute(request))
    with pytest.raises(RuntimeFailure):
        run(worker.spawn(seed=0, files={}))


class Closing(Echo):
    """A backend with connections, which counts how often they are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_last_worker_closes_what_all_share() -> None:
    """One that stops, however often, takes nothing from the others; a copy counts its own."""
    backend = Closing()
    runtime = Index(backend=backend)
    first, second = run(runtime.start()), run(runtime.start())
    run(first.stop())
    run(first.stop())
    assert backend.closed == 0
    copied = pickle.loads(pickle.dumps(runtime))
    run(run(copied.start()).stop())
    assert copied.backend.closed == 1
    run(second.stop())
    assert backend.closed == 1
    run(run(runtime.start()).stop())
    assert backend.closed == 2


def test_a_pool_needs_one_worker_for_any_number_of_episodes() -> None:
    """10,000 at once, each far below a megabyte, with the files of its task or not."""
    pool = SandboxPool(Index(corpus=cities()), max_workers=1)
    run(pool.warm())
    tracemalloc.start()
    sandboxes = [run(pool.lease(seed=n, files={"a": "b"})) for n in range(10_000)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(sandboxes) < 10_000
    pool.close()


def test_episodes_of_a_process_share_one_pool() -> None:
    """Equal options, one index."""
    corpus = cities()
    one, two = (shared_pool("index", corpus=corpus) for _ in range(2))
    assert one.pool is two.pool
    one.close()
    two.close()


def test_threads_share_a_worker() -> None:
    """Requests at once are answered as alone."""
    worker = run(Index(corpus=cities()).start())
    requests = [json.dumps({"op": "search", "query": p.title}) for p in CITIES] * 20

    def answer(request: str) -> str:
        return run(run(worker.spawn(seed=0, files={})).execute(request)).stdout

    alone = [answer(request) for request in requests]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(answer, requests)) == alone


def test_a_corpus_that_has_changed_since_it_was_named_is_not_searched(tmp_path: Path) -> None:
    """Its results would be kept under the fingerprint of another content."""
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"id": "a", "text": "one"}\n')
    runtime = Index(corpus=file)
    named = runtime.fingerprint()
    file.write_text('{"id": "a", "text": "another"}\n')
    with pytest.raises(RuntimeFailure, match="has changed") as raised:
        run(runtime.start())
    assert raised.value.kind == "data"
    assert runtime.fingerprint() == named
    fresh = Index(corpus=file)
    run(run(fresh.start()).stop())
