"""What an episode holds for rewards of retrieval: the submission, and the documents it has shown.

Only results of this episode's own calls count, by their ``data``, which tools make: no text that
the agent wrote and none that was retrieved can add a document to them. Of a result whose text was
cut, those count that are still in it; a page in which nothing was found shows none. Ids are
compared as they are shown (``shown_id``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from toolenvs.backends import shown_id
from toolenvs.types import Score, Step, Task, ToolResult, Trajectory

_NUMBERED = re.compile(r"(\d{1,4})\. .*")
RETRIEVING = ("search", "open_page")
"""The tools whose results show documents."""


class Submission(msgspec.Struct, frozen=True):
    """What was handed in.

    Attributes:
        answer: the text.
        citations: the ids that were cited besides, in order.
    """

    answer: str
    citations: tuple[str, ...] = ()


def read_submission(step: Step) -> Submission | None:
    """What was handed in with this step, None if nothing was."""
    for result in step.results:
        if result.terminal:
            answer: Any = result.data.get("answer")
            cited: Any = result.data.get("citations") or ()
            return None if answer is None else Submission(str(answer), tuple(map(str, cited)))
    return None


def seen_ids(prefix: Trajectory) -> frozenset[str]:
    """The ids of the documents that stood in a result so far, as a hit or as an opened page."""
    return frozenset(each for result in _retrieved(prefix) for each in _ids(result))


def seen_texts(prefix: Trajectory) -> list[str]:
    """The texts in which those documents were shown.

    Last come documents of which pages that follow each other were opened, each as one text.
    """
    results = list(_retrieved(prefix))
    return [*(result.text for result in results), *_joined_pages(results)]


def _joined_pages(results: Sequence[ToolResult]) -> Iterator[str]:
    pages: dict[tuple[str, int], str] = {}
    for result in results:
        page, name = result.data.get("page"), result.data.get("id")
        whole = not result.truncated and "matches" not in result.data  # no excerpt
        if isinstance(page, int) and whole:
            pages[str(name), page] = result.text.partition("\n\n")[2]
    for (name, page), text in sorted(pages.items()):
        if (name, page - 1) not in pages and (name, page + 1) in pages:
            texts = [text]
            while (name, page + len(texts)) in pages:
                texts.append(pages[name, page + len(texts)])
            yield " ".join(texts)


def _retrieved(prefix: Trajectory) -> Iterator[ToolResult]:
    for step in prefix.steps:
        # Not strict: an unreadable message has a result but no call.
        for call, result in zip(step.calls, step.results, strict=False):
            if call.name in RETRIEVING and result.error is None:
                yield result


def _ids(result: ToolResult) -> Iterator[str]:
    hits: Any = result.data.get("hits")
    entries = (result.data,) if hits is None else hits
    end = ")" if hits is None else ", score: "
    heads = _heads(result, searched=hits is not None) if result.truncated else None
    for number, entry in enumerate(entries, start=1):
        if entry.get("id") is not None and entry.get("matches") != 0:  # of a page that shows some
            name = shown_id(str(entry["id"]))
            if heads is None or f"(id: {name}{end}" in heads.get(number, ""):
                yield name


def _heads(result: ToolResult, *, searched: bool) -> dict[int, str]:
    """The lines of a cut text that name its documents: of hits by their numbers, of a page by 1."""
    lines = result.text.split("\n")
    if not searched:
        return {1: lines[0]}
    numbered = map(_NUMBERED.match, reversed(lines))  # of two, the first counts
    return {int(found[1]): found[0] for found in numbered if found}


def supporting_ids(task: Task) -> frozenset[str]:
    """The ids of the documents that hold what the task's answer needs."""
    return frozenset(shown_id(str(each)) for each in task.grading.get("supporting") or ())


def share_seen(task: Task, prefix: Trajectory) -> Score:
    """The share of the task's supporting documents that have been shown so far."""
    wanted = supporting_ids(task)
    if not wanted:
        return Score(0.0, "no supporting document is known", masked=True)
    seen = wanted & seen_ids(prefix)
    return Score(len(seen) / len(wanted), f"{len(seen)} of {len(wanted)} supporting documents")
