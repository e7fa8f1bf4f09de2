"""``toolenvs cache``: what a replay cache holds, and moving it about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.tables import plain_table
from toolenvs.cli.terminal import console, note, print_json
from toolenvs.errors import UsageError

cache_app = typer.Typer(help="Look after a replay cache.", no_args_is_help=True)

_Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql://USER@HOST/NAME.")]
_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
_SHOWN_LINES = 20
_LARGEST = 2**63  # what a database counts to
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache_app.command("stats")
def stats(url: _Url, as_json: _AsJson = False) -> None:
    """Count what the cache holds."""
    from toolenvs.cache import ReplayCache

    with ReplayCache(url, create=False) as cache:
        found = cache.stats()
    if as_json:
        print_json(found)
        return
    cells = [[name, _shown(name, value)] for name, value in msgspec.structs.asdict(found).items()]
    console().print(plain_table(url, ["what", "value"], cells))


@cache_app.command("prune")
def prune(
    url: _Url,
    max_age: Annotated[
        str, typer.Option(help="Delete what was recorded longer ago: 30d, 12h, 90s.")
    ] = "",
    max_size: Annotated[
        str, typer.Option(help="Delete the oldest until the results fit: 500M, 2G.")
    ] = "",
    as_json: _AsJson = False,
) -> None:
    """Delete old results."""
    from toolenvs.cache import ReplayCache

    if not max_age and not max_size:
        raise UsageError("say what to delete: --max-age 30d, --max-size 2G, or both.")
    with ReplayCache(url, create=False) as cache:
        gone = cache.prune(
            max_age_s=_amount(max_age, "smhd") if max_age else None,
            max_bytes=int(_amount(max_size, "KMG")) if max_size else None,
        )
        left = cache.stats().entries
    if as_json:
        print_json({"deleted": gone, "entries": left})
    else:
        console().print(f"{gone} results deleted, {left} left")


@cache_app.command("export")
def export(
    url: _Url,
    file: Annotated[Path, typer.Argument(help="JSON Lines file to write.")],
    as_json: _AsJson = False,
) -> None:
    """Write every result into a file.

    Exit code 1: some could not be read; they are named, and the others are written.
    """
    from toolenvs.cache import ReplayCache

    with ReplayCache(url, create=False) as cache:
        wrote = cache.export_to(file)
    if as_json:
        print_json({"entries": wrote.entries, "damaged": wrote.damaged, "file": str(file)})
    else:
        console().print(f"{wrote.entries} results written to {file}", markup=False)
    _name_damaged(wrote.damaged, "export")


@cache_app.command("import")
def import_(
    url: _Url,
    file: Annotated[Path, typer.Argument(help="JSON Lines file that export wrote.")],
    as_json: _AsJson = False,
) -> None:
    """Add the results of a file; those that are there already stay.

    Exit code 1: some lines could not be read; they are named, and the others are added.
    """
    from toolenvs.cache import ReplayCache

    with ReplayCache(url) as cache:
        read = cache.import_from(file)
        entries = cache.stats().entries
    if as_json:
        print_json({"read": read.entries, "damaged": read.damaged, "entries": entries})
    else:
        console().print(f"{read.entries} results read, {entries} in the cache now")
    _name_damaged(read.damaged, str(file))


def _name_damaged(damaged: Sequence[str], where: str) -> None:
    """Name what could not be read, the first of many; then the exit code is 1."""
    for line in damaged[:_SHOWN_LINES]:
        note(line)
    if len(damaged) > _SHOWN_LINES:
        note(f"{where}: {len(damaged) - _SHOWN_LINES} more could not be read.")
    if damaged:
        raise typer.Exit(FAILED)


def _amount(text: str, units: str) -> float:
    number, unit = (text[:-1], text[-1:]) if text[-1:] in tuple(units) else (text, "")
    try:
        amount = float(number) * _UNITS.get(unit, 1)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < _LARGEST:
        raise UsageError(
            f"{text!r} is no amount: a number of at least 0 and below 2**63, with "
            f"{', '.join(units)} after it if you like."
        )
    return amount


def _shown(name: str, value: object) -> str:
    if name in ("oldest", "newest") and isinstance(value, float) and value:
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
