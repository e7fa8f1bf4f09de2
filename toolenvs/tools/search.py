"""Search the corpus, or whatever the environment's search backend searches."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import msgspec

from toolenvs.backends import LONGEST_ID, shown_id
from toolenvs.errors import UsageError
from toolenvs.neutral import restore
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools._retrieval import ask, fault, fault_of, is_blank, one_line
from toolenvs.types import ToolResult

MOST_HITS = 100
_TITLE_CHARS = 200
_LEAST_SNIPPET = 40


@functools.cache
def _arguments(top_k: int, max_top_k: int) -> type[msgspec.Struct]:
    number = Annotated[
        int,
        msgspec.Meta(ge=1, le=max_top_k, description=f"How many hits, 1 to {max_top_k}."),
    ]
    query = Annotated[str, msgspec.Meta(description="What to search for, as plain text.")]
    return msgspec.defstruct(
        "Args", [("query", query), ("top_k", number, top_k)], forbid_unknown_fields=True
    )


class Search:
    """Find passages; the agent reads numbered hits with id, title, score and snippet.

    Args:
        top_k: hits where the agent names no number.
        max_top_k: most hits that it may ask for, at most 100.
        max_query_chars: longest query; a longer one is an error, and nothing is searched.
        limit_chars: most characters of a result; snippets are shortened to fit, and hits that then
            do not fit are left out, with a note.

    Raises:
        UsageError: A bound is out of range.
    """

    name = "search"
    description = (
        "Search for passages. Each hit has an id, by which open_page shows the whole passage."
    )
    needs = "index"
    kind: ToolKind = "pure"
    version = "3"

    Args: type[msgspec.Struct] = _arguments(5, 20)

    def __init__(
        self,
        *,
        top_k: int = 5,
        max_top_k: int = 20,
        max_query_chars: int = 1000,
        limit_chars: int = 8000,
    ) -> None:
        if not 1 <= top_k <= max_top_k <= MOST_HITS:
            raise UsageError(
                f"top_k={top_k} and max_top_k={max_top_k} must be 1 to {MOST_HITS}, in this order."
            )
        if max_query_chars < 1 or limit_chars < 1:
            raise UsageError(
                f"max_query_chars={max_query_chars}, limit_chars={limit_chars} must be at least 1."
            )
        self.top_k = top_k
        self.max_top_k = max_top_k
        self.max_query_chars = max_query_chars
        self.limit_chars = limit_chars
        self.Args = _arguments(top_k, max_top_k)

    def __getstate__(self) -> dict[str, Any]:
        """A copy makes its own ``Args``, which no module holds."""
        return {name: value for name, value in self.__dict__.items() if name != "Args"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.Args = _arguments(self.top_k, self.max_top_k)

    async def run(self, args: Any, context: ToolContext) -> ToolResult:
        query = " ".join(restore(args.query).split())
        if is_blank(query):
            return fault("The query is blank; say what to search for.")
        if len(query) > self.max_query_chars:
            return fault(
                f"The query has {len(query)} characters, at most {self.max_query_chars} are "
                "allowed; nothing was searched. Ask for what matters in a few words."
            )
        answer = await ask(context, {"op": "search", "query": query, "top_k": args.top_k})
        return fault_of(answer) or self._present(answer["hits"])

    def _present(self, hits: list[dict[str, Any]]) -> ToolResult:
        if not hits:
            return ToolResult(text="No results for this query.", data={"hits": []})
        note = "[{} more hits are left out: they do not fit.]"
        room = self.limit_chars - len(note.format(len(hits)))
        shown: list[str] = []
        for number, hit in enumerate(hits, start=1):
            share = room // (len(hits) - number + 1)
            entry = _entry(number, hit, most=share)
            if len(entry) > room:
                break
            shown.append(entry)
            room -= len(entry) + 1
        missing = len(hits) - len(shown)
        lines = [*shown, *([note.format(missing)] if missing else [])]
        return ToolResult(
            text="\n".join(lines)[: self.limit_chars],
            data={"hits": [_facts(hit) for hit in hits[: len(shown)]]},
            truncated=missing > 0,
        )


def _entry(number: int, hit: dict[str, Any], *, most: int) -> str:
    """One hit in two lines: only what this function writes begins a line."""
    title = one_line(hit["title"], most=_TITLE_CHARS) or "(no title)"
    identity = shown_id(hit["id"])
    url = one_line(hit["url"], most=LONGEST_ID)
    also = f", url: {url}" if url and url != identity else ""
    head = f"{number}. {title} (id: {identity}, score: {hit['score']:g}{also})"
    left = most - len(head) - len("\n    ")
    text = one_line(hit["snippet"], most=left) if left >= _LEAST_SNIPPET else ""
    return f"{head}\n    {text}" if text else head


def _facts(hit: dict[str, Any]) -> dict[str, Any]:
    return {key: hit[key] for key in ("id", "title", "score")}
