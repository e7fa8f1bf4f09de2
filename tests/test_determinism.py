"""``check determinism``: what differs between fresh sandboxes is found, counted and shown."""

from __future__ import annotations

import itertools

import pytest

from tests.fakes import FakeRuntime, FakeWorker
from toolenvs.determinism import check_determinism, kind_of
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import Task, ToolError, ToolResult

CALL = {"name": "python", "arguments": {"code": "count"}}
TASKS = [
    Task(id=name, prompt="p", answer="1", gold_calls=calls)
    for name, calls in (("a", (CALL, CALL)), ("b", (CALL,)), ("c", ()))
]


class Changing(FakeRuntime):
    """Every worker's sandboxes print what ``outputs`` says next."""

    def __init__(self, *outputs: str) -> None:
        super().__init__()
        self.outputs = itertools.cycle(outputs)

    async def start(self) -> FakeWorker:
        self.output = next(self.outputs)
        return await super().start()


def test_equal_results_are_counted_and_each_repetition_has_a_fresh_worker() -> None:
    """Three calls, four times each: nothing differs, and four workers were started and ended."""
    runtime, advanced = FakeRuntime(), []
    report = check_determinism(
        "math_tir", tasks=TASKS, sandbox=runtime, repeats=4, progress=lambda: advanced.append(1)
    )
    assert (report.calls, report.identical, report.repeats, report.share) == (3, 3, 4, 1.0)
    assert (report.kinds, report.first) == ({}, ())
    assert (runtime.started, runtime.stopped, len(advanced)) == (4, 4, 12)


def test_the_first_difference_of_each_kind_is_shown() -> None:
    """What differs is named with its task and repetition, both results in the diff."""
    runtime = Changing("same\n", "same\n", "f is at 0x7f10aa20\n")
    report = check_determinism("math_tir", tasks=TASKS, sandbox=runtime, repeats=3)
    assert (report.identical, report.kinds) == (0, {"text": 3})
    (first,) = report.first
    assert (first.task_id, first.call, first.tool, first.repeat) == ("a", 0, "python", 2)
    assert "0x7f10aa20" in first.diff
    assert "same" in first.diff


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ("<f at 0x7f10aa20>", "<f at 0x7f10bb40>", "addresses"),
        ("id 139672238987424", "id 94512345678992", "addresses"),
        ("2026-11-30 04:05:06.7", "2026-11-30 04:05:07.1", "clock"),
        ("now 1796012345.2", "now 1796012346", "clock"),
        ("{'a', 'b'}", "{'b', 'a'}", "order"),
        ("x = 0.1 and 2", "x = 0.3 and 2e5", "numbers"),
        ("yes", "no", "text"),
    ],
)
def test_a_difference_has_a_kind(before: str, now: str, kind: str) -> None:
    """The kind says what varies, so that a reader knows what to look for."""
    assert kind_of(ToolResult(before), ToolResult(now)) == kind


def test_how_a_call_ended_is_a_kind_of_its_own() -> None:
    """An error beside none, or of another kind, is told first."""
    failed = ToolResult("", error=ToolError("timeout", "late"))
    assert kind_of(ToolResult("x"), failed) == "error"
    assert kind_of(failed, ToolResult("", error=ToolError("raised", "late"))) == "error"


def test_nothing_to_repeat_and_machine_failures_are_errors() -> None:
    """No gold call, one repetition or a dead machine give no share."""
    with pytest.raises(UsageError, match="has a gold call"):
        check_determinism("math_tir", tasks=TASKS[2:], sandbox=FakeRuntime())
    with pytest.raises(UsageError, match="at least 2"):
        check_determinism("math_tir", tasks=TASKS, sandbox=FakeRuntime(), repeats=1)
    with pytest.raises(RuntimeFailure):
        check_determinism("math_tir", tasks=TASKS, sandbox=FakeRuntime(dies_at=0))


def test_gold_calls_of_tools_that_are_not_on_offer_are_named() -> None:
    """There are gold calls, but none that could be made here."""
    gold = {"name": "calculator", "arguments": {"expression": "1"}}
    tasks = [Task(id="a", prompt="p", answer="1", gold_calls=(gold,))]
    with pytest.raises(UsageError, match=r"not on offer: calculator\. On offer are: python"):
        check_determinism("math_tir", tasks=tasks, sandbox=FakeRuntime())
