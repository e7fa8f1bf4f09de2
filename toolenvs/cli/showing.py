"""``toolenvs show`` and ``toolenvs export``: a run as a person reads it, and as chat messages."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolenvs.cli.faults import FAILED
from toolenvs.cli.terminal import console, note, print_json, shortened
from toolenvs.neutral import printable

if TYPE_CHECKING:
    from toolenvs.records import Damage
    from toolenvs.types import Message, Trajectory

_Run = Annotated[Path, typer.Argument(help="Folder of a run, or a file of trajectories.")]
_MOST_ROWS = 100


def show(
    run: _Run,
    episode: Annotated[
        int | None, typer.Option(min=0, help="This one turn by turn, counted from 0.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the episodes of a run, or show one of them turn by turn.

    Exit code 1 when a line holds no episode.
    """
    reader = _Reader(run)
    if episode is not None:
        _show_one(reader, episode, as_json=as_json)
        return
    found = [_summary(number, one) for number, one in enumerate(reader)]
    if as_json:
        print_json({"episodes": found})
    else:
        _print_list(str(run), found)
    reader.end()


def export(
    run: _Run,
    file: Annotated[Path, typer.Argument(help="JSON Lines to write; it must be new.")],
    min_score: Annotated[
        float | None, typer.Option(help="Only episodes with at least this score.")
    ] = None,
) -> None:
    """Write the episodes of a run as chat messages, one a line: for STaR, ReST, DPO, SFT.

    A line has task_id, messages (role and content), score (null where none was given),
    reward_terms, sample, branch and seed. Episodes that failed are left out. Messages of an
    imported episode are as they were read. Exit code 1 when a line of the run holds no episode.
    """
    from toolenvs import exactjson
    from toolenvs.errors import UsageError

    if file.exists():
        raise UsageError(f"{file} exists already: name a new file.")
    if min_score is not None and math.isnan(min_score):
        raise UsageError("--min-score is nan; give a number.")
    reader = _Reader(run)
    left_out = Counter[str]()
    written = 0
    draft = file.with_name(f".{file.name}.new")
    try:
        with draft.open("wb") as lines:
            for one in reader:
                why = _why_left_out(one, min_score)
                if why:
                    left_out[why] += 1
                    continue
                lines.write(exactjson.encode(_as_chat(one), name="episode") + b"\n")
                written += 1
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    reasons = "".join(f", {count} left out: {why}" for why, count in left_out.items())
    note(f"{written} episodes in {file}{reasons}")
    reader.end()


class _Reader:
    """The episodes of a run; lines that hold none are named, and end the command with code 1."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self._damaged = False

    def __iter__(self) -> Iterator[Trajectory]:
        from toolenvs.records import read_trajectories

        return read_trajectories(self.run, damaged=self._tell)

    def end(self) -> None:
        """Exit with code 1 if a line was damaged; a tail that a crash cut is none."""
        if self._damaged:
            raise typer.Exit(FAILED)

    def _tell(self, piece: Damage) -> None:
        from toolenvs.records import is_torn_tail

        note(f"{piece.path}: {piece.length} bytes at byte {piece.offset}: {piece.reason}")
        self._damaged = self._damaged or not is_torn_tail(piece)


def _why_left_out(one: Trajectory, min_score: float | None) -> str:
    if not one.steps:
        return "no step was made"
    if any(step.failure for step in one.steps):
        return "the machine failed"
    score = _score(one)
    if min_score is not None and (score is None or not score >= min_score):
        return "of a lower score, or of none"
    return ""


def _score(one: Trajectory) -> float | None:
    """The episode's score, None where nothing ever scored it, as in many an imported one."""
    scored = any(step.scores or step.terms or step.reward for step in one.steps)
    return one.score if scored else None


def _show_one(reader: _Reader, number: int, *, as_json: bool) -> None:
    from toolenvs.cli.transcript import transcript
    from toolenvs.errors import UsageError

    one = next(itertools.islice(reader, number, None), None)
    if one is None:
        raise UsageError(f"{reader.run} has no episode {number}; they are counted from 0.")
    if as_json:
        print_json(_as_chat(one))
        return
    screen = console()
    for part in transcript(one):
        screen.print(part)


def _print_list(title: str, found: list[dict[str, Any]]) -> None:
    from toolenvs.cli.tables import number, plain_table

    columns = ("episode", "task", "sample", "branch", "turns", "ended by", "score, or failure")
    rows = [
        (
            str(one["episode"]),
            shortened(printable(one["task"])),
            str(one["sample"]),
            " ".join(f"{at}:{which}" for at, which in one["branch"]),
            str(one["turns"]),
            printable(one["end"]),
            printable(one["failure"]) or number(one["score"]),
        )
        for one in found[:_MOST_ROWS]
    ]
    console().print(plain_table(title, columns, rows))
    if len(found) > _MOST_ROWS:
        note(f"... {len(found) - _MOST_ROWS} more; --json lists all")


def _summary(number: int, one: Trajectory) -> dict[str, Any]:
    last = one.steps[-1] if one.steps else None
    return {
        "episode": number,
        "task": one.task.id,
        "sample": one.sample,
        "branch": one.branch,
        "turns": len(one.steps),
        "end": last.end_reason if last else "",
        "score": _score(one),
        "failure": next((step.failure for step in one.steps if step.failure), ""),
    }


def _as_chat(one: Trajectory) -> dict[str, Any]:
    """What a trainer reads of an episode; the texts are those that the agent saw and wrote."""
    from toolenvs.importers import chat_messages
    from toolenvs.recorded import layout_of

    terms = Counter[str]()
    for step in one.steps:
        terms.update(step.terms)
    return {
        "task_id": one.task.id,
        "messages": chat_messages(one) if layout_of(one) else _played_messages(one),
        "score": _score(one),
        "reward_terms": dict(terms),
        "sample": one.sample,
        "branch": one.branch,
        "seed": one.seed,
    }


def _played_messages(one: Trajectory) -> list[Message]:
    messages: list[Message] = [{"role": "user", "content": one.prompt}]
    for step in one.steps:
        messages.append({"role": "assistant", "content": step.action})
        if step.observation:
            messages.append({"role": "user", "content": step.observation})
    return messages
