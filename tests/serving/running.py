"""A search server in a thread of this process, and a small backend for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolenvs.backends import Hit
from toolenvs.serving.limits import SearchLimits
from toolenvs.serving.running import address, listen, make_server
from toolenvs.serving.search import SearchServer
from toolenvs.types import Passage

PASSAGES = [
    Passage("7", "Lyon", "A city on the Rhône."),
    Passage("a/b c", "Oslo \n two", "The capital of Norway.", "https://oslo.example/"),
    Passage("3", "", "No title: lyon and oslo."),
]


class Words:
    """A backend that finds the passages which share most words with the query."""

    name = "words"
    external = False

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.wait = threading.Event()
        self.wait.set()
        self.asked: list[tuple[str, int]] = []

    def fingerprint(self) -> str:
        """Always the same."""
        return "words 1"

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Count common words; waits while ``wait`` is not set."""
        self.wait.wait(20)
        self.asked.append((query, top_k))
        if self.fault is not None:
            raise self.fault
        hits = [self._hit(passage, query) for passage in PASSAGES]
        best = sorted((hit for hit in hits if hit.score), key=lambda hit: -hit.score)
        return best[:top_k]

    def open(self, id_or_url: str) -> Passage | None:
        """Look it up."""
        if self.fault is not None:
            raise self.fault
        found = [p for p in PASSAGES if id_or_url in (p.id, p.url) and id_or_url]
        return found[0] if found else None

    def _hit(self, passage: Passage, query: str) -> Hit:
        text = f"{passage.title} {passage.text}".lower()
        score = sum(word in text for word in query.lower().split())
        return Hit(id=passage.id, title=passage.title, score=score, snippet="cut", url=passage.url)


@contextmanager
def running(backend: Any = None, **limits: Any) -> Iterator[str]:
    """Serve a backend on the loopback interface; gives the address."""
    app = SearchServer(backend or Words(), passages=3, limits=SearchLimits(**limits)).app
    server = make_server(app)
    taken = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield address(taken)
    finally:
        server.should_exit = True
        thread.join(20)
        taken.close()
