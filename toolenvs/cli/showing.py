"""``toolenvs show`` and ``toolenvs export``: a run as a person reads it, and as chat messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolenvs.cli.terminal import console, note, print_json, shortened

if TYPE_CHECKING:
    from toolenvs.types import Trajectory

_Run = Annotated[Path, typer.Argument(help="Folder of a run, or a file of trajectories.")]
_MOST_ROWS = 100


def show(
    run: _Run,
    episode: Annotated[
        int | None, typer.Option(min=0, help="This one turn by turn, counted from 0.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the episodes of a run, or show one of them turn by turn."""
    if episode is not None:
        _show_one(run, episode, as_json=as_json)
        return
    found = [_summary(number, one) for number, one in enumerate(_trajectories(run))]
    if as_json:
        print_json({"episodes": found})
        return
    from toolenvs.cli.tables import number as told
    from toolenvs.cli.tables import plain_table

    rows = [
        (
            str(one["episode"]),
            shortened(one["task"]),
            str(one["turns"]),
            one["end"],
            one["failure"] or told(one["score"]),
        )
        for one in found[:_MOST_ROWS]
    ]
    columns = ("episode", "task", "turns", "ended by", "score, or failure")
    console().print(plain_table(str(run), columns, rows))
    if len(found) > _MOST_ROWS:
        note(f"... {len(found) - _MOST_ROWS} more; --json lists all")


def export(
    run: _Run,
    file: Annotated[Path, typer.Argument(help="JSON Lines to write; it must be new.")],
    min_score: Annotated[
        float | None, typer.Option(help="Only episodes with at least this score.")
    ] = None,
) -> None:
    """Write the scored episodes of a run as chat messages, one a line: for STaR, ReST, DPO, SFT.

    A line has task_id, messages (role and content), score, reward_terms, sample and seed. Episodes
    that failed are left out. Messages of an imported episode are as they were read.
    """
    from toolenvs import exactjson
    from toolenvs.errors import UsageError

    if file.exists():
        raise UsageError(f"{file} exists already: name a new file.")
    written = failed = below = 0
    with file.open("xb") as lines:
        for one in _trajectories(run):
            if not one.steps or any(step.failure for step in one.steps):
                failed += 1
            elif min_score is not None and one.score < min_score:
                below += 1
            else:
                lines.write(exactjson.encode(_as_chat(one), name="episode") + b"\n")
                written += 1
    note(f"{written} episodes in {file}; left out: {failed} that failed, {below} of a lower score")


def _trajectories(run: Path) -> Iterator[Trajectory]:
    from toolenvs.records import read_trajectories

    return read_trajectories(run, damaged=lambda piece: note(f"left out: {piece}"))


def _show_one(run: Path, number: int, *, as_json: bool) -> None:
    from toolenvs.cli.transcript import transcript
    from toolenvs.errors import UsageError

    one = next(itertools.islice(_trajectories(run), number, None), None)
    if one is None:
        raise UsageError(f"{run} has no episode {number}; they are counted from 0.")
    if as_json:
        print_json(_as_chat(one))
        return
    screen = console()
    for part in transcript(one):
        screen.print(part)


def _summary(number: int, one: Trajectory) -> dict[str, Any]:
    last = one.steps[-1] if one.steps else None
    return {
        "episode": number,
        "task": one.task.id,
        "sample": one.sample,
        "turns": len(one.steps),
        "end": last.end_reason if last else "",
        "score": one.score,
        "failure": next((step.failure for step in one.steps if step.failure), ""),
    }


def _as_chat(one: Trajectory) -> dict[str, Any]:
    """What a trainer reads of an episode; the texts are those that the agent saw and wrote."""
    from toolenvs.importers import chat_messages
    from toolenvs.recorded import layout_of

    if layout_of(one):
        messages = chat_messages(one)
    else:
        messages = [{"role": "user", "content": one.prompt}]
        for step in one.steps:
            messages.append({"role": "assistant", "content": step.action})
            if step.observation:
                messages.append({"role": "user", "content": step.observation})
    terms: dict[str, float] = {}
    for step in one.steps:
        for name, term in step.terms.items():
            terms[name] = terms.get(name, 0.0) + term
    return {
        "task_id": one.task.id,
        "messages": messages,
        "score": one.score,
        "reward_terms": terms,
        "sample": one.sample,
        "seed": one.seed,
    }
