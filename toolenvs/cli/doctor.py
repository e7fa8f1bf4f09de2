"""``toolenvs doctor``: what works on this machine, and what an ended client left behind."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.sandboxes import Trial, try_sandbox
from toolenvs.cli.terminal import console, print_json
from toolenvs.errors import RuntimeFailure

if TYPE_CHECKING:
    from toolenvs.engine import EngineReport, Leftover


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        toolenvs, python, system: versions.
        engine: what answers as a container engine.
        image: reference of each sandbox image by its name, ``""`` if it is not built.
        docker: whether a sandbox of the kind works; None when it was not tried.
        local: likewise.
        leftovers: containers of this package that exist now.
        reaped: ids of those removed.
        outdated: images of this package whose content is no longer the present one.
    """

    toolenvs: str
    python: str
    system: str
    engine: Any
    image: dict[str, str]
    docker: Trial | None
    local: Trial
    leftovers: list[Any]
    reaped: list[str]
    outdated: int


def doctor(
    reap: Annotated[
        bool, typer.Option("--reap", help="Remove containers whose client is gone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what works here; exit code 1 when no sandbox does."""
    found = diagnose(reap=reap)
    if as_json:
        print_json(found)
    else:
        from toolenvs.cli.tables import plain_table

        title = f"toolenvs {found.toolenvs}, Python {found.python}, {found.system}"
        console().print(plain_table(title, ("what", "state", "detail"), _rows(found)))
    if not found.local.works and not (found.docker and found.docker.works):
        typer.echo("toolenvs: no sandbox works here: see the table for what to do.", err=True)
        raise typer.Exit(FAILED)


def diagnose(*, reap: bool) -> Diagnosis:
    """Look at everything; what is missing is told, not raised."""
    from toolenvs import engine

    report = engine.probe()
    image = _images() if report.found else {}
    ready = bool(image.get("python"))
    reaped: list[str] = []
    leftovers: list[Leftover] = []
    if report.found:
        reaped = engine.reap() if reap else []
        leftovers = engine.leftovers()
    return Diagnosis(
        toolenvs=version("toolenvs"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        engine=report,
        image=image,
        docker=try_sandbox("docker") if ready else None,
        local=try_sandbox("local"),
        leftovers=leftovers,
        reaped=reaped,
        outdated=_outdated() if report.found else 0,
    )


def _images() -> dict[str, str]:
    from toolenvs import images

    try:
        found = {name: images.find_image(name) for name in images.names()}
    except RuntimeFailure:
        return {}
    return {name: image.reference if image else "" for name, image in found.items()}


def _outdated() -> int:
    from toolenvs import images

    try:
        return sum(len(images.outdated_images(name)) for name in images.names())
    except RuntimeFailure:
        return 0


def _rows(found: Diagnosis) -> list[tuple[str, str, str]]:
    report: EngineReport = found.engine
    rows = [("engine", _yes(report.found), f"{report.version} {report.where}".strip())]
    if report.found:
        rows += [
            ("Docker Hub", _yes(bool(report.hub)), "answers" if report.hub else report.advice),
            *(
                (f"image {name}", _yes(bool(reference)), reference or f"run: toolenvs build {name}")
                for name, reference in found.image.items()
            ),
        ]
    else:
        rows[0] = ("engine", "no", report.advice)
    if found.docker is not None:
        rows += _told("docker", found.docker)
    rows += _told("local", found.local)
    if report.found:
        dead = sum(item.owner_alive is False for item in found.leftovers)
        detail = f"{len(found.leftovers)} containers, {dead} of clients that are gone"
        detail += f"; {len(found.reaped)} removed" if found.reaped else ""
        rows.append(("leftovers", "none" if not dead else "some", detail))
        if dead:
            rows.append(("", "", "remove them: toolenvs doctor --reap"))
        if found.outdated:
            rows += [
                (
                    "old images",
                    str(found.outdated),
                    "made of an earlier content, not used any more",
                ),
                *(("", "", f"remove them: {command}") for command in _prune()),
            ]
    return rows


def _prune() -> list[str]:
    """The engine's commands that remove every image of ours but those of the present content."""
    from toolenvs.images import context_hash, names

    return [
        f"docker image prune --all --filter label=toolenvs.image={name} "
        f"--filter label!=toolenvs.context={context_hash(name)}"
        for name in names()
    ]


def _yes(works: bool) -> str:
    return "yes" if works else "no"


def _told(name: str, trial: Trial) -> list[tuple[str, str, str]]:
    speed = f"1+1 is 2; started in {trial.start_ms:.0f} ms, called in {trial.call_ms:.2f} ms"
    detail = speed if trial.works else trial.detail
    rows = [(f"{name} sandbox", _yes(trial.works), detail)]
    return [*rows, ("", "", trial.holds)] if trial.holds else rows
