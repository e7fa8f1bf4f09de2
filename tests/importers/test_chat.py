"""What the agent wrote is kept as it was, and comes out as chat messages again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.layouts import (
    CHAT,
    REACT,
    imported,
)
from toolenvs.errors import UsageError
from toolenvs.importers import chat_messages
from toolenvs.records import decode_trajectory, encode_trajectory
from toolenvs.types import Task, Trajectory

SAID = (
    *("ok", "<think>abc</think>\nlet me look", "so \\boxed{3}", "a\ud800b", "  spaced \n", "{", ""),
    *('<tool_call>{"name": "f"}</tool_call>', '{"role": "assistant", "content": "x"}', "</think>"),
)


CALLED: tuple[list[tuple[str, str]], ...] = (
    [],
    [("f", "{}")],
    [("submit", '{"answer": "x"}'), ("f", "{}")],
    [("", '{"a": 1}')],
    [("f", '{"a": NaN, "b": 1e999}'), ("f", " [1] "), ("g", "{oh")],
    [("f", '{"a": "\\ud800", "a": 123456789012345678901234567890}')],
)


@pytest.mark.parametrize("calls", CALLED)
@pytest.mark.parametrize("thought", ["", "<think> I muse"])
def test_what_the_agent_wrote_is_kept_as_it_was(
    tmp_path: Path, calls: list[tuple[str, str]], thought: str
) -> None:
    """Text, thought and arguments; no format's rules apply to what another program recorded."""
    for text in SAID:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thought:
            message["reasoning_content"] = thought
        if calls:
            message["tool_calls"] = [
                {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": words}}
                for n, (name, words) in enumerate(calls)
            ]
        (found,) = imported(tmp_path, {"messages": [message]})
        (step,) = found.trajectory.steps
        assert [call.name for call in step.calls] == [name for name, _ in calls]
        assert step.parsed is not None
        assert step.parsed.thought == thought
        if not (calls or thought or "role" in text):
            assert step.action == text
        (again,) = chat_messages(found.trajectory)
        assert {**again, "content": again["content"] or ""} == message
        line = encode_trajectory(found.trajectory)
        assert encode_trajectory(decode_trajectory(line)) == line  # NaN equals not even itself


def test_actions_written_as_text_are_the_text(tmp_path: Path) -> None:
    """ReAct's and SWE-agent's: nothing is added, the call is in the step."""
    first, _ = imported(tmp_path, REACT)
    assert first.trajectory.steps[0].action == "Thought 1: I must add.\nAction 1: Add[1]"
    response = "I look.\n```\nls\n```"
    step = {"response": response, "thought": "I look.\n", "action": "ls\n", "observation": "a b"}
    record = {"history": [{"role": "user", "content": "Look."}], "trajectory": [step]}
    (found,) = imported(tmp_path, record)
    (acted,) = found.trajectory.steps
    assert (acted.action, acted.results[0].text) == (response, "a b")
    assert acted.calls[0].arguments == {"command": "ls\n"}
    assert [m["role"] for m in chat_messages(found.trajectory)] == ["user", "assistant", "user"]


def test_a_refusal_is_what_the_agent_said(tmp_path: Path) -> None:
    """It is in the action, and comes out again."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    (found,) = imported(tmp_path, {"messages": [message]})
    assert "I cannot." in found.trajectory.steps[0].action
    assert chat_messages(found.trajectory) == [message]


texts = st.text(min_size=1) | st.sampled_from([text for text in SAID if text])


arguments = st.dictionaries(st.text(), st.integers() | st.text(), max_size=2).map(json.dumps)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chat messages as an API gives them, each call answered."""
    messages: list[dict[str, Any]] = [
        {"role": role, "content": draw(texts)}
        for role in draw(st.lists(st.sampled_from(["system", "developer", "user"]), max_size=3))
    ]
    for turn in range(draw(st.integers(1, 3))):
        said: dict[str, Any] = {"role": "assistant", "content": draw(texts)}
        if draw(st.booleans()):
            said["reasoning_content"] = draw(texts)
        calls = [
            {
                "id": f"call-{turn}-{number}",
                "type": "function",
                "function": {"name": draw(texts), "arguments": draw(arguments)},
            }
            for number in range(draw(st.integers(0, 3)))
        ]
        if calls:
            said |= {"tool_calls": calls, "content": draw(st.none() | texts)}
        answers = [
            {"role": "tool", "tool_call_id": call["id"], "content": draw(texts)} for call in calls
        ]
        people = [{"role": "user", "content": draw(texts)} for _ in range(draw(st.integers(0, 2)))]
        messages += [said, *draw(st.permutations(answers)), *people]
    return messages


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=conversations())
def test_chat_messages_come_out_as_they_went_in(tmp_path: Path, messages: Any) -> None:
    """Through the record: nothing is told, nothing is lost."""
    (found,) = imported(tmp_path, {"messages": messages})
    again = decode_trajectory(encode_trajectory(found.trajectory))
    assert found.problems == ()
    # JSON reads a pair of surrogates as the character that it is.
    assert chat_messages(again) == json.loads(json.dumps(messages))


def test_only_what_was_imported_tells_who_said_what(tmp_path: Path) -> None:
    """Another trajectory is an error that says so."""
    (found,) = imported(tmp_path, CHAT)
    bare = Trajectory(task=Task(id="t", prompt="x"), steps=found.trajectory.steps)
    with pytest.raises(UsageError, match="it was not imported"):
        chat_messages(bare)
