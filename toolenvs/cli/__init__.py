"""The command line: ``toolenvs demo | list | rollout | replay | build | doctor | ...``.

Exit codes: 0 done, 1 the check failed, 2 a usage error, 130 interrupted; a fault is one line on
stderr, and no traceback unless TOOLENVS_TRACEBACK=1. With ``--json`` stdout holds one JSON object
and nothing else. Whatever is heavy is imported by the command that needs it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from toolenvs.cli.bench import bench_app
from toolenvs.cli.build import build
from toolenvs.cli.cache import cache_app
from toolenvs.cli.check import check_app
from toolenvs.cli.demo import demo
from toolenvs.cli.doctor import doctor
from toolenvs.cli.faults import OneLineFaults
from toolenvs.cli.importing import import_trajectories
from toolenvs.cli.listing import list_plugins
from toolenvs.cli.replay import replay, rescore
from toolenvs.cli.rollout import rollout
from toolenvs.cli.serve import serve_app
from toolenvs.cli.showing import export, show
from toolenvs.cli.terminal import send_logs_to_stderr

app = typer.Typer(
    name="toolenvs",
    cls=OneLineFaults,
    help="Gymnasium environments for training tool-using language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"toolenvs {version('toolenvs')}")
        raise typer.Exit


@app.callback()
def prepare(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Gymnasium environments for training tool-using language models."""
    send_logs_to_stderr()


app.command()(demo)
app.command("list")(list_plugins)
app.command()(rollout)
app.command()(replay)
app.command()(rescore)
app.command()(show)
app.command()(export)
app.command("import")(import_trajectories)
app.command()(build)
app.command()(doctor)
app.add_typer(cache_app, name="cache")
app.add_typer(bench_app, name="bench")
app.add_typer(check_app, name="check")
app.add_typer(serve_app, name="serve")


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="toolenvs")
