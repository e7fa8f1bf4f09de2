"""Who is ended for memory, and whose fault it is."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterable

import pytest

from toolenvs.supervisor import warden, wire
from toolenvs.supervisor.memory import Room
from toolenvs.supervisor.processes import Process, Table
from toolenvs.supervisor.pulse import Pulse
from toolenvs.supervisor.slots import Slot
from toolenvs.supervisor.warden import Warden

MB = 1 << 20


class FakeCell:
    """A sandbox with processes that are only written down."""

    folder = "/work"

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.processes = [process(pid)]

    def fork(self, disk_bytes: int) -> int:
        return self.pid

    def members(self, table: Table) -> list[Process]:
        return self.processes

    def reading(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def kill(self) -> None:
        self.processes = []

    def clean(self) -> bool:
        return True


class FakeRoom(Room):
    """A container of 1 GB in which each process holds half of what is resident."""

    def __init__(self) -> None:
        self.limit_bytes = 1024 * MB
        self.margin_bytes = 64 * MB
        self.used = 0
        self.killed = 7  # before the supervisor began to look

    def used_bytes(self) -> int:
        return self.used

    def is_full(self, used_bytes: int) -> bool:
        return used_bytes >= self.limit_bytes - self.margin_bytes

    def kills(self) -> int:
        return self.killed

    def held_bytes(self, members: Iterable[Process]) -> int:
        return sum(process.resident_bytes for process in members) // 2


def process(
    pid: int, *, resident_bytes: int = 0, ended_children: int = 0, is_zombie: bool = False
) -> Process:
    """One process of a sandbox."""
    return Process(pid, 1, 0, resident_bytes, ended_children, is_zombie)


def place(pid: int, *resident: int) -> tuple[Slot, FakeCell]:
    """A sandbox that may hold 100 MB and whose processes have so much resident."""
    cell = FakeCell(pid)
    cell.processes = [process(pid + n, resident_bytes=size) for n, size in enumerate(resident)]
    slot = Slot(cell, Pulse())
    slot.occupy(limit_bytes=100 * MB, kills=7)
    return slot, cell


@pytest.fixture
def room() -> FakeRoom:
    """The memory that there is."""
    return FakeRoom()


@pytest.fixture
def judge(room: FakeRoom) -> Warden:
    """A warden of that room, in a supervisor that has no files mapped, unlike this process."""
    made = Warden(room, 4)
    made._file_bytes = 0
    return made


def test_who_is_beyond_its_limit_is_ended_for_that(judge: Warden) -> None:
    """The sum over its processes counts, and that of nobody else."""
    guilty, _ = place(10, *[30 * MB] * 8)
    innocent, _ = place(50, 190 * MB)
    assert judge.look([guilty, innocent]) == [guilty]
    assert guilty.fate == wire.OUT_OF_MEMORY
    assert not innocent.fate


def test_shared_pages_count_once(judge: Warden) -> None:
    """What is resident may be twice the limit, as long as what is held is not beyond it."""
    slot, _ = place(10, 100 * MB, 100 * MB)
    assert judge.look([slot]) == []
    assert slot.held_bytes == 100 * MB


def test_of_those_within_their_limits_the_largest_goes_and_is_not_to_blame(
    judge: Warden, room: FakeRoom
) -> None:
    """When all is full one goes, and nobody else while it is dying."""
    small, large = place(10, 150 * MB)[0], place(50, 190 * MB)[0]
    room.used = 1000 * MB
    assert judge.look([small, large]) == [large]
    assert large.fate == wire.NOBODYS_FAULT
    large.killed = True
    assert judge.look([small, large]) == []
    assert judge.look([small]) == [small]


def test_a_room_full_of_something_else_ends_nobody(judge: Warden, room: FakeRoom) -> None:
    """Ending sandboxes that hold next to nothing would free nothing."""
    room.used = 1000 * MB
    assert judge.look([place(10, 20 * MB)[0]]) == []


def test_nobody_is_chosen_while_the_kernels_choice_is_dying(judge: Warden, room: FakeRoom) -> None:
    """Its memory is about to come back."""
    room.used, room.killed = 1000 * MB, 8
    assert judge.look([place(10, 190 * MB)[0]]) == []


def test_a_child_that_the_kernel_kills_within_its_limit_is_not_to_blame(
    judge: Warden, room: FakeRoom
) -> None:
    """Two at once neither; a later death by the same signal is the code's own again."""
    one, two = place(10)[0], place(50)[0]
    room.killed += 2
    assert judge.cause(one, signal.SIGKILL, 60 * MB) == wire.NOBODYS_FAULT
    assert judge.cause(two, signal.SIGKILL, 60 * MB) == wire.NOBODYS_FAULT
    assert judge.cause(one, signal.SIGKILL, 60 * MB) == 0


