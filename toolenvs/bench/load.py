"""What a worker bears: starts, resets, memory, and many sessions at once; answers are checked."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs import engine
from toolenvs.bench.forking import can_fork, fork_eight
from toolenvs.bench.interleave import Progress, clocked
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import percentile
from toolenvs.bench.ways import PAYLOADS, EnvStep, Payload, check_answer, make_sandbox
from toolenvs.drivers import Loop, run
from toolenvs.errors import UsageError
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime, Sandbox, Worker

_SETTLE_S = 0.15  # for a spare child to be forked and warmed on a busy machine
_CALLS = {"print": 200, "numpy": 100, "sympy": 10}  # of each session in one round


class LoadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measure over ``n`` rounds: its median, smallest and largest value."""

    measure: str
    unit: str
    n: int
    p50: float
    least: float
    most: float


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_load`` found.

    Attributes:
        rows: the measures; ``docs/benchmarks.md`` explains each.
        fresh: of the fresh calls at once: how many ended in each way, ``"right"`` for all is good.
        skipped: what could not be measured here, and why.
        setting: where.
    """

    rows: tuple[LoadRow, ...]
    fresh: dict[str, int]
    skipped: dict[str, str]
    setting: Setting


def bench_load(
    sandbox: str | Runtime = "docker",
    *,
    sessions: int = 32,
    repeats: int = 3,
    fresh_calls: int = 200,
    progress: Progress | None = None,
) -> LoadReport:
    """Measure starts, resets, memory, throughput and fresh calls, one after the other.

    Args:
        sandbox: a runtime or its name, as for ``make_sandbox``.
        sessions: sessions at once; a worker must have room for them.
        repeats: workers started, and rounds of throughput; resets are ten times as many.
        fresh_calls: fresh sympy calls, as many at once as ``sessions``.
        progress: called four times.

    Raises:
        RuntimeFailure: The sandbox cannot be started, or a call gave a wrong answer.
        UsageError: A number makes no sense.
    """
    if sessions < 1 or repeats < 1 or fresh_calls < 1:
        raise UsageError("sessions, repeats and fresh_calls are at least 1.")
    runtime = make_sandbox(sandbox) if isinstance(sandbox, str) else sandbox
    setting = look_around(runtime.name)
    tick = progress or (lambda: None)
    runtime.fingerprint()  # which builds the image where there is none
    rows = [_row("cold_worker", "s", [_cold(runtime) for _ in range(repeats)])]
    tick()
    with _worker(runtime) as (worker, _):
        rows += _resets(worker, 10 * repeats)
    with contextlib.closing(SandboxPool(runtime)) as pool:
        rows += _env_resets(pool, 10 * repeats)
    tick()
    skipped: dict[str, str] = {}
    rows += _forks(runtime, 3 * repeats, skipped)
    with _worker(runtime) as (worker, roots):
        rows += _many(worker, roots, sessions, repeats, skipped)
    tick()
    with contextlib.closing(SandboxPool(runtime, lease_timeout_s=600.0)) as pool:
        fresh, rate = _fresh(pool, sessions, fresh_calls)
    rows.append(_row("fresh_sympy", "calls/s", [rate]))
    tick()
    return LoadReport(rows=tuple(rows), fresh=fresh, skipped=skipped, setting=setting)


def _row(measure: str, unit: str, values: list[float]) -> LoadRow:
    return LoadRow(
        measure=measure,
        unit=unit,
        n=len(values),
        p50=percentile(values, 50),
        least=min(values),
        most=max(values),
    )


@contextlib.contextmanager
def _worker(runtime: Runtime) -> Iterator[tuple[Worker, list[int]]]:
    """A worker, and the first of its processes."""
    before = _roots(runtime.name)
    worker = run(runtime.start())
    try:
        yield worker, [pid for pid in _roots(runtime.name) if pid not in before]
    finally:
        run(worker.stop())


def _cold(runtime: Runtime) -> float:
    """Until a new worker has answered its first call."""
    worker: list[Worker] = []

    def start() -> None:
        worker.append(run(runtime.start()))
        _call(run(worker[0].spawn(seed=0, files={})), PAYLOADS["print"])

    took = clocked(start)
    run(worker[0].stop())
    return took


def _call(sandbox: Sandbox, payload: Payload) -> None:
    check_answer("load", payload, run(sandbox.execute(payload.code)).stdout)


def _resets(worker: Worker, n: int) -> list[LoadRow]:
    """A new sandbox where a spare is ready, and, right after it, where none can be yet."""
    spare: list[float] = []
    none: list[float] = []
    for _ in range(n):
        time.sleep(_SETTLE_S)
        born: list[Sandbox] = []
        for seconds in (spare, none):
            seconds.append(clocked(lambda: born.append(run(worker.spawn(seed=0, files={})))))  # noqa: B023 - called at once
        for sandbox in born:
            _call(sandbox, PAYLOADS["print"])
            run(sandbox.stop())
    return [
        _row("spawn_with_spare", "ms", [s * 1e3 for s in spare]),
        _row("spawn_without_spare", "ms", [s * 1e3 for s in none]),
    ]


def _env_resets(pool: SandboxPool, n: int) -> list[LoadRow]:
    """``env.reset`` after an episode with a session, and the first call of the next."""
    way = EnvStep("python_session", pool)
    way.prepare()
    resets: list[float] = []
    firsts: list[float] = []
    for _ in range(n):
        resets.append(clocked(way.reset))
        time.sleep(_SETTLE_S)
        firsts.append(clocked(lambda: way.call(PAYLOADS["print"].code)))
    way.close()
    return [
        _row("env_reset", "ms", [s * 1e3 for s in resets]),
        _row("env_first_step", "ms", [s * 1e3 for s in firsts]),
    ]


def _forks(runtime: Runtime, n: int, skipped: dict[str, str]) -> list[LoadRow]:
    """``fork(8)`` of an episode with 50 MB, and what each branch takes."""
    before = _roots(runtime.name)
    with contextlib.closing(SandboxPool(runtime, max_workers=1)) as pool:
        if not can_fork(pool):
            skipped["fork"] = "the sandbox cannot be forked: branches catch up instead."
            return []
        meter = _meter([pid for pid in _roots(runtime.name) if pid not in before])
        seconds, added = fork_eight(pool, n, meter or (lambda: 0.0))
    rows = [_row("fork_8", "ms", [s * 1e3 for s in seconds])]
    return [*rows, _row("branch", "MB", added)] if meter else rows


# -- many at once ---------------------------------


def _many(
    worker: Worker, roots: list[int], sessions: int, repeats: int, skipped: dict[str, str]
) -> list[LoadRow]:
    """Memory of idle sessions and of sessions that have used sympy; then calls a second."""
    time.sleep(_SETTLE_S)
    meter = _meter(roots)
    if meter is None:
        skipped["memory"] = "the processes of the sandboxes cannot be read: that takes root."
    empty = meter() if meter else 0.0
    kept: list[Sandbox] = []
    _drive([worker.spawn(seed=n, files={}) for n in range(sessions)], kept.append)
    time.sleep(2 * _SETTLE_S)
    rows = []
    if meter:
        rows.append(_row("worker_memory", "MB", [empty]))
        rows.append(_row("idle_episode", "MB", [(meter() - empty) / sessions]))
        _burst(kept, PAYLOADS["sympy"], 1)
        rows.append(_row("episode_after_sympy", "MB", [(meter() - empty) / sessions]))
    for name, calls in _CALLS.items():
        _burst(kept, PAYLOADS[name], 1)
        rates = [_burst(kept, PAYLOADS[name], calls) for _ in range(repeats)]
        rows.append(_row(f"{name}_at_{sessions}", "calls/s", rates))
    return rows


def _burst(kept: list[Sandbox], payload: Payload, calls: int) -> float:
    """Every session makes so many calls, all at once from this thread; calls a second."""

    async def play(sandbox: Sandbox) -> None:
        for _ in range(calls):
            check_answer("load", payload, (await sandbox.execute(payload.code)).stdout)

    took = clocked(lambda: _drive([play(sandbox) for sandbox in kept], lambda _: None))
    return calls * len(kept) / took


def _drive(coroutines: list[Coroutine[Any, Any, Any]], done: Callable[[Any], object]) -> None:
    """Run them under one loop to their end; the first error is raised."""
    loop = Loop()
    left = len(coroutines)
    errors: list[BaseException] = []

    def finish(value: Any, error: BaseException | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            errors.append(error)
        else:
            done(value)

    with contextlib.closing(loop):
        for coroutine in coroutines:
            loop.spawn(coroutine, finish)
        while left and not errors:
            loop.pump()
    if errors:
        raise errors[0]


def _fresh(pool: SandboxPool, at_once: int, calls: int) -> tuple[dict[str, int], float]:
    """Fresh sandboxes, each for one sympy call, ``at_once`` at a time: how they ended, calls/s."""
    payload = PAYLOADS["sympy"]
    ended: dict[str, int] = {}
    left = iter(range(calls))

    async def serve() -> None:
        for number in left:
            sandbox = await pool.lease(seed=number, files={})
            try:
                result = await sandbox.execute(payload.code)
            finally:
                await pool.release(sandbox)
            right = result.status == "ok" and result.stdout.strip() == payload.expected
            kind = "right" if right else f"wrong: {result.status}"
            ended[kind] = ended.get(kind, 0) + 1

    run(pool.warm())
    took = clocked(lambda: _drive([serve() for _ in range(at_once)], lambda _: None))
    return ended, calls / took


# -- memory ---------------------------------


def _meter(roots: list[int]) -> Callable[[], float] | None:
    """A function that tells how many MB a worker's processes take; None where it cannot be told.

    Counted is what each has alone and its share of what several have (PSS), without mapped files:
    those are in the page cache once, for all workers.
    """
    try:
        readable = [_pss(pid) for pid in roots]
    except OSError:
        readable = []
    if not any(readable):
        return None
    return lambda: sum(_pss(pid) for pid in _family(roots)) / 1e6


def _roots(sandbox: str) -> list[int]:
    """The first processes of all workers of this process: its containers', or its children."""
    if sandbox == "docker":
        with engine.connect() as api:
            return [api.state(item.id).pid for item in api.leftovers() if item.mine]
    return [pid for pid, parent in _parents().items() if parent == os.getpid()]


def _parents() -> dict[int, int]:
    """The parent of every process that can be seen."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1])
    return found


def _family(roots: list[int]) -> list[int]:
    parents = _parents()
    family = [pid for pid in roots if pid in parents]
    for pid in family:  # grows while it is walked
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0.0
    fields = (line.split() for line in lines[1:])
    return sum(float(f[1]) * 1024 for f in fields if f[0] in ("Pss_Anon:", "Pss_Shmem:"))
