"""``toolenvs replay`` and ``toolenvs rescore``: what was recorded, played and scored again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.rewards import REWARDS_HELP, read_rewards
from toolenvs.cli.terminal import console, note, print_json, progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from toolenvs.records import Damage
    from toolenvs.replay import RunReplay
    from toolenvs.rescoring import RunRescore
    from toolenvs.types import Trajectory

_Run = Annotated[Path, typer.Argument(help="Folder of a run, or a file of trajectories.")]
_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
_SHOWN_LINES, _SHOWN_FAULTS = 60, 5


def replay(
    run: _Run,
    live: Annotated[
        bool, typer.Option("--live", help="Run the tools again instead of serving the record.")
    ] = False,
    sandbox: Annotated[str, typer.Option(help="For --live: docker, local or auto.")] = "auto",
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            help="For --live: the SOURCE:PATH that was played, for its databases or pages; "
            "once for each source of the run. What the run itself tells if left out."
        ),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Play every recorded action again and compare to the byte; exit code 1 on any difference.

    From the record alone no sandbox, network or engine is needed.
    """
    from toolenvs.replay import replay_run

    kind, runtimes = None, None
    if live:
        played = _played(run)
        kind = _sandbox_for_all(played, sandbox)
        runtimes = _Resources(played, tasks or _told_tasks(run)).of
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
    """Score a run again from its records.

    Exit code 1 when its own rubric scores it otherwise, when an episode cannot be scored, or when a
    line holds none.
    """
    from toolenvs.rescoring import rescore_run
    from toolenvs.rubric import make_rubric

    report = rescore_run(run, rewards=make_rubric(read_rewards(rewards)) if rewards else "")
    if as_json:
        print_json(report)
    else:
        _print_scores(report, own=not rewards)
    if not report.whole or (not rewards and report.equal < report.episodes):
        raise typer.Exit(FAILED)


def _played(run: Path) -> dict[str, set[str]]:
    """The ids of a run's tasks, by family."""
    from toolenvs.families import FAMILIES
    from toolenvs.recorded import has_begun, layout_of
    from toolenvs.records import read_trajectories

    found: dict[str, set[str]] = {}
    for one in read_trajectories(run, damaged=lambda _: None):  # the replay tells of what is left
        if has_begun(one) and not layout_of(one) and _family_of(one) in FAMILIES:
            found.setdefault(_family_of(one), set()).add(one.task.id)
    return found or {"math_tir": set()}


def _told_tasks(run: Path) -> list[str]:
    """The sources that a rollout wrote into its run; none where it played built-in tasks."""
    from toolenvs.records import RUN, read_run

    if not (run / RUN).is_file():
        return []
    told = read_run(run).settings.get("tasks")
    return [told] if isinstance(told, str) and told else []


def _family_of(trajectory: Trajectory) -> str:
    return str(trajectory.settings.get("family", trajectory.task.family))


def _sandbox_for_all(families: Iterable[str], asked: str) -> str:
    """One sandbox for all families, the image of each ready; local where one cannot be had."""
    from toolenvs.cli.sandboxes import sandbox_for

    kinds = [sandbox_for(family, asked, say=note) for family in families]
    return "local" if len(set(kinds)) > 1 else kinds[0]


class _Resources:
    """What tasks need besides a sandbox, from the sources that they are of.

    Args:
        played: the ids of the run's tasks, by family.
        specs: its sources; a family without one has its own small tasks.

    Raises:
        UsageError: A source cannot be read.
    """

    def __init__(self, played: Mapping[str, set[str]], specs: Sequence[str]) -> None:
        self._sources: dict[str, list[tuple[frozenset[str], Mapping[str, Any]]]] = {}
        for spec in specs:
            self._add(spec, played)
        for family in played:
            if family not in self._sources and family != "math_tir":
                self._add("", {family: set()})

    def of(self, trajectory: Trajectory) -> Mapping[str, Any]:
        """Those of one episode: of the source that has its task, or else the only one there is."""
        sources = self._sources.get(_family_of(trajectory), [])
        fitting = [found for ids, found in sources if trajectory.task.id in ids]
        if not fitting and len(sources) == 1:
            fitting = [sources[0][1]]
        return fitting[0] if fitting else {}

    def _add(self, spec: str, played: Mapping[str, set[str]]) -> None:
        """Enter a source for the family that played its tasks, or else the one that takes it."""
        from toolenvs.errors import UsageError
        from toolenvs.tasks import load_tasks, resources_of, task_ids

        taken: tuple[str, frozenset[str], Mapping[str, Any]] | None = None
        refused: UsageError | None = None
        for family, ids in played.items():
            try:
                source = load_tasks(spec, family=family)
            except UsageError as error:  # of another family, or of none
                refused = refused or error
                continue
            found = family, frozenset(task_ids(source)), resources_of(source)
            if not found[1].isdisjoint(ids):
                taken, refused = found, None
                break
            taken = taken or found
        if refused is not None:  # even where another took it: a layout may fit several families
            raise refused
        if taken is not None:
            self._sources.setdefault(taken[0], []).append(taken[1:])


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
    _print_damaged(screen, report.damaged)
    _print_not_run(screen, report)
    total = f"{report.identical} of {report.episodes} episodes identical"
    total += f", {report.identical_steps} of {report.steps} steps"
    if report.unplayed:
        total += f"; {report.unplayed} never began"
    if report.not_run:
        total += f"; {len(report.not_run)} could not be run"
    screen.print(total, style="bold")


def _print_damaged(screen: Any, damaged: Iterable[Damage]) -> None:
    for piece in damaged:
        where = f"{piece.path}: {piece.length} bytes at byte {piece.offset}"
        screen.print(f"{where} hold no episode: {piece.reason}", markup=False, soft_wrap=True)


def _print_not_run(screen: Console, report: RunReplay) -> None:
    """Each failure of a machine once, with the number of episodes that met it."""
    for failure, count in Counter(one.failure for one in report.not_run).most_common(_SHOWN_FAULTS):
        episodes = f"{count} episode{'' if count == 1 else 's'}"
        line = f"{episodes} could not be run: {failure}"
        screen.print(line, markup=False, soft_wrap=True)


def _print_scores(report: RunRescore, *, own: bool) -> None:
    from toolenvs.cli.tables import number, plain_table

    rows = [
        [name, number(report.recorded.get(name)), number(report.rescored.get(name))]
        for name in dict.fromkeys([*report.recorded, *report.rescored])
    ]
    title = f"{report.episodes} episodes"
    title += f", {report.equal} scored as recorded" if own else ", by another rubric"
    screen = console()
    screen.print(plain_table(title, ["mean", "recorded", "rescored"], rows))
    _print_damaged(screen, report.damaged)
    for one in report.unscored[:_SHOWN_LINES]:
        where = f"episode {one.episode} (task {one.task_id}, sample {one.sample})"
        screen.print(f"{where} is not scored: {one.reason}", markup=False, soft_wrap=True)
    if len(report.unscored) > _SHOWN_LINES:
        screen.print(f"... {len(report.unscored) - _SHOWN_LINES} more", style="dim")
    if report.unscored or report.unplayed:
        told = f"{len(report.unscored)} not scored, {report.unplayed} never began"
        screen.print(told, style="bold")
