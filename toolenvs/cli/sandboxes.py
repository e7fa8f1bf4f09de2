"""Which sandbox a command uses, made ready before the first episode, and whether one works."""

from __future__ import annotations

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
    """

    works: bool
    detail: str = ""
    start_ms: float = 0.0
    call_ms: float = 0.0


def check_name(asked: str) -> None:
    """Refuse a name that is no sandbox's.

    Raises:
        UnknownNameError: The message names the nearest.
    """
    from toolenvs import runtimes

    if asked not in ("auto", *runtimes.names()):
        raise UnknownNameError("a sandbox", asked, ["auto", *runtimes.names()])


def choose_sandbox(asked: str, *, say: Say) -> Choice:
    """Settle on a sandbox, building the image that it needs.

    Args:
        asked: ``"auto"`` (docker where an engine answers and the image can be had, else local) or
            the name of a runtime.
        say: told what takes long.

    Raises:
        UnknownNameError: No sandbox has that name.
        RuntimeFailure: The sandbox asked for by name cannot be had.
    """
    from toolenvs import engine

    check_name(asked)
    if asked == "docker":
        return Choice("docker", f"docker, as asked: {_ready_image(say)}")
    if asked != "auto":
        return Choice(asked, f"{asked}, as asked")
    found = engine.probe(hub=False)
    if not found.found:
        return Choice("local", "local (Linux namespaces, weaker isolation): no container engine")
    try:
        image = _ready_image(say)
    except RuntimeFailure as failure:
        say(str(failure))
        return Choice("local", "local (Linux namespaces, weaker isolation): no image, see above")
    return Choice("docker", f"docker ({found.version} answers), {image}")


def try_sandbox(name: str) -> Trial:
    """Start one sandbox of a kind and run ``1+1`` in it; never raises for what is missing."""
    from toolenvs import runtimes
    from toolenvs.drivers import run
    from toolenvs.pool import SandboxPool

    began = time.perf_counter()
    try:
        pool = SandboxPool(runtimes.make(name), max_workers=1)
        try:
            sandbox = run(pool.lease(seed=0, files={}))
            started = time.perf_counter()
            result = run(sandbox.execute("print(1+1)"))
            ended = time.perf_counter()
            run(pool.release(sandbox))
        finally:
            pool.close()
    except (ToolenvsError, OSError, ImportError) as fault:
        return Trial(works=False, detail=str(fault))
    works = result.status == "ok" and result.stdout.strip() == "2"
    return Trial(
        works=works,
        detail="" if works else f"1+1 ended as {result.status!r}: {result.stdout!r}",
        start_ms=1000.0 * (started - began),
        call_ms=1000.0 * (ended - started),
    )


def _ready_image(say: Say) -> str:
    from toolenvs.images import ensure_image

    image = ensure_image("python", progress=say)
    return f"image {image.reference}" + (" (built just now)" if image.built else "")
