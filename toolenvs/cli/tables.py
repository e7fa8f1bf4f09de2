"""The tables that ``rollout`` and ``demo`` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from toolenvs.metrics import Estimate
    from toolenvs.summary import Summary


def summary_table(rollouts: Mapping[str, Summary], *, title: str) -> RenderableType:
    """One column for each rollout: success, reward by term, time, sandbox, behaviour.

    Numbers stand below each other so that the table fits any screen and any number of terms.

    Args:
        rollouts: summaries by who played.
        title: above the table.
    """
    table = _table()
    table.add_column("mean over episodes")
    for who in rollouts:
        table.add_column(who, justify="right")
    every = list(rollouts.values())
    terms = list(dict.fromkeys(name for one in every for name in one.terms))
    ends = list(dict.fromkeys(reason for one in every for reason in one.ends))
    for section in (_outcome(every, terms), _cost(every), _behaviour(every), _ends(every, ends)):
        for label, style, cells in section:
            table.add_row(label, *cells, style=style)
        table.add_section()
    return _titled(title, table)


Rows = list[tuple[str, str, list[str]]]  # label, style, one cell for each rollout


def _outcome(every: Sequence[Summary], terms: Sequence[str]) -> Rows:
    rows = [
        ("success", "bold green", [percent(one.success) for one in every]),
        ("score", "bold", [number(one.score) for one in every]),
    ]
    for name in terms:
        cells = [number(one.terms.get(name), sign=True) for one in every]
        rows.append((f"  {name}", "cyan", cells))
    return rows


def _cost(every: Sequence[Summary]) -> Rows:
    return [
        ("turns", "", [number(one.turns, digits=2) for one in every]),
        (
            "ms per step, waiting included",
            "bold",
            [number(one.ms_per_step, digits=2) for one in every],
        ),
        ("steps per second, all", "", [number(one.steps_per_s, digits=1) for one in every]),
        ("sandbox", "", [one.sandbox for one in every]),
        *_served(every),
        ("episodes", "", [str(one.episodes) for one in every]),
        ("failed (not scored)", "", [str(one.failed) for one in every]),
        *_failures(every),
    ]


def _served(every: Sequence[Summary]) -> Rows:
    if all(one.replay == "off" for one in every):
        return []
    cells = [f"{one.cache_hits} of {one.cache_hits + one.cache_misses}" for one in every]
    return [("calls served from the cache", "", cells)]


def _failures(every: Sequence[Summary]) -> Rows:
    faults = list(dict.fromkeys(fault for one in every for fault in one.failures))
    return [(f"  {f}", "red", [str(one.failures.get(f, 0)) for one in every]) for f in faults]


def _behaviour(every: Sequence[Summary]) -> Rows:
    return [
        ("tool calls", "", [number(one.calls_per_episode, digits=2) for one in every]),
        ("episodes without a call", "", [percent(one.without_call) for one in every]),
        ("turn of the first call", "", [number(one.first_call_turn, digits=2) for one in every]),
        ("calls that end in an error", "", [percent(one.error_rate) for one in every]),
        ("errors repaired later", "", [percent(one.repaired) for one in every]),
    ]


def _ends(every: Sequence[Summary], ends: Sequence[str]) -> Rows:
    return [
        (f"ended by {reason}", "dim", [str(one.ends.get(reason, 0)) for one in every])
        for reason in ends
    ]


def estimate_table(estimates: Mapping[str, Estimate]) -> RenderableType:
    """Estimates with their intervals."""
    table = _table()
    for name in ("metric", "value", "interval", "tasks", "samples"):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for name, found in estimates.items():
        table.add_row(
            name,
            percent(found.value),
            f"{percent(found.low)} to {percent(found.high)}",
            str(found.tasks),
            str(found.samples),
        )
    return _titled("95 % intervals clustered by task", table)


def plain_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    sections: bool = False,
) -> RenderableType:
    """A table of texts, none of them read as markup; the first column stands out.

    Args:
        title: above the table.
        columns: their names.
        rows: the cells.
        sections: group neighbours whose first cell is equal, and show it once.
    """
    from rich.text import Text

    table = _table()
    for place, name in enumerate(columns):
        last = place == len(columns) - 1
        table.add_column(name, style="bold" if place == 0 else "", no_wrap=not last)
    before = ""
    for row in rows:
        first = row[0]
        if sections and before and first != before:
            table.add_section()
        shown = "" if sections and first == before else first
        cells: list[RenderableType] = [Text(cell) for cell in (shown, *row[1:])]
        table.add_row(*cells)
        before = first
    return _titled(title, table) if title else table


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """A number as a cell: fixed digits, ``-`` where there is none."""
    if value is None or value != value:
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def percent(value: float | None) -> str:
    """A share as a cell."""
    return "-" if value is None or value != value else f"{100 * value:.1f} %"


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False)


def _titled(title: str, table: Table) -> RenderableType:
    """A table below its title, which is as wide as the screen: a table's own wraps at its width."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(title, "bold"), table)
