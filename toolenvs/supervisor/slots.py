"""A place for one sandbox, as the supervisor keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import processes, wire
from .cells import Cell
from .processes import Process, Table
from .pulse import Pulse

if TYPE_CHECKING:
    from .branches import Ends, Family


class Slot:
    """One place for a sandbox: its cell, and what belongs to the sandbox that is in it.

    Args:
        cell: its walls.
        pulse: the clock that counts.

    Attributes:
        home: the walls for the next sandbox here.
        cell: those of the present one, which are another's when it is a branch.
        family: those that it shares them with, None if it is alone.
        ends: what its child was given.
        wire: the supervisor's end of the slot socket.
        data: the child's end of the data socket, only to end it when the child has died.
        dead: the death was told.
        killed: by the supervisor.
        fate: why the supervisor ended it: flags of ``wire.DIED``.
        limit_bytes: what its processes may hold together.
        kills_before: how often the kernel had killed for lack of memory when it began.
        held_bytes: what they held when that was last looked at, or more.
    """

    def __init__(self, cell: Cell, pulse: Pulse) -> None:
        self.home = self.cell = cell
        self.family: Family | None = None
        self.ends: Ends | None = None
        self.wire = -1
        self.data = -1
        self._pulse = pulse
        self.occupy(limit_bytes=0, kills=0)

    def occupy(self, *, limit_bytes: int, kills: int) -> None:
        """Begin anew, for another sandbox, whose child has been forked.

        Args:
            limit_bytes: what its processes may hold together.
            kills: how often the kernel has killed for lack of memory before it.
        """
        self.dead = self.killed = False
        self.fate = 0
        self.limit_bytes = limit_bytes
        self.kills_before = kills
        self.held_bytes = 0
        self._base_ns, self._base_cpu_ns = self._pulse.now_ns(), 0
        self._base_delays: dict[int, int] = {}
        self._ended = {self.cell.pid: 0}

    def begin(self) -> None:
        """Count from here."""
        members = self.cell.members(Table())
        self._base_ns = self._pulse.now_ns()
        self._base_cpu_ns = sum(process.cpu_ns for process in members)
        self._base_delays = processes.delays(members)

    def used(self, members: list[Process], *, doubtful: bool) -> bytes:
        """What was used since ``begin``, as a packet."""
        cpu_ns = sum(process.cpu_ns for process in members) - self._base_cpu_ns
        base = self._base_delays
        delays = [ns - base.get(task, 0) for task, ns in processes.delays(members).items()]
        passed = self._pulse.now_ns() - self._base_ns
        longest = max(0, *delays, 0)
        return wire.USED.pack(
            wire.USAGE, max(0, passed), max(0, cpu_ns), longest, len(members), doubtful
        )

    def note(self, members: list[Process]) -> None:
        """Remember who is there, for ``has_lost``."""
        self._ended = {process.pid: process.ended_children for process in members}

    def has_lost(self, members: list[Process]) -> bool:
        """Whether any process of it but the child has ended since ``note``."""
        now = {process.pid: process.ended_children for process in members}
        before = self._ended.items()
        return any(process.is_zombie for process in members) or any(
            now.get(pid) != ended for pid, ended in before if pid in now or pid != self.cell.pid
        )