def test_a_child_that_the_kernel_kills_beyond_its_limit_is(judge: Warden, room: FakeRoom) -> None:
    """Its own peak counts, and what its other processes hold."""
    alone = place(10)[0]
    many, _ = place(50, 90 * MB, 90 * MB)
    room.killed += 2
    assert judge.cause(alone, signal.SIGKILL, 900 * MB) == wire.OUT_OF_MEMORY
    assert judge.cause(many, signal.SIGKILL, 90 * MB) == wire.OUT_OF_MEMORY


def test_a_kill_before_its_time_excuses_no_sandbox(judge: Warden, room: FakeRoom) -> None:
    """One that began after the kernel killed somebody was not killed by that."""
    room.killed += 1
    slot = place(10)[0]
    judge.admit(slot, 100 * MB)
    assert judge.cause(slot, signal.SIGKILL, 60 * MB) == 0
    assert not judge.is_doubtful(slot, Table())
    room.killed += 1
    assert judge.cause(slot, signal.SIGKILL, 60 * MB) == wire.NOBODYS_FAULT


def test_other_deaths_are_the_codes_own(judge: Warden, room: FakeRoom) -> None:
    """Another signal, an exit, and a SIGKILL where the kernel killed nobody."""
    slot = place(10)[0]
    assert judge.cause(slot, signal.SIGKILL, 900 * MB) == 0
    room.killed += 1
    assert judge.cause(slot, signal.SIGSEGV, 900 * MB) == 0
    assert judge.cause(slot, 9 << 8, 900 * MB) == 0


def test_who_may_have_lost_a_process_to_the_kernel_is_ended(
    judge: Warden, room: FakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at once: the kill may be that of a child which has not died yet; nor who lost none."""
    waited, waited_cell = place(10, MB)
    vanished, vanished_cell = place(30, MB, MB)
    left, left_cell = place(50, MB, MB)
    alone, _ = place(70, MB)
    both, _ = place(90, MB, MB)
    everyone = [waited, vanished, left, alone, both]
    assert judge.look(everyone) == []
    room.killed += 1
    waited_cell.processes = [process(10, ended_children=5)]
    vanished_cell.processes = [process(30)]
    left_cell.processes = [process(50), process(51, is_zombie=True)]
    assert judge.is_doubtful(waited, Table())
    assert not judge.is_doubtful(alone, Table())
    assert judge.look(everyone) == []
    assert judge.is_doubtful(waited, Table())
    judge.forget(left)
    monkeypatch.setattr(warden, "_DYING_S", 0.0)
    left_cell.processes = [process(50), process(51)]
    assert set(judge.look(everyone)) == {waited, vanished}
    assert waited.fate == vanished.fate == wire.NOBODYS_FAULT
    assert judge.look([alone, both]) == []


def test_a_helper_that_ended_before_the_first_look_is_missed(judge: Warden, room: FakeRoom) -> None:
    """A sandbox that was never counted begins with no child that has ended."""
    slot, cell = place(10, MB)
    room.killed += 1
    assert not judge.is_doubtful(slot, Table())
    cell.processes = [process(10, ended_children=3)]
    assert judge.is_doubtful(slot, Table())


def test_no_limit_is_more_than_the_container_has(judge: Warden, room: FakeRoom) -> None:
    """What one sandbox may hold fits beside the supervisor and idle others."""
    assert 200 * MB <= judge.limit_bytes(200 * MB) < 800 * MB
    assert judge.limit_bytes(1 << 40) < room.limit_bytes - room.margin_bytes
    room.limit_bytes = 0
    assert judge.limit_bytes(1 << 40) >= 1 << 40


def test_it_looks_again_sooner_the_less_is_left(judge: Warden, room: FakeRoom) -> None:
    """Four times a second at rest, and soon where somebody could be at a limit soon."""
    rest = [place(10, MB)[0]]
    waits = []
    for room.used in (0, 900 * MB, 955 * MB):
        judge.look(rest)
        waits.append(judge.due - time.monotonic())
    assert waits[0] <= 0.25
    assert waits[1] > waits[2]


def test_the_room_is_the_machines_where_no_control_group_is_seen() -> None:
    """What is told of it makes sense, and what this process holds is some of it."""
    room = Room()
    assert room.used_bytes() > MB
    assert room.kills() >= 0
    members = Table().of_uid(0) or [process(1)]
    assert room.held_bytes(members) > 0
    assert room.held_bytes([process(1 << 30, resident_bytes=5)]) in (0, 5)
