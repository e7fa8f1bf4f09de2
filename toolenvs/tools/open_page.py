"""Open a passage that a search found: page by page, or only what stands around a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from toolenvs.backends import LONGEST_ID, shown_id
from toolenvs.errors import UsageError
from toolenvs.neutral import restore
from toolenvs.protocols import ToolContext, ToolKind
from toolenvs.tools._retrieval import ask, fault, fault_of, one_line
from toolenvs.types import ToolResult

_HEAD_CHARS = 200  # of a title in the first line
_MOST_MATCHES = 10
_AROUND = 150  # characters of a line that are shown before and after a match
_MOST_FIND_CHARS = 200
_LONGEST_URL = 2000


class OpenPage:
    """Show a passage or page, cut into pages of a fixed size.

    Args:
        page_chars: characters of a page, 100 or more; it ends between two words where it can.

    Raises:
        UsageError: The size is out of range.
    """

    name = "open_page"
    description = (
        "Open a passage or page by the id or url that a search gave. Long ones have several pages; "
        "with find, only the lines around the places where that text stands are shown."
    )
    needs = "index"
    kind: ToolKind = "pure"
    version = "4"

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        """Arguments of a call."""

        id: Annotated[
            str, msgspec.Meta(max_length=LONGEST_ID, description="The id, as a search shows it.")
        ] = ""
        url: Annotated[
            str, msgspec.Meta(max_length=_LONGEST_URL, description="The url, in place of an id.")
        ] = ""
        find: Annotated[
            str,
            msgspec.Meta(
                max_length=_MOST_FIND_CHARS, description="Text to find in all of it, in any case."
            ),
        ] = ""
        page: Annotated[int, msgspec.Meta(ge=1, description="Which page, from 1.")] = 1

    def __init__(self, *, page_chars: int = 4000) -> None:
        if page_chars < 100:
            raise UsageError(f"page_chars={page_chars} must be at least 100.")
        self.page_chars = page_chars

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        name, url, find = (restore(text).strip() for text in (args.id, args.url, args.find))
        if bool(name) == bool(url):
            return fault("Give either id or url.")
        wanted = {"id": name} if name else {"url": url}
        answer = await ask(context, {"op": "open", **wanted})
        if (refused := fault_of(answer)) is not None:
            return refused
        starts = page_starts(answer["text"], self.page_chars)
        if find:
            return _found(answer, starts, find)
        if args.page > len(starts):
            pages = f"{len(starts)} page{'s' if len(starts) > 1 else ''}"
            return fault(f"There is no page {args.page}: it has {pages}.")
        return _page(answer, starts, args.page)


def page_starts(text: str, size: int) -> list[int]:
    """Where the pages of a text begin; the first is 0.

    Each has at most ``size`` characters, and less only to end between two words or at the end.
    """
    starts = [0]
    while (end := starts[-1] + size) < len(text):
        space = max(text.rfind(" ", end - size // 10, end), text.rfind("\n", end - size // 10, end))
        starts.append(space + 1 if space > 0 else end)
    return starts


def _page(answer: dict[str, Any], starts: list[int], page: int) -> ToolResult:
    end = starts[page] if page < len(starts) else None
    text = answer["text"][starts[page - 1] : end].strip()
    head = f"{_head(answer)}, page {page} of {len(starts)}"
    return ToolResult(
        text=f"{head}\n\n{text or '(no text)'}",
        data=_facts(answer, page=page, pages=len(starts)),
    )


def _found(answer: dict[str, Any], starts: list[int], find: str) -> ToolResult:
    """The lines around the matches, each with its page."""
    text = answer["text"]
    pattern = re.compile(r"\s+".join(map(re.escape, find.split())), re.IGNORECASE)
    matches = [match.span() for match in pattern.finditer(text)]
    shown = one_line(find, most=_MOST_FIND_CHARS)
    head = f"{_head(answer)}, {len(starts)} page{'s' if len(starts) > 1 else ''}"
    if not matches:
        return ToolResult(
            text=f"{head}: {shown!r} does not stand in it.",
            data=_facts(answer, page=1, pages=len(starts)) | {"matches": 0},
        )
    lines = list(_around(text, starts, matches[:_MOST_MATCHES]))
    more = len(matches) - _MOST_MATCHES
    if more > 0:
        lines.append(f"[{more} more places are not shown]")
    count = f"{len(matches)} place{'s' if len(matches) > 1 else ''}"
    return ToolResult(
        text=f"{head}: {shown!r} stands in {count}.\n\n" + "\n".join(lines),
        data=_facts(answer, page=_page_of(starts, matches[0][0]), pages=len(starts))
        | {"matches": len(matches)},
        truncated=more > 0,
    )


def _around(text: str, starts: list[int], matches: list[tuple[int, int]]) -> Iterator[str]:
    """A line of each match; matches that one excerpt shows are shown once."""
    shown_to = 0
    for start, end in matches:
        if end <= shown_to:
            continue
        left = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
        right = text.find("\n", end)
        right = min(len(text) if right < 0 else right, end + _AROUND)
        shown_to = right
        before = "... " if left and text[left - 1] != "\n" else ""
        after = " ..." if right < len(text) and text[right] != "\n" else ""
        excerpt = " ".join(text[left:right].split())
        yield f"[page {_page_of(starts, start)}] {before}{excerpt}{after}"


def _page_of(starts: list[int], place: int) -> int:
    return sum(start <= place for start in starts)


def _head(answer: dict[str, Any]) -> str:
    title = one_line(answer["title"], most=_HEAD_CHARS) or "(no title)"
    return f"{title} (id: {shown_id(answer['id'])})"


def _facts(answer: dict[str, Any], *, page: int, pages: int) -> dict[str, Any]:
    return {"id": answer["id"], "title": answer["title"], "page": page, "pages": pages}
