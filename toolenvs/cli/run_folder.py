"""The folder of ``rollout --out``: begun, or gone on with where it was interrupted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolenvs.errors import UsageError

if TYPE_CHECKING:
    from toolenvs.records import RunWriter
    from toolenvs.summary import EpisodeSummary, Job


def open_run(folder: Path, settings: Mapping[str, Any]) -> RunWriter:
    """Begin a run, or open one of the same settings to go on.

    A folder in which nothing was played yet may be begun anew with other settings.

    Raises:
        UsageError: It is a file, or holds episodes of other settings; the message says which.
    """
    from toolenvs.records import RUN, TRAJECTORIES, RunWriter

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: --out takes a folder.")
    file = folder / TRAJECTORIES
    empty = not file.is_file() or not file.stat().st_size
    if not (folder / RUN).is_file():
        if not empty:
            raise UsageError(f"{folder} holds trajectories of an unknown run: give another folder.")
        return RunWriter(folder, settings)
    differing = _differences(folder, settings)
    if differing and not empty:
        raise UsageError(
            f"{folder} holds a run with other settings ({'; '.join(differing)}): give another "
            "folder, or the same settings to go on with it."
        )
    if differing:
        _forget(folder)
    return RunWriter(folder, settings)


def played_before(
    folder: Path, jobs: Sequence[Job], *, answer_term: str
) -> dict[Job, EpisodeSummary]:
    """The jobs that the folder holds already, failed ones left out: they are played again.

    Args:
        folder: of the run.
        jobs: what is asked for.
        answer_term: key of the rubric's term that stands for being right.
    """
    from toolenvs.records import TRAJECTORIES, read_trajectories
    from toolenvs.summary import Job, summarise_episode

    if not (folder / TRAJECTORIES).is_file():
        return {}
    asked = set(jobs)
    clocks = _clocks(folder)
    found: dict[Job, EpisodeSummary] = {}
    for number, trajectory in enumerate(read_trajectories(folder)):
        job = Job(trajectory.task.id, trajectory.sample, trajectory.seed)
        if job in asked:
            summary = summarise_episode(
                job, trajectory, answer_term=answer_term, step_s=clocks.get(number, 0.0)
            )
            if not summary.failure:
                found[job] = summary
    return found


def _differences(folder: Path, settings: Mapping[str, Any]) -> list[str]:
    from toolenvs.records import read_run

    before = read_run(folder).settings
    return [
        f"{name} {before.get(name)!r}, now {settings.get(name)!r}"
        for name in dict.fromkeys([*before, *settings])
        if before.get(name) != settings.get(name)
    ]


def _forget(folder: Path) -> None:
    """Drop what an empty run says of itself, unless another process is about to fill it."""
    from toolenvs.records import RUN, RunWriter, read_run

    with RunWriter(folder, read_run(folder).settings):  # it refuses when another has it open
        (folder / RUN).unlink()


def _clocks(folder: Path) -> dict[int, float]:
    """Seconds in ``step`` by number of the episode, as far as they are known."""
    from toolenvs.records import TIMINGS

    file = folder / TIMINGS
    found: dict[int, float] = {}
    for line in file.read_bytes().split(b"\n") if file.is_file() else ():
        try:
            clock = msgspec.json.decode(line, type=_Clock)
        except msgspec.DecodeError:  # cut by a crash
            continue
        found[clock.episode] = clock.step_s
    return found


class _Clock(msgspec.Struct, frozen=True):
    """A line of the timings."""

    episode: int
    step_s: float = 0.0
