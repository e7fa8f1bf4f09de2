"""Run the same calls in fresh sandboxes again and again, and tell what came out differently.

    report = check_determinism("math_tir", sandbox="docker", repeats=5)
    report.identical == report.calls

Nothing is cached, and each repetition has workers of its own, as long as no other environment of
the process keeps some open: what differs here is what a replay must take from its record, since it
would not come out again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import msgspec

from toolenvs.comparison import readable_diff
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.families import SUBMITS
from toolenvs.policies import gold_calls
from toolenvs.protocols import TaskSource
from toolenvs.statekey import digest
from toolenvs.tasks import load_tasks
from toolenvs.types import Task, ToolCall, ToolResult, ToolSpec

SEED = 0

# As Python writes them, and as ``id()`` gives them: Linux has heaps of programs at 0x55... or
# 0x56..., and what else they map at 0x7f....
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}|\b(?:9[3-5]|139|140)\d{12}\b")
_CLOCK = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
    r"|\d\d:\d\d:\d\d(?:\.\d+)?|\b1[6-9]\d{8}(?:\.\d+)?\b"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"\w+|[^\w\s]")


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """A call that gave another result.

    Attributes:
        kind: what differs: ``error`` (how it ended), ``addresses``, ``clock``, ``order`` (the same
            words, arranged otherwise), ``numbers`` (nothing else), or ``text``.
        task_id, call: which call: the task, and its number in the episode, from 0.
        tool: its tool.
        repeat: the first repetition that differs from the one before all, from 1.
        diff: the two results as a unified diff.
    """

    kind: str
    task_id: str
    call: int
    tool: str
    repeat: int
    diff: str


class Determinism(msgspec.Struct, frozen=True, kw_only=True):
    """What repeating came to.

    Attributes:
        calls: different calls that were made.
        repeats: how often each was made.
        identical: calls whose results were all the same.
        kinds: how many calls differ, by kind.
        first: the first of each kind.
    """

    calls: int
    repeats: int
    identical: int
    kinds: dict[str, int]
    first: tuple[Differing, ...]

    @property
    def share(self) -> float:
        """Share of the calls whose results were all the same."""
        return self.identical / self.calls


def check_determinism(
    family: str,
    *,
    tasks: str | TaskSource | Sequence[Task] = "",
    sandbox: Any = "auto",
    repeats: int = 5,
    limit: int = 50,
    progress: Callable[[], None] | None = None,
) -> Determinism:
    """Make the gold calls of a family's tasks ``repeats`` times and compare the results.

    Args:
        family: the task family.
        tasks: see ``load_tasks``.
        sandbox: see ``ToolEnv``; a ``SandboxPool`` keeps its workers.
        repeats: times, at least 2.
        limit: tasks at most, taken from the first on.
        progress: called after each repetition of a task.

    Raises:
        UsageError: A number is too small, or no task has a gold call.
        RuntimeFailure: The machine failed; what was compared until then is not told.
    """
    if repeats < 2 or limit < 1:
        raise UsageError(f"repeats={repeats}, limit={limit}: give at least 2 and at least 1.")
    source = load_tasks(tasks, family=family)
    played = [source[row] for row in range(min(limit, len(source)))]
    first: dict[tuple[str, int], tuple[ToolCall, ToolResult]] = {}
    differing: dict[tuple[str, int], Differing] = {}
    for repeat in range(repeats):
        with closing(ToolEnv(family, tasks=source, sandbox=sandbox, max_turns=1000)) as env:
            for task in played:
                for number, (call, result) in enumerate(_results(env, task)):
                    place = (task.id, number)
                    before = first.setdefault(place, (call, result))[1]
                    if place not in differing and digest(before) != digest(result):
                        differing[place] = _differing(place, call, repeat, before, result)
                if progress is not None:
                    progress()
    if not first:
        raise UsageError(_nothing_to_repeat(source.name, played, env.specs))
    kinds: dict[str, int] = {}
    shown: dict[str, Differing] = {}
    for one in differing.values():
        kinds[one.kind] = kinds.get(one.kind, 0) + 1
        shown.setdefault(one.kind, one)
    return Determinism(
        calls=len(first),
        repeats=repeats,
        identical=len(first) - len(differing),
        kinds=kinds,
        first=tuple(shown.values()),
    )


def _results(env: ToolEnv, task: Task) -> list[tuple[ToolCall, ToolResult]]:
    """Make a task's gold calls, each in a turn of its own."""
    env.reset(options={"task_id": task.id, "sandbox_seed": SEED})
    found = []
    for call in gold_calls(task, env.specs):
        env.act([call])
        step = env.episode.trajectory.steps[-1]
        if step.failure:
            raise RuntimeFailure(step.failure, f"task {task.id!r}: the machine failed")
        found.append((call, step.results[0]))
    return found


def _nothing_to_repeat(source: str, tasks: Sequence[Task], specs: Sequence[ToolSpec]) -> str:
    called = {str(call["name"]) for task in tasks for call in task.gold_calls} - set(SUBMITS)
    if not called:
        return f"no task of {source!r} has a gold call to repeat."
    offered = ", ".join(spec.name for spec in specs)
    return (
        f"the gold calls of {source!r} are of tools that are not on offer: "
        f"{', '.join(sorted(called))}. On offer are: {offered}."
    )


def _differing(
    place: tuple[str, int], call: ToolCall, repeat: int, before: ToolResult, now: ToolResult
) -> Differing:
    return Differing(
        kind=kind_of(before, now),
        task_id=place[0],
        call=place[1],
        tool=call.name,
        repeat=repeat,
        diff=readable_diff(msgspec.to_builtins(before), msgspec.to_builtins(now)),
    )


def kind_of(before: ToolResult, now: ToolResult) -> str:
    """What is different about two results; see ``Differing.kind``."""
    if (before.error is None) != (now.error is None):
        return "error"
    if before.error is not None and now.error is not None and before.error.kind != now.error.kind:
        return "error"
    one, other = (f"{result.text}\n{result.data}" for result in (before, now))
    for kind, varies in (("addresses", _ADDRESS), ("clock", _CLOCK)):
        if varies.sub("?", one) == varies.sub("?", other):
            return kind
    if sorted(_WORD.findall(one)) == sorted(_WORD.findall(other)):
        return "order"
    return "numbers" if _NUMBER.sub("?", one) == _NUMBER.sub("?", other) else "text"
