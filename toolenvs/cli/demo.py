"""``toolenvs demo``: the main job on the built-in tasks, from a sandbox to a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.terminal import console, note, print_json, progress_bar

if TYPE_CHECKING:
    from toolenvs.summary import EpisodeSummary, Summary
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
    """Play real episodes on the built-in tasks in the best sandbox found here."""
    from toolenvs.cli.sandboxes import choose_sandbox
    from toolenvs.cli.tables import summary_table
    from toolenvs.cli.transcript import transcript

    choice = choose_sandbox(sandbox, say=note)
    screen = console(stderr=as_json)
    screen.print(f"[bold]sandbox:[/bold] {choice.why}")
    played = {
        name: _Played(name, sandbox=choice.name, episodes=episodes, envs=envs, seed=seed)
        for name in PLAYERS
    }
    rows = {name: run.summary for name, run in played.items()}
    if as_json:
        print_json({"sandbox": choice.name, "why": choice.why, "policies": rows})
    else:
        screen.rule("one episode of the noisy policy")
        for part in transcript(played["noisy"].most_telling()):
            screen.print(part)
        screen.rule("all episodes")
        screen.print(summary_table(rows, title=f"{FAMILY}, built-in tasks"))
        screen.print(_NEXT, markup=False, soft_wrap=True)
    if any(row.failed for row in rows.values()):
        typer.echo("toolenvs: some episodes failed for reasons of the machine.", err=True)
        raise typer.Exit(FAILED)


_NEXT = """Next:
  toolenvs rollout math_tir --policy noisy --eval --samples 8 --out runs/first
  toolenvs rollout math_tir --tasks gsm8k:PATH --model http://localhost:8000/v1#MODEL
  toolenvs list"""


class _Played:
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
            self.episodes: list[EpisodeSummary] = run_episodes(
                lambda: ToolEnv(FAMILY, tasks=source, sandbox=sandbox),
                make_policy(name, seed=seed),
                jobs,
                envs=envs,
                out=self,
                progress=lambda _: advance(),
            )
        self.summary: Summary = summarise(self.episodes, sandbox=sandbox, replay="off")

    def write(self, trajectory: Trajectory, timings: Mapping[str, Any] | None = None) -> int:
        """Keep a trajectory, as a ``RunWriter`` would write it."""
        self.trajectories.append(trajectory)
        return len(self.trajectories) - 1

    def most_telling(self) -> Trajectory:
        """The episode with the most to see: an error that was repaired before a right answer."""
        return max(
            zip(self.episodes, self.trajectories, strict=True),
            key=lambda pair: (bool(pair[0].repaired) and pair[0].right, pair[0].turns),
        )[1]
