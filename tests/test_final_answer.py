"""The answer of an imported episode, however its program handed it in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolenvs.errors import UsageError
from toolenvs.final_answer import final_answer, handed_in
from toolenvs.types import Step, Task, ToolCall, ToolResult, Trajectory


def episode(*actions: str, gold: str = "7", **last: Any) -> Trajectory:
    """An imported episode; ``last`` is more of its last step."""
    steps = [Step(action=action) for action in actions[:-1]]
    steps += [Step(action=actions[-1], terminated=True, **last)] if actions else []
    task = Task(id="t", prompt="?", answer=gold, family="imported")
    return Trajectory(task=task, settings={"imported": "x"}, prompt="?", steps=tuple(steps))


def hidden(content: str | None) -> str:
    """A message that holds more than its text."""
    return json.dumps({"role": "assistant", "content": content, "reasoning_content": "\\boxed{1}"})


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("It is \\boxed{6}, no, \\boxed{7}.", "7"),
        ("So: <answer> 7 </answer>", "7"),
        ("The answer is 7.", "The answer is 7."),
        (hidden("It is \\boxed{7}."), "7"),
        (hidden(None), None),
        ('{"role": "user", "content": "7"}', '{"role": "user", "content": "7"}'),
        ("{7", "{7"),
        ("  ", None),
    ],
)
def test_the_last_message_answers_by_what_it_shows(action: str, answer: str | None) -> None:
    """A box, a tag, or the message; a thought is no answer."""
    assert final_answer(episode("\\boxed{3}", action)) == answer


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("submit", {"answer": "7"}, "7"),
        ("Finish", {"input": "7"}, "7"),
        ("final_answer", {"whatever": 7}, "7"),
        ("submit_sql", {"sql": "SELECT 7", "why": "so"}, "SELECT 7"),
        ("submit", {}, None),
        ("submit", {"a": "7", "b": "8"}, None),
        ("search", {"input": "8"}, "I am done."),
    ],
)
def test_a_call_that_hands_in_goes_before_the_message(
    name: str, arguments: dict[str, Any], answer: str | None
) -> None:
    """The last such call, by the argument that holds the answer."""
    calls, results = (ToolCall(name, arguments),), (ToolResult("ok"),)
    assert final_answer(episode("I am done.", calls=calls, results=results)) == answer


def test_the_answer_is_handed_in_with_the_last_step() -> None:
    """As rubrics look for it; the steps before it stay as they are."""
    before = episode("hm", "\\boxed{7}")
    after = handed_in(before)
    assert after.steps[:-1] == before.steps[:-1]
    assert after.steps[-1].results[-1].data["answer"] == "7"
    assert after.steps[-1].results[-1].terminal


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (episode("7", gold=""), "no gold answer"),
        (episode(" "), "no answer"),
    ],
)
def test_what_has_no_answer_to_compare_is_said(bad: Trajectory, told: str) -> None:
    """It is no wrong answer."""
    with pytest.raises(UsageError, match=told):
        handed_in(bad)
