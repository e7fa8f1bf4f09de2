"""The container engine, Docker's or Podman's: the one package that imports ``docker``.

Its API serves life cycles only: images, and containers that start and end. A call inside a sandbox
never passes here. ``connect`` opens an ``Engine`` for a while; nothing is kept between two uses, so
that forks and threads have nothing to share.

Whatever goes wrong is a ``RuntimeFailure`` of kind ``no_engine``, ``image_missing`` or ``engine``,
and its message says what to do.
"""

from __future__ import annotations

import msgspec

from toolenvs.engine.address import addresses, unreachable
from toolenvs.engine.attachment import Attachment
from toolenvs.engine.client import Engine, Progress
from toolenvs.engine.faults import failures
from toolenvs.engine.owner import LABEL
from toolenvs.engine.records import (
    ContainerSpec,
    ContainerState,
    EngineReport,
    ImageFacts,
    Leftover,
)
from toolenvs.errors import RuntimeFailure

__all__ = [
    "HUB_PYTHON",
    "LABEL",
    "Attachment",
    "ContainerSpec",
    "ContainerState",
    "Engine",
    "EngineReport",
    "ImageFacts",
    "Leftover",
    "Progress",
    "connect",
    "leftovers",
    "probe",
    "reap",
]

HUB_PYTHON = "python:3.11-slim-bookworm"
"""The base image of the Python sandbox where Docker Hub answers."""


def connect(*, timeout_s: float = 3.0) -> Engine:
    """Open the first engine that answers.

    DOCKER_HOST is the only place looked at when it is set; else the command line's context, the
    usual sockets, and Podman's.

    Args:
        timeout_s: how long one address may take to answer.

    Raises:
        RuntimeFailure: ``no_engine``: none answers; the message says where it was sought.
    """
    from docker import DockerClient

    tried = []
    for options in addresses():
        where = str(options["base_url"])
        problem = unreachable(where)
        if not problem:
            try:
                with failures(""):
                    client = DockerClient(timeout=timeout_s, **options)
            except RuntimeFailure as failure:
                problem = f"no answer: {failure.__cause__}"
            else:
                return Engine(client, where)
        tried.append(f"{where} ({problem})")
    hint = (
        " This user may not use the engine's socket: join the group docker or run as root."
        if "permission denied" in " ".join(tried)
        else ""
    )
    raise RuntimeFailure(
        "no_engine",
        f"No container engine answers at {', '.join(tried)}.{hint} Start one (Debian: apt install "
        'docker.io), or choose sandbox="local" (Linux, weaker isolation).',
    )


def probe(*, hub: bool = True, timeout_s: float = 3.0) -> EngineReport:
    """Look for an engine, quickly, and say what was found; never raises.

    Args:
        hub: also ask whether Docker Hub can be reached by it.
        timeout_s: limit for each question.
    """
    try:
        with connect(timeout_s=timeout_s) as engine:
            reached = engine.can_pull(HUB_PYTHON, timeout_s=timeout_s) if hub else None
            report = engine.report(hub=reached)
    except RuntimeFailure as failure:
        return EngineReport(found=False, advice=str(failure))
    if report.hub is False:
        advice = (
            "Docker Hub does not answer: `toolenvs build` makes the base image from Debian's "
            "packages (as root, with debootstrap), or give it a base image of yours."
        )
        return msgspec.structs.replace(report, advice=advice)
    return report


def leftovers() -> list[Leftover]:
    """Return every container of this package; see ``Engine.leftovers``."""
    with connect() as engine:
        return engine.leftovers()


def reap(everything: bool = False) -> list[str]:
    """Remove the containers whose client is gone, and return their ids.

    Args:
        everything: remove also those whose client runs, or cannot be seen from here.
    """
    removed = []
    with connect() as engine:
        for item in engine.leftovers():
            if everything or item.owner_alive is False:
                engine.remove(item.id)
                removed.append(item.id)
    return removed
