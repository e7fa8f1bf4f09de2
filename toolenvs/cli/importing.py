"""``toolenvs import``: trajectories that another program wrote, as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.terminal import console, note, print_json

_SHOWN_PROBLEMS = 10


def import_trajectories(
    path: Annotated[Path, typer.Argument(help="A file of trajectories.")],
    out: Annotated[Path, typer.Option(help="Folder of the run to write; it must be new.")],
    layout: Annotated[
        str, typer.Option(help="The file's layout, see 'toolenvs list'; auto looks at each row.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Read trajectories that another program wrote; what cannot be mapped is reported.

    Exit code 1 when a row holds no episode: the others are written, and it is named.
    """
    from toolenvs.errors import UsageError
    from toolenvs.importers import Problem, read_foreign, summed
    from toolenvs.records import RunWriter

    if out.exists():
        raise UsageError(f"{out} exists already: name a new folder.")
    refused: list[Problem] = []
    # Whole, so that a file without an episode leaves no folder.
    found = list(read_foreign(path, layout=layout, refused=refused.append))
    problems = summed(problem for one in found for problem in one.problems)
    layouts = ", ".join(dict.fromkeys(one.layout for one in found))
    with RunWriter(out, {"imported": path.name, "layout": layouts}) as writer:
        for one in found:
            writer.write(one.trajectory)
    steps = sum(len(one.trajectory.steps) for one in found)
    if as_json:
        told = {"episodes": len(found), "steps": steps, "layout": layouts, "problems": problems}
        print_json({**told, "refused": [str(row) for row in refused], "out": str(out)})
    else:
        _tell("no episode: ", [str(row) for row in refused])
        _tell("", problems)
        console().print(
            f"{len(found)} episodes with {steps} steps, layout {layouts}, in {out}; "
            f"{len(problems)} kinds of problems, {len(refused)} rows without an episode",
            markup=False,
            soft_wrap=True,
        )
    if refused:
        raise typer.Exit(FAILED)


def _tell(what: str, lines: list[str]) -> None:
    for line in lines[:_SHOWN_PROBLEMS]:
        note(f"{what}{line}")
    if len(lines) > _SHOWN_PROBLEMS:
        note(f"... {len(lines) - _SHOWN_PROBLEMS} more; --json lists all")
