"""One episode as a person reads it: task, what the agent did, what came back, what it was paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolenvs.cli.tables import number
from toolenvs.cut import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from toolenvs.types import Step, ToolCall, ToolResult, Trajectory

_LONGEST = 1200  # characters of one panel


def transcript(trajectory: Trajectory) -> Iterator[RenderableType]:
    """What to print for one episode, from top to bottom."""
    from rich.panel import Panel
    from rich.text import Text

    task = trajectory.task
    yield Panel(Text(task.prompt), title=f"task {task.id}", title_align="left", border_style="bold")
    for turn, step in enumerate(trajectory.steps, 1):
        yield from _turn(turn, step)
    if not trajectory.steps:
        yield Text("no step was made", "bold")
        return
    last = trajectory.steps[-1]
    verdict = last.scores.get("answer")
    ending = f"ended by {last.end_reason or 'nothing'}, gold answer {task.answer}, score "
    ending += number(trajectory.score)
    yield Text(ending + (f" ({verdict.reason})" if verdict and verdict.reason else ""), "bold")


def _turn(turn: int, step: Step) -> Iterator[RenderableType]:
    from rich.panel import Panel
    from rich.text import Text

    title = f"turn {turn}: agent"
    if step.calls:
        for place, call in enumerate(step.calls):
            result = step.results[place] if place < len(step.results) else None
            yield Panel(
                _call(call),
                title=f"{title} calls {call.name}",
                title_align="left",
                border_style="blue",
            )
            if result is not None and not result.terminal:
                yield _result(call, result)
    else:
        yield Panel(
            Text(cut(step.action or "(nothing)", _LONGEST)[0]),
            title=f"{title} writes",
            title_align="left",
            border_style="blue",
        )
        if step.observation:
            yield Panel(
                Text(cut(step.observation, _LONGEST)[0]),
                title="environment",
                title_align="left",
                border_style="red",
            )
    paid = [f"{name} {number(term, sign=True)}" for name, term in step.terms.items() if term]
    parts = ", ".join(paid) or "nothing changed"
    yield Text(f"  reward {number(step.reward, sign=True)}: {parts}", "dim")


def _call(call: ToolCall) -> RenderableType:
    from rich.syntax import Syntax
    from rich.text import Text

    code = call.arguments.get("code")
    if isinstance(code, str):
        shown = cut(code.strip(), _LONGEST)[0]
        return Syntax(shown, "python", theme="ansi_dark", background_color="default")
    return Text(", ".join(f"{name}={value}" for name, value in call.arguments.items()))


def _result(call: ToolCall, result: ToolResult) -> RenderableType:
    from rich.panel import Panel
    from rich.text import Text

    title = call.name if result.error is None else f"{call.name}: {result.error.kind}"
    style = "green" if result.error is None else "red"
    text = Text(cut(result.text, _LONGEST)[0])
    return Panel(text, title=title, title_align="left", border_style=style)
