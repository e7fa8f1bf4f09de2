"""One episode as a person reads it: task, what the agent did, what came back, what it was paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolenvs.cli.tables import number
from toolenvs.cut import cut
from toolenvs.neutral import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from toolenvs.types import Step, ToolCall, ToolResult, Trajectory

_LONGEST = 1200  # characters of one panel


def transcript(trajectory: Trajectory) -> Iterator[RenderableType]:
    """What to print for one episode, from top to bottom."""
    from rich.text import Text

    task = trajectory.task
    yield _panel(Text(printable(task.prompt)), f"task {task.id}", "bold")
    for turn, step in enumerate(trajectory.steps, 1):
        yield from _turn(turn, step)
    if not trajectory.steps:
        yield Text("no step was made", "bold")
        return
    last = trajectory.steps[-1]
    verdict = last.scores.get("answer")
    gold = f"gold answer {task.answer}, " if task.answer else ""
    ending = f"ended by {last.end_reason or 'nothing'}, {gold}score {number(trajectory.score)}"
    ending += f" ({verdict.reason})" if verdict and verdict.reason else ""
    yield Text(printable(ending), "bold")


def _panel(content: RenderableType, title: str, style: str) -> RenderableType:
    """A frame; its title is a recorded text, so nothing in it is markup."""
    from rich.panel import Panel
    from rich.text import Text

    return Panel(content, title=Text(printable(title)), title_align="left", border_style=style)


def _shown(text: str) -> RenderableType:
    from rich.text import Text

    return Text(printable(cut(text, _LONGEST)[0]))


def _turn(turn: int, step: Step) -> Iterator[RenderableType]:
    from rich.text import Text

    title = f"turn {turn}: agent"
    if step.calls:
        for place, call in enumerate(step.calls):
            result = step.results[place] if place < len(step.results) else None
            yield _panel(_call(call), f"{title} calls {call.name}", "blue")
            if result is not None and not result.terminal:
                yield _result(call, result)
    else:
        yield _panel(_shown(step.action or "(nothing)"), f"{title} writes", "blue")
        if step.observation:
            yield _panel(_shown(step.observation), "environment", "red")
    paid = [f"{name} {number(term, sign=True)}" for name, term in step.terms.items() if term]
    parts = ", ".join(paid) or "nothing changed"
    yield Text(printable(f"  reward {number(step.reward, sign=True)}: {parts}"), "dim")


def _call(call: ToolCall) -> RenderableType:
    from rich.syntax import Syntax

    code = call.arguments.get("code")
    if isinstance(code, str):
        shown = printable(cut(code.strip(), _LONGEST)[0])
        return Syntax(shown, "python", theme="ansi_dark", background_color="default")
    arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return _shown(arguments or "(no arguments)")


def _result(call: ToolCall, result: ToolResult) -> RenderableType:
    title = call.name if result.error is None else f"{call.name}: {result.error.kind}"
    return _panel(_shown(result.text), title, "green" if result.error is None else "red")
