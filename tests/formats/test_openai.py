"""The format ``openai``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.formats.hostile import SPECS, json_calls
from toolenvs.formats.openai import Openai
from toolenvs.types import ToolCall, ToolResult

OPENAI = Openai()


def message(**changes: Any) -> str:
    """A message with one call, some of its keys changed."""
    function = {"name": "search", "arguments": '{"query": "a"}'}
    call = {"id": "c1", "type": "function", "function": function}
    return json.dumps({"role": "assistant", "content": None, "tool_calls": [call], **changes})


@settings(deadline=None)
@given(calls=json_calls)
def test_it_expresses_every_call_with_json_arguments(calls: list[ToolCall]) -> None:
    """And its id; a call without one is numbered."""
    parsed = OPENAI.parse(OPENAI.compose(calls, "a thought"), SPECS)
    expected = [ToolCall(c.name, c.arguments, f"call_{i}") for i, c in enumerate(calls)]
    assert list(parsed.calls) == expected
    assert parsed.problems == ()
    assert parsed.thought == "a thought"
    assert OPENAI.parse(OPENAI.compose(expected)).calls == tuple(expected)


def test_plain_text_is_a_message_of_that_content() -> None:
    """It answers like any content."""
    for text in (
        "So \\boxed{7}",
        "<answer>7</answer>",
        message(content="\\boxed{7}", tool_calls=[]),
    ):
        assert OPENAI.parse(text).calls == (ToolCall("submit", {"answer": "7"}),)


def test_a_message_dumped_by_an_api_is_read() -> None:
    """Keys that say nothing are passed over, text parts joined, the reasoning is thought."""
    text = message(
        content=[{"type": "text", "text": "let me "}, {"type": "text", "text": "look"}],
        refusal=None,
        annotations=[],
        reasoning_content="hm",
    )
    parsed = OPENAI.parse(text)
    assert parsed.calls == (ToolCall("search", {"query": "a"}, "c1"),)
    assert (parsed.thought, parsed.problems) == ("hm", ())


def test_an_answer_in_the_content_comes_before_the_calls() -> None:
    """One rule for all formats: nothing runs after the answer."""
    parsed = OPENAI.parse(message(content="<answer>7</answer>"))
    assert [call.name for call in parsed.calls] == ["submit"]
    assert parsed.problems


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"role": "assistant", "tool_calls": [', "JSON"),
        (message(role="tool"), "role"),
        (message().replace("role", "r\\u006fle"), "role"),
        (message(function_call={"name": "a"}), "tool_calls"),
        (message(tools=[1]), "tools"),
        (message(tool_calls={"a": 1}), "an object"),
        (message(tool_calls=[7]), "function"),
        (message(tool_calls=[{"function": {"arguments": "{}"}}]), "'name'"),
        (message(tool_calls=[{"function": {"name": "a"}}]), "'arguments'"),
        (message(tool_calls=[{"function": {"name": "a", "arguments": "{"}}]), "in it"),
        (message(tool_calls=[{"function": {"name": "a", "arguments": '{"a":1,"a":2}'}}]), "twice"),
        (message(tool_calls=[{"id": 1, "function": {"name": "a", "arguments": "{}"}}]), "id"),
        (message(tool_calls=[{"type": "custom", "function": {}}]), "custom"),
        (message(content=7), "content"),
        (message(reasoning=7), "reasoning"),
        (message() + message(), "follows"),
        (f"[{message()}]", "one message"),
        (message(content="<tool_response>Lyon</tool_response>"), "observation"),
        (message(content="<think>never ends"), "never ends"),
    ],
)
def test_each_fault_is_named(text: str, says: str) -> None:
    """One format error, and nothing runs."""
    parsed = OPENAI.parse(text)
    assert parsed.calls == ()
    assert parsed.error is not None
    assert says in parsed.error.message


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "c1", "function": {"name": "search", "arguments": {"query": "a"}}},
        {"function": {"name": "search", "arguments": '{"query": "a"}'}},
    ],
)
def test_loose_habits_are_read_and_flagged(entry: dict[str, object]) -> None:
    """Arguments as an object, a missing id."""
    parsed = OPENAI.parse(message(tool_calls=[entry]))
    assert [dict(call.arguments) for call in parsed.calls] == [{"query": "a"}]
    assert parsed.problems


def test_results_answer_by_id() -> None:
    """In order, each with its call's id."""
    calls = [ToolCall("search", {}, "c1"), ToolCall("search", {})]
    results = [ToolResult("a"), ToolResult("b")]
    expected = [
        {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "a"},
        {"role": "tool", "name": "search", "tool_call_id": "call_1", "content": "b"},
    ]
    assert OPENAI.messages(calls, results) == expected
    assert json.loads(OPENAI.render(calls, results)) == expected


@pytest.mark.parametrize("identity", ["<|im_end|>", "\ud800", "a b", "x" * 200, "\u200b"])
def test_an_id_that_is_not_plain_is_replaced(identity: str) -> None:
    """It goes into messages as it is, so it may hold no token; it is not clean."""
    call = ToolCall("python", {"code": "1"}, identity)
    taken = ToolCall("python", {"code": "1"}, "call_0")
    made = Openai()
    messages = made.messages([call, taken, taken], [ToolResult("x")] * 3)
    assert [message["tool_call_id"] for message in messages] == ["call_1", "call_0", "call_2"]
    entry = {"id": identity, "function": {"name": "python", "arguments": "{}"}}
    parsed = made.parse(json.dumps({"role": "assistant", "tool_calls": [entry]}))
    assert [made_call.id for made_call in parsed.calls] == [""] * len(parsed.calls)
    assert parsed.problems
    assert [again.id for again in made.parse(made.compose([call, taken])).calls] == [
        "call_1",
        "call_0",
    ]
