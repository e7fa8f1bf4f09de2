"""``toolenvs replay`` and ``toolenvs rescore``: what was recorded, played and scored again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.rewards import REWARDS_HELP, read_rewards
from toolenvs.cli.terminal import console, note, print_json, progress_bar

if TYPE_CHECKING:
    from toolenvs.replay import RunReplay
    from toolenvs.rescoring import RunRescore

_Run = Annotated[Path, typer.Argument(help="Folder of a run, or a file of trajectories.")]
_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
_SHOWN_LINES = 60


def replay(
    run: _Run,
    live: Annotated[
        bool, typer.Option("--live", help="Run the tools again instead of serving the record.")
    ] = False,
    sandbox: Annotated[str, typer.Option(help="For --live: docker, local or auto.")] = "auto",
    tasks: Annotated[
        str,
        typer.Option(
            help="For --live: the SOURCE:PATH that was played, for its databases or pages."
        ),
    ] = "",
    as_json: _AsJson = False,
) -> None:
    """Play every recorded action again and compare to the byte; exit code 1 on any difference.

    From the record alone no sandbox, network or engine is needed.
    """
    from toolenvs.replay import replay_run

    kind, runtimes = None, {}
    if live:
        from toolenvs.cli.sandboxes import sandbox_for

        family = _family(run)
        kind = sandbox_for(family, sandbox, say=note)
        runtimes = _resources(family, tasks)
    with progress_bar("replay", _episodes(run)) as advance:
        report = replay_run(run, live=kind, runtimes=runtimes, progress=lambda _: advance())
    if as_json:
        print_json(_as_json(report, live=live))
    else:
        _print(report)
    if not report.clean:
        raise typer.Exit(FAILED)


def rescore(
    run: _Run,
    rewards: Annotated[
        str, typer.Option(help=f"{REWARDS_HELP}; the recorded one if left out.")
    ] = "",
    as_json: _AsJson = False,
) -> None:
    """Score a run again from its records; exit code 1 when its own rubric scores it otherwise."""
    from toolenvs.rescoring import rescore_run
    from toolenvs.rubric import make_rubric

    report = rescore_run(run, rewards=make_rubric(read_rewards(rewards)) if rewards else "")
    if as_json:
        print_json(report)
    else:
        _print_scores(report)
    if not rewards and report.equal < report.episodes:
        raise typer.Exit(FAILED)


def _family(run: Path) -> str:
    """The family of a run's tasks, by its first episode; mathematics if there is none."""
    from toolenvs.records import read_trajectories

    return next((one.task.family for one in read_trajectories(run)), "math_tir")


def _resources(family: str, tasks: str) -> dict[str, Any]:
    """What a family's tasks need besides a sandbox, from their source."""
    from toolenvs.tasks import load_tasks, resources_of

    if not tasks and family == "math_tir":
        return {}
    return resources_of(load_tasks(tasks, family=family))


def _episodes(run: Path) -> int:
    from toolenvs.records import TRAJECTORIES

    file = run / TRAJECTORIES if run.is_dir() else run
    if not file.is_file():
        return 0
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def _as_json(report: RunReplay, *, live: bool) -> dict[str, Any]:
    share = report.identical_steps / report.steps if report.steps else None
    return {**msgspec.to_builtins(report), "identical_share": share, "live": live}


def _print(report: RunReplay) -> None:
    screen = console()
    if report.differences:
        first = report.differences[0]
        where = f"step {first.step}" if first.step >= 0 else "the start"
        screen.print(
            f"first difference: episode {first.episode} (task {first.task_id}, sample "
            f"{first.sample}), {where}, {first.field}",
            markup=False,
            soft_wrap=True,
        )
        lines = first.diff.split("\n")
        for line in lines[:_SHOWN_LINES]:
            screen.print(line, markup=False, soft_wrap=True)
        if len(lines) > _SHOWN_LINES:
            screen.print(f"... {len(lines) - _SHOWN_LINES} more lines", style="dim")
    for piece in report.damaged:
        where = f"{piece.path}: {piece.length} bytes at byte {piece.offset}"
        screen.print(f"{where} hold no episode: {piece.reason}", markup=False, soft_wrap=True)
    total = f"{report.identical} of {report.episodes} episodes identical"
    total += f", {report.identical_steps} of {report.steps} steps"
    if report.unplayed:
        total += f"; {report.unplayed} never began"
    screen.print(total, style="bold")


def _print_scores(report: RunRescore) -> None:
    from toolenvs.cli.tables import number, plain_table

    rows = [
        [name, number(report.recorded.get(name)), number(report.rescored.get(name))]
        for name in dict.fromkeys([*report.recorded, *report.rescored])
    ]
    title = f"{report.episodes} episodes, {report.equal} scored as recorded"
    console().print(plain_table(title, ["mean", "recorded", "rescored"], rows))
