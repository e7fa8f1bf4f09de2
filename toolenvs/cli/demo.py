"""``toolenvs demo``: the main job on the built-in tasks, from a sandbox to a table."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolenvs.cli.faults import FAILED, INTERRUPTED
from toolenvs.cli.terminal import console, note, print_json, progress_bar

if TYPE_CHECKING:
    from toolenvs.rollout import Played
    from toolenvs.summary import Summary
    from toolenvs.types import Trajectory

FAMILY = "math_tir"
PLAYERS = ("gold", "noisy")


def demo(
    sandbox: Annotated[str, typer.Option(help="docker, local or auto.")] = "auto",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of each policy.")] = 48,
    envs: Annotated[int, typer.Option(min=1, help="Environments at once.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of sandboxes and of noisy.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Play real episodes on the built-in tasks in the best sandbox found here.

    Ctrl-C stops it: what was played is shown as a part, and the exit code is 130.
    """
    from toolenvs.cli.sandboxes import choose_sandbox
    from toolenvs.cli.tables import summary_table
    from toolenvs.cli.transcript import transcript

    choice = choose_sandbox(sandbox, say=note)
    screen = console(stderr=as_json)
    screen.print(f"[bold]sandbox:[/bold] {choice.why}")
    played: dict[str, _Player] = {}
    for name in PLAYERS:
        played[name] = _Player(name, sandbox=choice.name, episodes=episodes, envs=envs, seed=seed)
        if played[name].stopped:
            break
    stopped = next((run.stopped for run in played.values() if run.stopped), "")
    interrupted = any(run.played.interrupted for run in played.values())
    rows = {name: run.summary for name, run in played.items() if run.played.episodes}
    title = f"{FAMILY}, built-in tasks" + (f" (PARTIAL: {stopped})" if stopped else "")
    if as_json:
        found = {"sandbox": choice.name, "why": choice.why, "policies": rows}
        print_json({**found, "interrupted": interrupted})
    elif rows:
        if not stopped:
            screen.rule("one episode of the noisy policy")
            for part in transcript(played["noisy"].most_telling()):
                screen.print(part)
        screen.rule("all episodes")
        screen.print(summary_table(rows, title=title))
        if not stopped:
            screen.print(_next(command()), markup=False, soft_wrap=True)
    if stopped:
        typer.echo(f"toolenvs: {stopped}", err=True)
        raise typer.Exit(INTERRUPTED if interrupted else FAILED)
    if any(row.failed for row in rows.values()):
        typer.echo("toolenvs: some episodes failed for reasons of the machine.", err=True)
        raise typer.Exit(FAILED)


def command() -> str:
    """How this program is called here: its name, or its path where the name is not found."""
    if shutil.which("toolenvs"):
        return "toolenvs"
    program = Path(sys.argv[0])
    if program.name != "toolenvs" or not program.is_file():  # python -m
        return f"{_from_here(Path(sys.executable))} -m toolenvs"
    return _from_here(program)


def _from_here(program: Path) -> str:
    """A path as one types it: short where it lies below the current folder."""
    path = Path(os.path.abspath(program))  # noqa: PTH100 - resolve() would leave the venv by its links
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _next(name: str) -> str:
    return f"""Next:
  {name} rollout math_tir --policy noisy --eval --samples 8 --out runs/first
  {name} rollout math_tir --tasks gsm8k:PATH --model http://localhost:8000/v1#MODEL
  {name} list"""


class _Player:
    """The episodes of one policy, with their trajectories."""

    def __init__(self, name: str, *, sandbox: str, episodes: int, envs: int, seed: int) -> None:
        from toolenvs.env import ToolEnv
        from toolenvs.policies import make_policy
        from toolenvs.rollout import plan_jobs, run_episodes
        from toolenvs.summary import summarise
        from toolenvs.tasks import load_tasks

        self.trajectories: list[Trajectory] = []
        source = load_tasks("", family=FAMILY)
        jobs = plan_jobs(source, episodes=episodes, seed=seed)
        with progress_bar(f"{FAMILY} {name}", len(jobs)) as advance:
            self.played: Played = run_episodes(
                lambda: ToolEnv(FAMILY, tasks=source, sandbox=sandbox),
                make_policy(name, seed=seed),
                jobs,
                envs=envs,
                out=self,
                progress=lambda _: advance(),
            )
        self.stopped = self.played.given_up
        if self.played.interrupted:
            done = len(self.played.episodes)
            self.stopped = f"interrupted: {name} played {done} of {len(jobs)} episodes"
        self.summary: Summary = summarise(
            self.played.episodes,
            sandbox=sandbox,
            replay="off",
            steps_per_s=self.played.steps_per_s,
        )

    def write(self, trajectory: Trajectory, timings: Mapping[str, Any] | None = None) -> int:
        """Keep a trajectory, as a ``RunWriter`` would write it."""
        self.trajectories.append(trajectory)
        return len(self.trajectories) - 1

    def most_telling(self) -> Trajectory:
        """The episode with the most to see: an error that was repaired before a right answer."""
        return max(
            zip(self.played.episodes, self.trajectories, strict=True),
            key=lambda pair: (bool(pair[0].repaired) and pair[0].right, pair[0].turns),
        )[1]
