"""See to it that no sandbox holds more memory than it may, before the kernel has to choose whom.

The kernel looks at processes, not at sandboxes: out of memory, it ends the largest process of the
container, whosever it is. So the supervisor counts for each sandbox, ends the one that is beyond
its limit (its own fault), and, when sandboxes within their limits fill the container together, the
largest of them (nobody's fault: the client is told that the machine failed). Should the kernel be
faster, whom it has hit is told by the same rule.

Counting is cheap as long as there is room: one number tells how much more is used than when all
were counted, and nobody can have grown by more than that. How soon it is looked at again depends
on how soon somebody could be at a limit.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import signal
import time
from collections.abc import Collection, Sequence

from . import wire
from .memory import Room
from .processes import Table, text
from .slots import Slot

_BYTES_PER_S = 2 << 30  # that one processor can fill, about
_SHORTEST_S, _LONGEST_S = 0.01, 0.25
_COUNT_ANYWAY_S = 1.0  # memory given back by one can hide that another grows
_SHARE_OF_TIME = 4  # it may take a fifth of a processor, not more
_IDLE_BYTES = 4 << 20  # of a sandbox that does nothing
_DYING_S = 0.3  # from the kernel's choice to the end of whom it has chosen


class Warden:
    """Counts memory and passes sentence; the server carries it out.

    Args:
        room: the memory that there is.
        slots: how many sandboxes there can be.
    """

    def __init__(self, room: Room, slots: int) -> None:
        resident, shared = (int(word) * mmap.PAGESIZE for word in _own_pages())
        self._room = room
        self._slots = slots
        self._own_bytes, self._file_bytes = resident - shared, shared
        self._explained_kills = room.kills()
        self._unexplained_since = 0.0
        self._suspects: set[Slot] = set()
        self._victim_bytes = 0
        self._counted_at = -math.inf
        self._counted_used = 0
        self._least_left = 0
        self._speed = _BYTES_PER_S * len(os.sched_getaffinity(0))
        self.due = 0.0
        """When to look again, by ``time.monotonic``."""

    def limit_bytes(self, memory_bytes: int) -> int:
        """What all processes of a sandbox may hold together.

        Beside its own, each has a copy of what the supervisor has loaded, changed or not. No limit
        is larger than what the container can give to one sandbox beside idle others.
        """
        limit = memory_bytes + self._own_bytes
        if self._room.limit_bytes:
            usable = self._room.limit_bytes - self._room.margin_bytes - self._own_bytes
            limit = min(limit, usable - self._slots * _IDLE_BYTES)
        return max(limit, self._own_bytes)

    def look(self, slots: Collection[Slot]) -> list[Slot]:
        """Count, if need be, and return those to be ended, their ``fate`` set.

        Args:
            slots: all that have a child, those that are being ended as well.
        """
        began, began_cpu = time.monotonic(), time.process_time()
        used = self._room.used_bytes()
        full = self._room.is_full(used)
        kills = self._room.kills()
        doomed: list[Slot] = []
        if (
            full
            or kills > self._explained_kills
            or used - self._counted_used >= self._least_left
            or began - self._counted_at >= _COUNT_ANYWAY_S
        ):
            table = Table()
            self._suspect(slots, table, kills)
            self._count(slots, table, used, exactly=full or kills > self._explained_kills)
            doomed = self._sentence(slots, full=full and kills == self._explained_kills)
            doomed += self._unlucky(set(slots) - set(doomed), kills)
        left = self._least_left - max(0, used - self._counted_used)
        if self._room.limit_bytes:
            left = min(left, self._room.limit_bytes - self._room.margin_bytes - used)
        pause = max(left / self._speed, _SHARE_OF_TIME * (time.process_time() - began_cpu))
        self.due = time.monotonic() + min(max(pause, _SHORTEST_S), _LONGEST_S)
        return doomed

    def cause(self, slot: Slot, status: int, peak_bytes: int) -> int:
        """Why a child has died that the supervisor did not kill, as flags of ``wire.DIED``.

        Args:
            slot: whose child.
            status: as ``wait4`` gives it.
            peak_bytes: the most that was ever resident of it.
        """
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return 0
        if self._room.kills() <= max(self._explained_kills, slot.kills_before):
            return 0
        self._explained_kills += 1
        held = peak_bytes - self._file_bytes
        with slot.cell.reading():
            held += self._room.held_bytes(slot.cell.members(Table()))
        over = max(held, slot.held_bytes) >= slot.limit_bytes
        return wire.OUT_OF_MEMORY if over else wire.NOBODYS_FAULT

    def admit(self, slot: Slot, memory_bytes: int) -> None:
        """A new sandbox is in this place, and its processes may hold so much more than ours."""
        slot.occupy(limit_bytes=self.limit_bytes(memory_bytes), kills=self._room.kills())

    def forget(self, slot: Slot) -> None:
        """Its sandbox is gone."""
        self._suspects.discard(slot)

    def is_doubtful(self, slot: Slot, table: Table) -> bool:
        """Whether the kernel may just have killed a process of the sandbox for lack of memory."""
        if self._room.kills() <= max(self._explained_kills, slot.kills_before):
            return False
        return slot in self._suspects or slot.has_lost(slot.cell.members(table))

    def _suspect(self, slots: Collection[Slot], table: Table, kills: int) -> None:
        """Whose the kernel's victim may be, and how large it was at least: it was the largest."""
        if kills > self._explained_kills:
            members = {slot: slot.cell.members(table) for slot in slots}
            self._suspects |= {slot for slot in slots if slot.has_lost(members[slot])}
            everyone = itertools.chain.from_iterable(members.values())
            largest = max((process.resident_bytes for process in everyone), default=0)
            self._victim_bytes = self._victim_bytes or max(0, largest - self._file_bytes)

    def _count(self, slots: Collection[Slot], table: Table, used: int, *, exactly: bool) -> None:
        self._counted_at, self._counted_used = time.monotonic(), used
        self._least_left = 1 << 60
        for slot in slots:
            members = slot.cell.members(table)
            slot.note(members)
            slot.held_bytes = sum(process.resident_bytes for process in members)
            if exactly or slot.held_bytes > slot.limit_bytes:
                with slot.cell.reading():
                    slot.held_bytes = self._room.held_bytes(members)
            self._least_left = min(self._least_left, slot.limit_bytes - slot.held_bytes)

    def _sentence(self, slots: Collection[Slot], *, full: bool) -> list[Slot]:
        """Those beyond their limits; when there are none and all is full, the largest.

        Nobody while one is dying, also by the kernel's hand: memory is about to come back.
        """
        dying = [slot for slot in slots if slot.killed]
        over = [slot for slot in slots if slot.held_bytes > slot.limit_bytes and not slot.killed]
        for slot in over:
            slot.fate = wire.OUT_OF_MEMORY
        if over or dying or not full:
            return over
        largest = max(slots, key=lambda slot: slot.held_bytes, default=None)
        if largest is None or largest.held_bytes < self._room.margin_bytes:
            return []  # it is something else that fills it
        largest.fate = wire.NOBODYS_FAULT
        return [largest]

    def _unlucky(self, slots: Collection[Slot], kills: int) -> list[Slot]:
        """Those that may have lost a process to a kill that no child's death explains."""
        if kills <= self._explained_kills:
            self._unexplained_since, self._victim_bytes = 0.0, 0
            self._suspects.clear()
            return []
        now = time.monotonic()
        self._unexplained_since = self._unexplained_since or now
        if now - self._unexplained_since < _DYING_S:
            return []
        unlucky = [slot for slot in slots if slot in self._suspects and not slot.killed]
        for slot in unlucky:
            killed_bytes = (kills - self._explained_kills) * self._victim_bytes
            certain = len(self._suspects) == 1
            over = certain and slot.held_bytes + killed_bytes > slot.limit_bytes
            slot.fate = wire.OUT_OF_MEMORY if over else wire.NOBODYS_FAULT
        self._explained_kills = kills
        self._suspects.clear()
        return unlucky


def _own_pages() -> Sequence[str]:
    return text("/proc/self/statm").split()[1:3]
