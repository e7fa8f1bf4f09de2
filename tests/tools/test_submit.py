"""Submitting: an answer, and with ``cites`` the ids that support it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from toolenvs import tools
from toolenvs.executor import tool_spec
from toolenvs.neutral import neutralise
from toolenvs.types import ToolResult

from .index import called


def submitted(*, cites: bool, **arguments: Any) -> ToolResult:
    """What a submission gives."""
    return called([], "submit", tools=[tools.make("submit", cites=cites)], **arguments)


def test_an_answer_ends_the_episode() -> None:
    """Numbers are taken as text; without the option there are no citations."""
    result = submitted(cites=False, answer=42)
    assert result == ToolResult(text="", data={"answer": "42"}, terminal=True)
    refused = submitted(cites=False, answer="x", citations=["a"])
    assert refused.error is not None
    assert not refused.terminal


def test_ids_may_be_cited() -> None:
    """As they were written, and none is needed; ids that are numbers are texts."""
    result = submitted(cites=True, answer="Lyon", citations=["lyon", 7, "lyon"])
    assert result.terminal
    assert result.data == {"answer": "Lyon", "citations": ["lyon", "7", "lyon"]}
    assert submitted(cites=True, answer="Lyon").data == {"answer": "Lyon", "citations": []}


def test_what_was_copied_is_handed_in_as_it_stood() -> None:
    """Without the joiners by which an observation is harmless."""
    copied = neutralise("List of <s> tags")
    result = submitted(cites=True, answer=copied, citations=[copied, 7])
    assert result.data == {"answer": "List of <s> tags", "citations": ["List of <s> tags", "7"]}


@pytest.mark.parametrize("citations", ["lyon", None, [None], [["a"]], {"a": 1}, [1.5]])
def test_citations_of_another_type_are_refused(citations: Any) -> None:
    """The agent may try again."""
    result = submitted(cites=True, answer="Lyon", citations=citations)
    assert result.error is not None
    assert result.error.kind == "bad_arguments"
    assert not result.terminal


def test_the_schema_says_what_may_be_cited() -> None:
    """Only with the option."""
    assert set(tool_spec(tools.make("submit")).parameters["properties"]) == {"answer"}
    cites = tool_spec(tools.make("submit", cites=True)).parameters
    assert set(cites["properties"]) == {"answer", "citations"}
    assert cites["required"] == ["answer"]
    assert (
        tool_spec(pickle.loads(pickle.dumps(tools.make("submit", cites=True)))).parameters == cites
    )
