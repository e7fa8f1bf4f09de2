"""Which sandbox a command uses, made ready before the first episode, and whether one works."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec

from toolenvs.errors import RuntimeFailure, ToolenvsError, UnknownNameError

Say = Callable[[str], None]


class Choice(msgspec.Struct, frozen=True):
    """A sandbox by name and, in one line, which it is and why."""

    name: str
    why: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a kind of sandbox works here: one was started and computed 1+1.

    Attributes:
        works: True when the answer was 2.
        detail: what went wrong, ``""`` if nothing.
        start_ms: milliseconds to start a worker and a sandbox in it.
        call_ms: milliseconds of the call.
        holds: what keeps its sandboxes apart, ``""`` where its worker does not tell.
    """

    works: bool
    detail: str = ""
    start_ms: float = 0.0
    call_ms: float = 0.0
    holds: str = ""


def check_name(asked: str) -> None:
    """Refuse a name that is no sandbox's.

    Raises:
        UnknownNameError: The message names the nearest.
    """
    from toolenvs import runtimes

    if asked not in ("auto", *runtimes.names()):
        raise UnknownNameError("a sandbox", asked, ["auto", *runtimes.names()])


def sandbox_for(family: str, asked: str, *, say: Say) -> str:
    """The name of the sandbox for a family's tasks, its image ready; see ``choose_sandbox``.

    Where the family runs nothing in a sandbox it stays as asked.
    """
    from toolenvs.families import IMAGES

    if family in IMAGES:
        return choose_sandbox(asked, say=say, image=IMAGES[family]).name
    check_name(asked)
    return asked


def choose_sandbox(asked: str, *, say: Say, image: str = "python") -> Choice:
    """Settle on a sandbox, building the image that it needs.

    Args:
        asked: ``"auto"`` (docker where an engine answers and the image can be had, else local) or
            the name of a runtime.
        say: told what takes long.
        image: name of the image that the tasks need, ``"python"`` or ``"sql"``.

    Raises:
        UnknownNameError: No sandbox has that name.
        RuntimeFailure: The sandbox asked for by name cannot be had.
    """
    from toolenvs import engine

    check_name(asked)
    if asked == "docker":
        return Choice("docker", f"docker, as asked: {_ready_image(image, say)}")
    if asked != "auto":
        return Choice(asked, f"{asked}, as asked")
    found = engine.probe(hub=False)
    if not found.found:
        return Choice("local", f"local (Linux namespaces, weaker isolation): {_no_engine()}")
    try:
        ready = _ready_image(image, say)
    except RuntimeFailure as failure:
        say(str(failure))
        return Choice("local", "local (Linux namespaces, weaker isolation): no image, see above")
    return Choice("docker", f"docker ({found.version} answers), {ready}")


def try_sandbox(name: str) -> Trial:
    """Start one sandbox of a kind and run ``1+1`` in it; never raises for what is missing."""
    from toolenvs import runtimes
    from toolenvs.drivers import run
    from toolenvs.runtimes._levels import what_holds

    began = time.perf_counter()
    try:
        worker = run(runtimes.make(name).start())
        try:
            sandbox = run(worker.spawn(seed=0, files={}))
            started = time.perf_counter()
            result = run(sandbox.execute("print(1+1)"))
            ended = time.perf_counter()
            run(sandbox.stop())
        finally:
            run(worker.stop())
    except (ToolenvsError, OSError, ImportError) as fault:
        return Trial(works=False, detail=str(fault))
    works = result.status == "ok" and result.stdout.strip() == "2"
    return Trial(
        works=works,
        detail="" if works else f"1+1 ended as {result.status!r}: {result.stdout!r}",
        start_ms=1000.0 * (started - began),
        call_ms=1000.0 * (ended - started),
        holds=what_holds(getattr(worker, "hello", {})),
    )


def _no_engine() -> str:
    host = os.environ.get("DOCKER_HOST")
    if host:
        return f"no container engine answers at DOCKER_HOST={host}"
    return "no container engine answers at the usual places, and DOCKER_HOST is not set"


def _ready_image(name: str, say: Say) -> str:
    from toolenvs.images import ensure_image

    image = ensure_image(name, progress=say)
    return f"image {image.reference}" + (" (built just now)" if image.built else "")
