"""What isolation costs: the same child behind more and more walls; see ``bare`` for the first."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs import engine
from toolenvs.bench import bare
from toolenvs.bench.interleave import Progress, Timed, clocked, interleave
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, median_interval, paired_ratios, percentile
from toolenvs.bench.ways import PAYLOADS, check_answer
from toolenvs.channel import ChannelWorker, open_worker, slots
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import Sandbox, Worker
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.local import Local
from toolenvs.types import Limits

_CAPACITY = 4
_CALLS = 20  # of a kept session in each round; their median counts


class IsolationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One level, in milliseconds.

    ``spawn`` is from asking for a sandbox to its being seeded, with no spare at hand; ``fresh`` is
    that, one ``print``, and letting go; ``session`` a ``print`` in a kept one.
    """

    level: str
    n: int
    spawn_p50_ms: float
    spawn_least_ms: float
    fresh_p50_ms: float
    session_p50_ms: float


class IsolationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_isolation`` found; ``skipped`` tells for each level left out why."""

    rows: tuple[IsolationRow, ...]
    ratios: dict[str, Interval]
    skipped: dict[str, str]
    setting: Setting


def bench_isolation(
    *, repeats: int = 30, warmup: int = 3, progress: Progress | None = None
) -> IsolationReport:
    """Time a spawn, a fresh call and a kept session's call behind each set of walls, in turn.

    Raises:
        RuntimeFailure: Not even a fork can be measured here, or a call gave a wrong answer.
    """
    setting = look_around("docker")
    skipped: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for level, start in _levels(stack).items():
            try:
                workers[level] = start()
            except RuntimeFailure as failure:
                skipped[level] = str(failure).splitlines()[-1]
        if not workers:
            raise RuntimeFailure("no_sandbox", "; ".join(skipped.values()))
        timed: dict[tuple[str, str], Timed] = {}
        for level, worker in workers.items():
            stack.callback(lambda worker=worker: run(worker.stop()))  # type: ignore[misc]
            timed |= {(level, what): action for what, action in _actions(worker).items()}
        seconds = interleave(timed, repeats=repeats, warmup=warmup, progress=progress)
    first = next(iter(workers))
    return IsolationReport(
        rows=tuple(
            IsolationRow(
                level=level,
                n=repeats,
                spawn_least_ms=min(seconds[level, "spawn"]) * 1e3,
                **{
                    f"{what}_p50_ms": percentile(seconds[level, what], 50) * 1e3
                    for what in ("spawn", "fresh", "session")
                },
            )
            for level in workers
        ),
        ratios={
            f"spawn: {level} / {first}": median_interval(
                paired_ratios(seconds[level, "spawn"], seconds[first, "spawn"])
            )
            for level in workers
            if level != first
        },
        skipped=skipped,
        setting=setting,
    )


def _levels(stack: contextlib.ExitStack) -> dict[str, Callable[[], Worker]]:
    """How to start a worker of each level, the fewest walls first."""
    docker: dict[str, Any] = {"spares": 0, "sandboxes_per_worker": _CAPACITY, "level": "U"}
    return {
        **{
            level: lambda level=level: stack.enter_context(_bare(level))  # type: ignore[misc]
            for level in bare.LEVELS
        },
        "namespaces": lambda: run(Local(capacity=_CAPACITY, spares=0).start()),
        "container": lambda: run(Docker(**docker).start()),
        "gvisor": lambda: _gvisor(docker),
    }


def _gvisor(options: dict[str, Any]) -> Worker:
    with engine.connect() as api:
        if "runsc" not in api.report().runtimes:
            raise RuntimeFailure("no_sandbox", "the engine has no runtime 'runsc'.")
    return run(Docker(oci_runtime="runsc", **options).start())


@contextlib.contextmanager
def _bare(level: str) -> Iterator[ChannelWorker]:
    if os.geteuid() != 0:
        raise RuntimeFailure("no_sandbox", "changing the user id needs root.")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with tempfile.TemporaryDirectory(prefix="toolenvs-bench-") as folder, theirs:
        Path(folder).chmod(0o711)
        number = slots(_CAPACITY, 0)
        with subprocess.Popen(
            [sys.executable, bare.__file__, level, str(theirs.fileno()), str(number), folder],
            pass_fds=[theirs.fileno()],
            env={"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        ):  # it ends with its control connection
            theirs.close()
            yield run(open_worker(ours, limits=Limits(), capacity=_CAPACITY, spares=0))


def _actions(worker: Worker) -> dict[str, Timed]:
    payload = PAYLOADS["print"]
    kept = run(worker.spawn(seed=0, files={}))

    def call(sandbox: Sandbox) -> None:
        check_answer("isolation", payload, run(sandbox.execute(payload.code)).stdout)

    def spawn() -> float:
        born: list[Sandbox] = []
        took = clocked(lambda: born.append(run(worker.spawn(seed=0, files={}))))
        run(born[0].stop())
        return took

    def fresh() -> None:
        sandbox = run(worker.spawn(seed=0, files={}))
        call(sandbox)
        run(sandbox.stop())

    def session() -> float:
        return percentile([clocked(lambda: call(kept)) for _ in range(_CALLS)], 50)

    return {"spawn": spawn, "fresh": lambda: clocked(fresh), "session": session}
