"""An environment of one task over a few passages, for tests of the tools of search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolenvs import tools as tool_plugins
from toolenvs.backends import Hit
from toolenvs.corpora import Passages
from toolenvs.drivers import run
from toolenvs.executor import Executor
from toolenvs.pool import own_pool
from toolenvs.protocols import Tool
from toolenvs.runtimes.index import Index
from toolenvs.types import Passage, Task, ToolCall, ToolResult

TASK = Task(id="t", prompt="p", family="search")


class Canned:
    """A backend that finds these passages, in this order, whatever is asked."""

    name = "canned"
    external = False
    inline = True

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = list(passages)
        self.queries: list[str] = []

    def fingerprint(self) -> str:
        return json.dumps([passage.id for passage in self.passages])

    def search(self, query: str, top_k: int) -> list[Hit]:
        self.queries.append(query)
        return [
            Hit(id=p.id, title=p.title, score=1.0 / n, snippet=p.text, url=p.url)
            for n, p in enumerate(self.passages[:top_k], start=1)
        ]

    def open(self, id_or_url: str) -> Passage | None:
        self.queries.append(id_or_url)
        return next((p for p in self.passages if id_or_url in (p.id, p.url)), None)


def called(
    found: Canned | Passages | Sequence[Passage],
    name: str,
    *,
    tools: Sequence[Tool] | None = None,
    **arguments: Any,
) -> ToolResult:
    """What one call gives, run as an episode runs it."""
    backend = found if isinstance(found, Canned) else Canned(list(found))
    pool = own_pool(Index(backend=backend))
    made = tools or [tool_plugins.make(each) for each in ("search", "open_page", "submit")]
    executor = Executor(
        {tool.name: tool for tool in made}, task=TASK, sandboxes={"index": pool}, seed=0
    )
    try:
        return run(executor.run(ToolCall(name, arguments)))
    finally:
        run(executor.close())
        pool.close()
