"""The task that a question of a corpus becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.grading.qa import QaPolicy, is_unusable
from toolenvs.types import Task

_MAX_QUERY = 300
_MAX_OPENED = 20
_DEFAULT = QaPolicy()


def search_task(
    *,
    task_id: str,
    prompt: str,
    golds: Sequence[str],
    supporting: Sequence[str] = (),
    query: str = "",
    grading: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
) -> Task:
    """Make a task of a question.

    Its gold calls search for the question, open the supporting documents (the first 20), and
    submit the answer with citations.

    Args:
        task_id: its id.
        prompt: what the agent is asked.
        golds: right answers; the first that can be graded is the task's, the others that can are
            its aliases.
        supporting: ids of the documents that the answer needs.
        query: what the gold calls search for; by default the prompt.
        grading: further settings of ``QaPolicy``.
        data: what else is known of it.
    """
    usable = [gold for gold in golds if not is_unusable(gold, _DEFAULT)]
    answer = next(iter([*usable, *golds]), "")
    settings: dict[str, Any] = dict(grading or {})
    if usable[1:]:
        settings["aliases"] = usable[1:]
    if supporting:
        settings["supporting"] = list(supporting)
    return Task(
        id=task_id,
        prompt=prompt,
        answer=answer,
        family="search",
        grading=settings,
        gold_calls=_gold_calls(query or prompt, answer, supporting),
        data=data or {},
    )


def _gold_calls(query: str, answer: str, supporting: Sequence[str]) -> tuple[dict[str, Any], ...]:
    submission: dict[str, Any] = {"answer": answer}
    if supporting:
        submission["citations"] = list(supporting)
    return (
        {"name": "search", "arguments": {"query": _short(query)}},
        *({"name": "open_page", "arguments": {"id": each}} for each in supporting[:_MAX_OPENED]),
        {"name": "submit", "arguments": submission},
    )


def _short(query: str) -> str:
    """The query, cut between words."""
    words = " ".join(query.split())
    return words if len(words) <= _MAX_QUERY else re.sub(r"\s\S*\Z", "", words[:_MAX_QUERY])
