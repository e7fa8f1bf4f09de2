"""Branches: forks of a sandbox's child that go on as sandboxes of their own.

A process that runs under walls cannot be moved behind others, so a branch stays within the walls of
the sandbox that it was forked from: one user id or one set of namespaces, one folder. The first of
them, with all that were forked from it or from each other, is a *family*. The first goes on as it
would have; the branches are held apart from it and from each other like this:

* memory, channel and output are each one's own: a branch is taken only if the two processes hold
  nothing but their own descriptors and no memory that is shared;
* a branch may not change a file, start or signal a process, or change how another is run: what
  would do that ends it (``seccomp.still``). That is a rule for code that does not resist: the
  filter is put up by a process in which code has run;
* so at the end of each call of a branch the client asks whether the folder is as it was and whether
  there is a process too many. If so, or if the branch dies, what it gave counts for nothing, and
  the client rebuilds its state elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NamedTuple

from .cells import Cell
from .processes import Process, Table, text
from .slots import Slot

_NULL = os.makedev(1, 3)
_UNCHANGING = ("/usr/", "/lib", "/opt/")  # nobody can write there
_MOST_FILES = 1024
_LONG = 1 << 16
_Folder = list[tuple[object, ...]]


class Ends(NamedTuple):
    """Which sockets and files a child must have, each as device and inode."""

    stdout: tuple[int, int]
    stderr: tuple[int, int]
    data: tuple[int, int]


def ends(data: int, stdout: int, stderr: int) -> Ends:
    """What is behind three descriptors."""
    return Ends(*(_behind(os.fstat(number)) for number in (stdout, stderr, data)))


class Branch:
    """The walls of one of a family, as a ``Cell``: those of the family, and its own process.

    Args:
        family: its family.
        pid: its child.

    Attributes:
        found: what was in the folder when it was forked; None for the founder.
    """

    def __init__(self, family: Family, pid: int, found: _Folder | None = None) -> None:
        self.folder = family.cell.folder
        self.pid = pid
        self.found = found
        self._family = family
        self.reading = family.cell.reading

    def fork(self, disk_bytes: int) -> int:
        raise OSError("a branch is no place for a new sandbox")

    def members(self, table: Table) -> list[Process]:
        """Its child; of the oldest of a family also what only the founder may have started."""
        child = table.one(self.pid) if self.pid else []
        return child + (self._family.strays(table) if self._is_oldest() else [])

    def kill(self) -> None:
        if self._is_oldest() and self._family.strays(Table()):
            self._family.cell.kill()  # everything, which no process can outrun
        elif self.pid:  # our own child, not waited for: nobody else can have its number
            os.kill(self.pid, signal.SIGKILL)

    def clean(self) -> bool:
        return not self.pid and self._family.let_go()

    def _is_oldest(self) -> bool:
        return self._family.slots[0].cell is self


class Family:
    """Sandboxes that share walls.

    Args:
        founder: the first; it becomes one of the family.

    Attributes:
        cell: the walls.
        slots: the sandboxes, the oldest first.
    """

    def __init__(self, founder: Slot) -> None:
        self.cell = founder.cell
        self.slots = [founder]
        founder.family, founder.cell = self, Branch(self, founder.cell.pid)
        self.cell.pid = 0  # each of the family sees to its own child

    def strays(self, table: Table) -> list[Process]:
        """Processes behind these walls that are no sandbox's child."""
        known = {slot.cell.pid for slot in self.slots}
        return [p for p in self.cell.members(table) if p.pid not in known and not p.is_zombie]

    def take(self, parent: Slot, place: Slot, new: Ends) -> bool:
        """Make the one process too many, which ``parent`` has just forked, a sandbox.

        One that is not taken ends with its channel.

        Args:
            parent: the sandbox that has forked.
            place: where the new one belongs.
            new: what its child must have.

        Raises:
            OSError: The folder cannot be looked at.
        """
        found = self.strays(Table())
        if len(found) != 1 or found[0].parent != os.getpid():
            return False
        branch = Branch(self, found[0].pid, _contents(parent.cell))
        before = parent.cell.found if isinstance(parent.cell, Branch) else None
        # What the one has let go of it cannot get back from the other, once that has as well.
        if (
            before not in (None, branch.found)
            or not _is_alone(parent.cell, parent.ends)
            or not _is_alone(branch, new)
            or [process.pid for process in self.strays(Table())] != [branch.pid]
        ):
            return False
        place.family, place.cell, place.ends = self, branch, new
        self.slots.append(place)
        return True

    def let_go(self) -> bool:
        """One has ended; the last takes down what is left. True when nothing is."""
        if len(self.slots) > 1:
            return True
        self.cell.kill()
        return self.cell.clean()

    def part(self, slot: Slot) -> None:
        """One has ended and let go: its place is free, with walls that nobody is behind."""
        self.slots.remove(slot)
        if slot.home is self.cell and self.slots:
            heir = self.slots[0]
            slot.home, heir.home = heir.home, slot.home
        slot.cell, slot.family = slot.home, None


def may_fork(slot: Slot) -> bool:
    """Whether a sandbox is its child alone, at rest, which shares nothing with anybody."""
    table = Table()
    if slot.family is not None and slot.family.strays(table):
        return False
    pids = [process.pid for process in slot.cell.members(table)]
    return pids == [slot.cell.pid] and _is_alone(slot.cell, slot.ends)


def is_sound(slot: Slot) -> bool:
    """Whether a branch cannot have seen anything of what others of its family did."""
    family, cell = slot.family, slot.cell
    if family is None or not isinstance(cell, Branch):
        return True
    with contextlib.suppress(OSError):
        return not family.strays(Table()) and cell.found in (None, _contents(cell))
    return False


def _is_alone(cell: Cell, own: Ends | None) -> bool:
    """Whether a child has one thread, its four descriptors and no memory that others may see."""
    place = f"/proc/{cell.pid}"
    try:
        with cell.reading():
            if sorted(os.listdir(f"{place}/fd")) != ["0", "1", "2", "3"]:  # noqa: PTH208 - quick
                return False
            null, *others = (os.stat(f"{place}/fd/{n}") for n in range(4))  # noqa: PTH116
            return (
                "\nThreads:\t1\n" in text(f"{place}/status", _LONG)
                and null.st_rdev == _NULL
                and own == tuple(_behind(other) for other in others)
                and not any(map(_is_shared, _lines(f"{place}/maps")))
            )
    except OSError:
        return False


def _is_shared(line: str) -> bool:
    """Whether a line of ``maps`` is of memory that another process may see change."""
    fields = line.split(None, 5)
    return fields[1][3] == "s" and not (fields[5:] and fields[5].startswith(_UNCHANGING))


def _contents(cell: Cell) -> _Folder:
    """What is in a sandbox's folder; the times in it are the kernel's, code cannot set them.

    Raises:
        OSError: It cannot be looked at, or holds more than can be looked at in passing.
    """
    found: _Folder = []
    with cell.reading():
        top = f"/proc/{cell.pid}/root{cell.folder}"
        for path, folders, files, number in os.fwalk(top, onerror=_refuse):
            found.append((path[len(top) :], *_looks(os.fstat(number))))
            for name in (*folders, *files):
                looks = _looks(os.stat(name, dir_fd=number, follow_symlinks=False))
                found.append((name, *looks))
            if len(found) > _MOST_FILES:
                raise OSError("too many files")
    return found


def _refuse(error: OSError) -> None:
    raise error


def _looks(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mode, found.st_ino, found.st_size, found.st_ctime_ns


def _behind(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read().splitlines()
