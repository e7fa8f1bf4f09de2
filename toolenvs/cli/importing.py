"""``toolenvs import``: trajectories that another program wrote, as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolenvs.cli.terminal import console, note, print_json

_SHOWN_PROBLEMS = 10


def import_trajectories(
    path: Annotated[Path, typer.Argument(help="A file of trajectories.")],
    out: Annotated[Path, typer.Option(help="Folder of the run to write; it must be new.")],
    layout: Annotated[
        str, typer.Option(help="The file's layout, see 'toolenvs list'; auto looks at it.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Read trajectories that another program wrote; what cannot be mapped is reported."""
    from toolenvs.errors import DataError, UsageError
    from toolenvs.importers import read_foreign
    from toolenvs.records import RunWriter

    if out.exists():
        raise UsageError(f"{out} exists already: name a new folder.")
    found = list(read_foreign(path, layout=layout))  # whole, so that a bad file leaves no folder
    if not found:
        raise DataError(f"{path}: there is no episode in it.")
    problems = [problem for one in found for problem in one.problems]
    used = str(found[0].trajectory.task.data["layout"])
    with RunWriter(out, {"imported": path.name, "layout": used}) as writer:
        for one in found:
            writer.write(one.trajectory)
    steps = sum(len(one.trajectory.steps) for one in found)
    if as_json:
        told = {"episodes": len(found), "steps": steps, "layout": used, "problems": problems}
        print_json({**told, "out": str(out)})
        return
    for problem in problems[:_SHOWN_PROBLEMS]:
        note(problem)
    if len(problems) > _SHOWN_PROBLEMS:
        note(f"... {len(problems) - _SHOWN_PROBLEMS} more; --json lists all")
    console().print(
        f"{len(found)} episodes with {steps} steps, layout {used}, in {out}; "
        f"{len(problems)} problems",
        markup=False,
        soft_wrap=True,
    )
