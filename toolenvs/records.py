"""Trajectories as JSON Lines, and the folder of a run.

A RUN is a folder:

    run.json              what was run: settings, versions of toolenvs that wrote to it
    trajectories.jsonl    one episode a line, in the order in which they ended
    timings.jsonl         the clocks of the same episodes, kept apart so that equal runs are equal

A line is in ``exactjson``: equal trajectories are equal bytes, in ASCII, floats exact. A line is
written whole by one ``write`` to the end of the file, so a crash costs at most the last line, which
is then set aside and named.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version as installed_version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from toolenvs import exactjson
from toolenvs.appender import Appender, warn
from toolenvs.appender import Damage as Damage
from toolenvs.errors import DataError, UsageError
from toolenvs.types import Trajectory

VERSION = 1
"""The newest version of the record that this code reads, and the one it writes."""

TRAJECTORIES = "trajectories.jsonl"
TIMINGS = "timings.jsonl"
RUN = "run.json"


class NewerVersionError(DataError):
    """A newer version of toolenvs wrote the record; reading it by half would be wrong."""


class Line(msgspec.Struct, frozen=True):
    """A trajectory and the line that holds it.

    Attributes:
        trajectory: the trajectory.
        path: the file. number: of the line, from 1. offset, length: as in ``Damage``.
    """

    trajectory: Trajectory
    path: str
    number: int
    offset: int
    length: int

    def damage(self, reason: str) -> Damage:
        """The line as damage, for what is read but cannot be used."""
        return Damage(self.path, self.offset, self.length, reason)


class RunInfo(msgspec.Struct, frozen=True):
    """What ``run.json`` holds: the settings, and each version of toolenvs that wrote to the run."""

    settings: Mapping[str, Any]
    toolenvs: tuple[str, ...] = ()
    version: int = VERSION


def encode_trajectory(trajectory: Trajectory) -> bytes:
    r"""Encode one trajectory as one line of JSON, without its ``\n``.

    Raises:
        UsageError: Something in it is no JSON (bytes, sets, keys that are no text ...); the
            message names the place.
    """
    return exactjson.encode(trajectory, name="trajectory")


def decode_trajectory(line: bytes | str) -> Trajectory:
    """Decode one line; the inverse of ``encode_trajectory``.

    Raises:
        NewerVersionError: A newer version of toolenvs wrote it.
        DataError: It is no trajectory.
    """
    try:
        data = exactjson.decode(line)
        _check_version(data["version"] if isinstance(data, dict) else None)
        return msgspec.convert(data, Trajectory)
    except KeyError:
        raise DataError("this is no trajectory: it has no version.") from None
    except _UNREADABLE as error:
        raise DataError(f"this is no trajectory: {error}") from error


_UNREADABLE = (
    exactjson.NotJSONError,
    msgspec.ValidationError,
    UnicodeEncodeError,  # a lone surrogate where a number or one of a few words belongs
    OverflowError,
    RecursionError,
)


def _check_version(version: object) -> None:
    if not isinstance(version, int):  # of the wrong type, as the conversion tells
        return
    if version > VERSION:
        raise NewerVersionError(
            f"this trajectory has version {version}, written by a newer toolenvs; this one "
            f"reads up to {VERSION}: upgrade toolenvs."
        )
    if version < 1:
        raise DataError(f"this is no trajectory: there never was a version {version}.")


def trajectory_hash(trajectory: Trajectory) -> str:
    """Return the SHA-256 of the encoded trajectory, 64 hexadecimal digits.

    Nothing timed is in a trajectory, so episodes that went alike are alike here, on any machine.
    """
    return hashlib.sha256(encode_trajectory(trajectory)).hexdigest()


def read_trajectories(
    path: str | os.PathLike[str], *, damaged: Callable[[Damage], None] | None = None
) -> Iterator[Trajectory]:
    """Yield the trajectories of a run's folder, or of one file of them, in order.

    Args:
        path: the folder of a run or a file.
        damaged: called with each piece that holds no trajectory, such as a line that a crash cut;
            by default it is logged as a warning. All others are found either way.

    Raises:
        UsageError: There is no such file.
        NewerVersionError: A newer version of toolenvs wrote it; the message begins with
            ``path:line``.
    """
    for line in read_lines(path, damaged=damaged):
        yield line.trajectory


def read_lines(
    path: str | os.PathLike[str], *, damaged: Callable[[Damage], None] | None = None
) -> Iterator[Line]:
    """Yield trajectories with their places; everything else is as in ``read_trajectories``."""
    file = Path(path)
    file = file / TRAJECTORIES if file.is_dir() else file
    if not file.is_file():
        raise UsageError(f"{file} does not exist: give the folder of a run or a .jsonl file.")
    report = damaged or warn
    offset = 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):  # binary files end lines at \n alone
            try:
                trajectory = _decode_line(line)
            except NewerVersionError as error:
                raise NewerVersionError(f"{file}:{number}: {error}") from None
            except DataError as error:
                report(Damage(str(file), offset, len(line), str(error)))
            else:
                yield Line(trajectory, str(file), number, offset, len(line))
            offset += len(line)


def is_torn_tail(piece: Damage) -> bool:
    """Whether a damage is the unfinished last line that a crash leaves."""
    file = Path(piece.path)
    if piece.offset + piece.length < file.stat().st_size:
        return False
    with file.open("rb") as lines:
        lines.seek(-1, os.SEEK_END)
        return lines.read(1) != b"\n"


def _decode_line(line: bytes) -> Trajectory:
    try:
        return decode_trajectory(line)
    except NewerVersionError:
        raise
    except DataError:
        if line.endswith(b"\n"):
            raise
        raise DataError("the line was never finished.") from None


def read_run(folder: str | os.PathLike[str]) -> RunInfo:
    """Read a run's ``run.json``.

    Raises:
        UsageError: There is none.
        NewerVersionError: A newer version of toolenvs wrote it.
        DataError: It cannot be read.
    """
    file = Path(folder) / RUN
    if not file.is_file():
        raise UsageError(f"{file} does not exist: {folder} is not the folder of a run.")
    try:
        info = msgspec.convert(exactjson.decode(file.read_bytes()), RunInfo)
    except _UNREADABLE as error:
        raise DataError(f"{file}:1: this describes no run: {error}") from error
    if info.version > VERSION:
        raise NewerVersionError(f"{file}:1: a newer toolenvs wrote this run: upgrade toolenvs.")
    return info


class RunWriter:
    """Write a run, or go on writing one: one process at a time, any of its threads.

    A tail that a crash cut is moved into a file of its own beside (``trajectories.jsonl.torn-1``,
    ``-2`` ...) before anything is added. ``close`` brings all to the disk; when only the
    process crashes, what was written is safe without it.

    Args:
        folder: the run's folder; made if needed.
        settings: what is run, as JSON data. An existing run must have the same.

    Attributes:
        torn: what was set aside on opening.

    Raises:
        UsageError: The folder holds a run with other settings, another process writes to it, or the
            settings are no JSON.
        DataError: The folder's ``run.json`` cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._trajectories = Appender(self.folder / TRAJECTORIES)
        try:
            _describe_run(self.folder, settings)
            self._timings = Appender(self.folder / TIMINGS)
        except BaseException:
            self._trajectories.close()
            raise
        self.torn = tuple(
            torn for torn in (self._trajectories.torn, self._timings.torn) if torn is not None
        )

    def write(self, trajectory: Trajectory, timings: Mapping[str, Any] | None = None) -> int:
        """Append one episode and return its number, the line counted from 0.

        Args:
            trajectory: the episode.
            timings: its clocks, by name with their unit (``wall_s`` ...); a line of
                ``timings.jsonl`` holds them with the number as ``episode``.

        Raises:
            UsageError: Something in it is no JSON; nothing is written.
            OSError: The disk is full or gone; nothing of the episode stays, so try again.
        """
        line = encode_trajectory(trajectory)
        with self._lock:
            number = self._trajectories.lines
            clocks = exactjson.encode({**(timings or {}), "episode": number}, name="timings")
            start = self._trajectories.append(line)
            try:
                if timings:
                    self._timings.append(clocks)
            except BaseException:
                self._trajectories.take_back(start)
                raise
        return number

    def close(self) -> None:
        """Bring everything to the disk and let go of the folder. More than once is harmless."""
        with self._lock:
            self._trajectories.close()
            self._timings.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _describe_run(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write ``run.json``, whole or not at all, or check that an existing one says the same."""
    mine = installed_version("toolenvs")
    new = exactjson.encode(settings, name="settings")
    versions: tuple[str, ...] = (mine,)
    if (folder / RUN).exists():
        info = read_run(folder)
        if exactjson.encode(info.settings, name="settings") != new:
            raise UsageError(f"{folder} holds a run with other settings: give another folder.")
        if mine in info.toolenvs:
            return
        versions = (*info.toolenvs, mine)
    draft = folder / f"{RUN}.new"
    with draft.open("wb") as file:
        file.write(exactjson.encode(RunInfo(settings, versions), name="run") + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / RUN)
