"""``toolenvs bench``: what a call costs, what a worker bears, what walls and searches do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from toolenvs.cli.tables import plain_table
from toolenvs.cli.terminal import console, print_json, progress_bar
from toolenvs.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from toolenvs.bench.statistics import Interval

bench_app = typer.Typer(
    help="Measure on this machine: what a call costs, what a worker bears, what walls and barriers "
    "cost, what a search finds.",
    no_args_is_help=True,
)

_Sandbox = Annotated[
    str,
    typer.Option(help="docker, docker-stream (the attached stream), or local (weaker isolation)."),
]
_PARTS = ("rows", "ratios", "setting")
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, no table.")]


@bench_app.command("step")
def step(
    family: Annotated[
        str, typer.Option(help="math_tir, or sql: a small SELECT beside the bare query.")
    ] = "math_tir",
    sandbox: _Sandbox = "docker",
    payload: Annotated[
        list[str] | None, typer.Option(help="print, sympy or numpy; may be given several times.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; each runs every way once.")] = 50,
    warmup: Annotated[int, typer.Option(min=0, help="Rounds before them, not counted.")] = 3,
    docker_run: Annotated[
        bool, typer.Option("--docker-run", help="Also start a container for each call (slow).")
    ] = False,
    as_json: _AsJson = False,
) -> None:
    """Time a kept session's step against a fresh interpreter, docker exec and the like."""
    if family == "sql":
        _step_sql(sandbox, repeats=repeats, warmup=warmup, as_json=as_json)
        return
    if family != "math_tir":
        raise UnknownNameError("a family with a bench of steps", family, ["math_tir", "sql"])
    from toolenvs.bench.step import bench_step

    with progress_bar("rounds", warmup + repeats) as progress:
        report = bench_step(
            sandbox,
            payloads=payload or ["print", "sympy"],
            repeats=repeats,
            warmup=warmup,
            docker_run=docker_run,
            progress=progress,
        )
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    _print_tables("One call", rows, report.ratios, report.setting)


def _step_sql(sandbox: str, *, repeats: int, warmup: int, as_json: bool) -> None:
    from toolenvs.bench.sql import bench_sql

    with progress_bar("rounds", warmup + repeats) as progress:
        report = bench_sql(sandbox, repeats=repeats, warmup=warmup, progress=progress)
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    _print_tables("One query", rows, report.ratios, report.setting)
    added = {name: msgspec.structs.asdict(value) for name, value in report.added_ms.items()}
    _print_table("Milliseconds added", [{"engine": name, **value} for name, value in added.items()])
    typer.echo(f"on one file at once: {_shown(report.at_once)}")
    _print_skipped(report.skipped)


@bench_app.command("load")
def load(
    sandbox: _Sandbox = "docker",
    sessions: Annotated[int, typer.Option(min=1, max=32, help="Sessions at once.")] = 32,
    repeats: Annotated[int, typer.Option(min=1, help="Workers started; rounds of calls.")] = 3,
    fresh: Annotated[int, typer.Option(min=1, help="Fresh sympy calls in all.")] = 200,
    as_json: _AsJson = False,
) -> None:
    """Measure starts, resets, memory, and many sessions at once."""
    from toolenvs.bench.load import bench_load

    with progress_bar("parts", 4) as progress:
        report = bench_load(
            sandbox, sessions=sessions, repeats=repeats, fresh_calls=fresh, progress=progress
        )
    if as_json:
        print_json(report)
        return
    _print_table("One worker", [msgspec.structs.asdict(row) for row in report.rows])
    typer.echo(f"fresh calls: {_shown(report.fresh)}")
    _print_notes(report.setting)
    _print_skipped(report.skipped)


@bench_app.command("isolation")
def isolation(
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; each runs every level once.")] = 30,
    warmup: Annotated[int, typer.Option(min=0, help="Rounds before them, not counted.")] = 3,
    as_json: _AsJson = False,
) -> None:
    """Time the same child behind more and more walls."""
    from toolenvs.bench.isolation import bench_isolation

    with progress_bar("rounds", warmup + repeats) as progress:
        report = bench_isolation(repeats=repeats, warmup=warmup, progress=progress)
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    _print_tables("Walls", rows, report.ratios, report.setting)
    _print_skipped(report.skipped)


@bench_app.command("replay")
def replay(
    entries: Annotated[int, typer.Option(help="Entries of the large cache.")] = 100_000,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; each runs every way once.")] = 50,
    warmup: Annotated[int, typer.Option(min=0, help="Rounds before them, not counted.")] = 5,
    as_json: _AsJson = False,
) -> None:
    """Time steps served from the cache, and look-ups in a small and a large one."""
    from toolenvs.bench.replay import bench_replay

    with progress_bar("rounds", warmup + repeats) as progress:
        report = bench_replay(entries=entries, repeats=repeats, warmup=warmup, progress=progress)
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    _print_tables("Replay", rows, report.ratios, report.setting)


