"""``toolenvs check``: does the machine keep the promises that training rests on?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.sandboxes import sandbox_for
from toolenvs.cli.terminal import console, note, print_json, progress_bar

if TYPE_CHECKING:
    from toolenvs.determinism import Determinism
    from toolenvs.golds import GoldFault, GoldReport

check_app = typer.Typer(help="Check promises on this machine.", no_args_is_help=True)


@check_app.callback()
def _check() -> None:
    """Check promises on this machine."""


@check_app.command("determinism")
def determinism(
    family: Annotated[str, typer.Option(help="Task family, such as math_tir.")] = "math_tir",
    tasks: Annotated[str, typer.Option(help="SOURCE:PATH; built-in tasks if left out.")] = "",
    sandbox: Annotated[str, typer.Option(help="docker, local or auto.")] = "auto",
    repeats: Annotated[int, typer.Option(min=2, help="Times, each in fresh workers.")] = 5,
    limit: Annotated[int, typer.Option(min=1, help="Tasks at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Run the gold calls again and again, uncached; exit code 1 when a result ever differs."""
    from toolenvs.determinism import check_determinism
    from toolenvs.tasks import load_tasks

    source = load_tasks(tasks, family=family)
    kind = sandbox_for(family, sandbox, say=note)
    with progress_bar("check", repeats * min(limit, len(source))) as advance:
        report = check_determinism(
            family, tasks=source, sandbox=kind, repeats=repeats, limit=limit, progress=advance
        )
    if as_json:
        print_json(msgspec.to_builtins(report) | {"share": report.share, "sandbox": kind})
    else:
        _print(report)
    if report.identical < report.calls:
        raise typer.Exit(FAILED)


@check_app.command("golds")
def golds(
    family: Annotated[str, typer.Argument(help="sql: no other family's golds are run.")],
    tasks: Annotated[str, typer.Option(help="SOURCE:PATH; built-in tasks if left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Run each gold query on its database; exit code 1 when one cannot be graded."""
    from toolenvs.errors import UsageError
    from toolenvs.golds import check_golds
    from toolenvs.tasks import load_tasks

    if family != "sql":
        raise UsageError(f"golds of the family {family!r} are not run; it is sql.")
    source = load_tasks(tasks, family=family)
    with progress_bar("golds", len(source)) as advance:
        report = check_golds(source, progress=advance)
    if as_json:
        print_json(report)
    else:
        _print_golds(report)
    if report.unusable:
        raise typer.Exit(FAILED)


def _print_golds(report: GoldReport) -> None:
    for found in report.unusable:
        _say(found, "")
    for found in report.notes:
        _say(found, "note: ")
    fit = report.examined - len(report.unusable)
    console().print(f"{fit} of {report.examined} golds can be graded", style="bold")


def _say(found: GoldFault, kind: str) -> None:
    task = f" {found.task_id}" if found.task_id else ""
    text = f"{found.place}{task}: {kind}{found.reason}"
    console().print(text, markup=False, soft_wrap=True)


def _print(report: Determinism) -> None:
    screen = console()
    for one in report.first:
        count = report.kinds[one.kind]
        screen.print(
            f"{one.kind}: {count} calls differ, the first is call {one.call} of task "
            f"{one.task_id} ({one.tool}), at repetition {one.repeat}",
            markup=False,
            soft_wrap=True,
        )
        screen.print(one.diff, markup=False, soft_wrap=True)
    screen.print(
        f"{report.identical} of {report.calls} calls gave the same result {report.repeats} times "
        f"({report.share:.1%})",
        style="bold",
    )
