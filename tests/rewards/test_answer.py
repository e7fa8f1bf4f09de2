"""The outcome: graded once, at every end."""

from __future__ import annotations

import msgspec
import pytest

from tests.trajectories import TASK, episode, python, stopped, submit
from toolenvs.rewards.answer import Answer
from toolenvs.types import Score, Step, Task, ToolResult


def score(*steps: Step, task: Task = TASK) -> Score:
    """The score of these steps."""
    return Answer().score(task, episode(*steps, task=task))


@pytest.mark.parametrize(
    ("gold", "answer", "value"),
    [("7", "7", 1.0), ("7", "8", 0.0), ("7", "", 0.0), ("1/2", "\\frac{1}{2}", 1.0)],
)
def test_right_is_1_and_wrong_is_0(gold: str, answer: str, value: float) -> None:
    """The submitted text is compared to the gold answer by the task's own policy."""
    task = msgspec.structs.replace(TASK, answer=gold)
    graded = score(python(), submit(answer), task=task)
    assert (graded.value, graded.masked) == (value, False)
    assert graded.reason


def test_the_policy_is_the_tasks() -> None:
    """``Task.grading`` are keyword arguments of the policy."""
    task = msgspec.structs.replace(TASK, answer="3.14159")
    near = msgspec.structs.replace(task, grading={"rel_tol": 0.01})
    assert score(submit("3.14"), task=task).value == 0.0
    assert score(submit("3.14"), task=near).value == 1.0


def test_without_a_submission_it_is_0_and_says_so() -> None:
    """Stalling is as bad as a wrong answer, and not masked; before the end nothing is scored."""
    assert score(python(), stopped()) == Score(0.0, "no submission (max_turns)")
    assert score(python()) == Score(0.0, "the episode goes on")


def test_only_a_submission_counts() -> None:
    """What a tool printed, or a result without an answer, is no submission."""
    step = msgspec.structs.replace(python(), truncated=True, end_reason="max_turns")
    assert score(step).value == 0.0
    empty = msgspec.structs.replace(submit(), results=(ToolResult("", terminal=True),))
    assert score(empty) == Score(0.0, "no submission (submit)")


@pytest.mark.parametrize(
    "task",
    [
        msgspec.structs.replace(TASK, gradable=False),
        msgspec.structs.replace(TASK, answer=""),
    ],
)
def test_a_gold_answer_that_cannot_be_graded_never_pays(task: Task) -> None:
    """It is masked with its reason, whatever was submitted."""
    assert score(submit("7"), task=task) == Score(0.0, "gold not gradable", masked=True)