@bench_app.command("stepping")
def stepping(
    envs: Annotated[int, typer.Option(min=1, help="Slots of a batch.")] = 32,
    episodes: Annotated[
        int | None, typer.Option(help="Episodes to play; as many as slots by default.")
    ] = None,
    sandbox: _Sandbox = "docker",
    tasks: Annotated[
        str | None, typer.Option(help="SOURCE:LOCATION; generated ones by default.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draws texts and latencies; 0 by default.")
    ] = None,
    median_s: Annotated[
        float | None,
        typer.Option(help="Median latency of the simulated model, seconds a turn; 0.1."),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of the latency's logarithm; 0.8.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; each runs every driver once.")] = 5,
    trace: Annotated[
        Path | None,
        typer.Option(help="Trace file: played if it is there, else drawn and written."),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Play the same episodes one at a time, in lock-step and without a barrier."""
    from toolenvs.bench.stepping import bench_stepping, keep_trace, make_trace
    from toolenvs.bench.trace import TraceHead

    options: dict[str, Any] = {
        "episodes": episodes,
        "tasks": tasks,
        "seed": seed,
        "median_s": median_s,
        "sigma": sigma,
    }
    asked = {name: value for name, value in options.items() if value is not None}
    if trace is not None and trace.exists():
        drawn = keep_trace(trace, asked)
    else:
        asked.setdefault("episodes", envs)
        asked.setdefault("tasks", f"generated:seed={seed or 0},n={asked['episodes']}")
        drawn = keep_trace(trace, asked) if trace else make_trace(TraceHead(**asked))
    with progress_bar("rounds", repeats) as progress:
        report = bench_stepping(
            drawn, envs=envs, sandbox=sandbox, repeats=repeats, progress=progress
        )
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    title = f"{report.played.episodes} episodes, {report.played.turns} turns, {envs} slots"
    _print_tables(title, rows, report.ratios, report.setting, report.bound, report.played)


@bench_app.command("retrieval")
def retrieval(
    tasks: Annotated[
        str, typer.Option(help="SOURCE:LOCATION of the family search; its own tasks by default.")
    ] = "",
    backend: Annotated[
        list[str] | None,
        typer.Option(help="bm25, dense, hybrid ...; may be given several times; these by default."),
    ] = None,
    passages: Annotated[
        int | None,
        typer.Option(min=1, help="Time an index of so many drawn passages, and ask no questions."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=2, help="Episodes at once, for --passages.")] = 32,
    repeats: Annotated[int, typer.Option(min=1, help="Steps of each, for --passages.")] = 30,
    as_json: _AsJson = False,
) -> None:
    """Count what search backends find, or time an index of a size."""
    if passages is not None:
        _searching(passages, episodes, repeats, backend or ["bm25"], as_json=as_json)
        return
    from toolenvs.bench.retrieval import BACKENDS, bench_retrieval

    asked = backend or list(BACKENDS)
    with progress_bar("backends", len(asked)) as progress:
        report = bench_retrieval(tasks, backend=asked, progress=progress)
    if as_json:
        print_json(report)
        return
    rows = [msgspec.to_builtins(row) for row in report.rows]
    if rows:
        _print_table(f"Supporting passages found among {report.passages}", rows)
    _print_notes(report.setting)
    _print_skipped(report.skipped)


def _searching(
    passages: int, episodes: int, repeats: int, backend: list[str], *, as_json: bool
) -> None:
    from toolenvs.bench.searching import bench_searching

    if len(backend) > 1:
        raise UsageError(f"--passages times one backend; {len(backend)} were given.")
    with progress_bar("parts", 3) as progress:
        report = bench_searching(
            passages, episodes=episodes, repeats=repeats, backend=backend[0], progress=progress
        )
    if as_json:
        print_json(report)
        return
    rows = [msgspec.structs.asdict(row) for row in report.rows]
    _print_table(f"A search step of {episodes} episodes", rows)
    whole = msgspec.to_builtins(report)
    facts = {name: whole[name] for name in report.__struct_fields__ if name not in _PARTS}
    typer.echo("; ".join(f"{name} {_shown(value)}" for name, value in facts.items()))
    _print_notes(report.setting)


def _print_tables(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    ratios: Mapping[str, Interval],
    *notes: msgspec.Struct,
) -> None:
    _print_table(title, rows)
    _print_table(
        "Ratios within a round",
        [{"ratio": name, **msgspec.structs.asdict(ratio)} for name, ratio in ratios.items()],
    )
    _print_notes(*notes)


def _print_skipped(skipped: Mapping[str, str]) -> None:
    for what, why in skipped.items():
        typer.echo(f"{what}: not measured: {why}", err=True)


def _print_notes(*notes: msgspec.Struct) -> None:
    for note in notes:
        plain = msgspec.to_builtins(note).items()
        typer.echo("; ".join(f"{name} {_shown(value)}" for name, value in plain if value != ""))


def _print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    cells = [[_shown(value) for value in row.values()] for row in rows]
    console().print(plain_table(title, list(rows[0]), cells))


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_shown(item)}" for name, item in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)
