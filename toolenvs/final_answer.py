"""The answer of an imported episode, handed in as rubrics look for it.

Other programs hand in answers in their own ways; here it is, first found first taken:

    1. the last call of a tool that hands in (``submit``, ``finish``, ``final_answer`` ...)
    2. in the agent's last message, what is shown of it: the last box, or the last answer tag
    3. that message as a whole, whose end the grader reads
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from toolenvs.errors import UsageError
from toolenvs.grading.boxed import extract_boxed
from toolenvs.types import Step, ToolCall, ToolResult, Trajectory

_HANDING_IN = {
    *("submit", "submit_sql", "submit_answer", "finish", "final_answer", "answer", "give_answer"),
}
_ARGUMENTS = ("answer", "final_answer", "sql", "input", "text", "result", "value")
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)


def handed_in(trajectory: Trajectory) -> Trajectory:
    """The imported episode, its last step with the answer as the submission.

    Args:
        trajectory: an imported episode with at least one step.

    Raises:
        UsageError: It has no gold answer to compare with, or no answer.
    """
    if not trajectory.task.answer:
        raise UsageError("it tells no gold answer.")
    answer = final_answer(trajectory)
    if answer is None:
        raise UsageError("it tells no answer: no tool that hands in was called with one.")
    last = trajectory.steps[-1]
    given = ToolResult("", data={"answer": answer, "sql": answer}, terminal=True)
    call = ToolCall("submit", {"answer": answer})
    last = msgspec.structs.replace(
        last, calls=(*last.calls, call), results=(*last.results, given), terminated=True
    )
    return msgspec.structs.replace(trajectory, steps=(*trajectory.steps[:-1], last))


def final_answer(trajectory: Trajectory) -> str | None:
    """The answer, None if there is none.

    Args:
        trajectory: an imported episode with at least one step.
    """
    handed_in = False
    for step in reversed(trajectory.steps):
        for call in reversed(step.calls):
            if call.name.lower() in _HANDING_IN:
                answer = _argument(call.arguments)
                if answer is not None:
                    return answer
                handed_in = True
    text = _visible(trajectory.steps[-1])
    tags = _TAG.findall(text)
    boxed = extract_boxed(text)
    # Beside a call that hands in without an answer, what is marked as one counts, not all the text.
    rest = "" if handed_in else text
    answer = boxed if boxed is not None else tags[-1] if tags else rest
    return answer.strip() or None


def _argument(arguments: Mapping[str, Any]) -> str | None:
    """The argument that holds the answer: one called so, or the only one."""
    named = [arguments[name] for name in _ARGUMENTS if name in arguments]
    values = named or list(arguments.values())
    if (len(values) > 1 and not named) or not values or values[0] is None:
        return None
    return values[0] if isinstance(values[0], str) else json.dumps(values[0], ensure_ascii=False)


def _visible(step: Step) -> str:
    """What a message shows: one with calls or thoughts is kept as its JSON."""
    if step.action.startswith("{"):
        try:
            message = json.loads(step.action)
        except (ValueError, RecursionError):
            return step.action
        if isinstance(message, dict) and message.get("role") == "assistant":
            return str(message.get("content") or "")
    return step.action
