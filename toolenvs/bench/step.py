"""What one tool call costs, by the way it is made; every answer is checked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toolenvs.bench.interleave import Progress, Timed, clocked, interleave
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, median_interval, paired_ratios, percentile
from toolenvs.bench.ways import (
    BURSTS,
    KEPT,
    PAYLOADS,
    Payload,
    Way,
    check_answer,
    make_sandbox,
    open_ways,
)
from toolenvs.errors import UnknownNameError
from toolenvs.protocols import Runtime


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way with one payload, over ``n`` rounds, in milliseconds a call; see ``BURSTS``."""

    way: str
    payload: str
    n: int
    p50_ms: float
    p95_ms: float
    least_ms: float


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_step`` found.

    ``ratios["print: docker_exec / session"]`` says how many times longer the first way takes than
    the second: median and interval of the ratios within each round.
    """

    rows: tuple[StepRow, ...]
    ratios: dict[str, Interval]
    setting: Setting


def bench_step(
    sandbox: str | Runtime = "docker",
    *,
    payloads: Sequence[str] = ("print", "sympy"),
    repeats: int = 50,
    warmup: int = 3,
    docker_run: bool = False,
    progress: Progress | None = None,
) -> StepReport:
    """Time every way with every payload, each in every one of ``repeats`` rounds.

    Args:
        sandbox: a runtime or its name, as for ``make_sandbox``.
        payloads: names of ``PAYLOADS``.
        repeats: rounds that count.
        warmup: rounds before them that do not.
        docker_run: also start a container for each call (docker only).
        progress: called at the end of each round.

    Raises:
        RuntimeFailure: The sandbox cannot be started, or a call gave a wrong answer.
        UsageError: A name is unknown, or a number makes no sense.
    """
    for name in payloads:
        if name not in PAYLOADS:
            raise UnknownNameError("a payload", name, PAYLOADS)
    runtime = make_sandbox(sandbox) if isinstance(sandbox, str) else sandbox
    setting = look_around(runtime.name)
    with open_ways(runtime, docker_run=docker_run) as ways:
        timed = {
            (name, payload): _timed(way, PAYLOADS[payload], BURSTS.get(name, 1))
            for payload in payloads
            for name, way in ways.items()
        }
        seconds = interleave(timed, repeats=repeats, warmup=warmup, progress=progress)
    return StepReport(
        rows=tuple(_row(way, payload, values) for (way, payload), values in seconds.items()),
        ratios={
            f"{payload}: {way} / {KEPT}": median_interval(
                paired_ratios(values, seconds[KEPT, payload])
            )
            for (way, payload), values in seconds.items()
            if way != KEPT
        },
        setting=setting,
    )


def _row(way: str, payload: str, seconds: Sequence[float]) -> StepRow:
    return StepRow(
        way=way,
        payload=payload,
        n=len(seconds),
        p50_ms=percentile(seconds, 50) * 1e3,
        p95_ms=percentile(seconds, 95) * 1e3,
        least_ms=min(seconds) * 1e3,
    )


def _timed(way: Way, payload: Payload, calls: int) -> Timed:
    def one_call() -> float:
        way.prepare()
        printed = ""

        def action() -> None:
            nonlocal printed
            printed = way.call(payload.code)

        took = clocked(action)
        check_answer(type(way).__name__, payload, printed)
        return took

    return lambda: percentile([one_call() for _ in range(calls)], 50)
