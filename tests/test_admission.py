"""Admission: bounded, in the order of asking, and no place is lost whatever becomes of a wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.admission import Admission, Turn, admission
from toolenvs.drivers import Loop, Sleep, run
from toolenvs.errors import UsageError


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """A descriptor that nothing can be read from: a call that runs."""
    read, write = os.pipe()
    yield read
    os.close(read)
    os.close(write)


@given(places=st.integers(1, 5), naps=st.lists(st.sampled_from([0.0, 0.001]), max_size=20))
@settings(max_examples=25, deadline=None)
def test_so_many_run_and_all_get_their_turn_in_order(
    silent: int, places: int, naps: list[float]
) -> None:
    """Never more than the places, first come first served, nobody forgotten."""
    gate, loop = Admission(places), Loop()
    running, most = 0, 0
    began: list[int] = []
    ended: list[int] = []

    async def call(number: int, nap_s: float) -> None:
        nonlocal running, most
        turn = await gate.enter(silent)
        running += 1
        most = max(most, running)
        began.append(number)
        await Sleep(nap_s)
        running -= 1
        turn.leave()

    for number, nap_s in enumerate(naps):
        loop.spawn(call(number, nap_s), lambda _, error, n=number: ended.append(n))  # type: ignore[misc]
    while len(ended) < len(naps):
        loop.pump()
    loop.close()
    assert most <= places
    assert began == list(range(len(naps)))


def test_a_wait_that_is_given_up_takes_no_place(silent: int) -> None:
    """Cancelled in the line, or after its place came but before it was told: others get in."""
    gate, loop = Admission(1), Loop()
    got: list[Turn] = []
    first = run(gate.enter(silent))
    loop.spawn(gate.enter(silent), lambda turn, error: got.extend([turn] if turn else []))
    loop.close()  # which closes the coroutine
    first.leave()
    assert run(gate.enter(silent)) not in got


def test_leaving_twice_frees_one_place(silent: int) -> None:
    """A second ``leave`` changes nothing."""
    gate = Admission(1)
    turn = run(gate.enter(silent))
    turn.leave()
    turn.leave()
    run(gate.enter(silent))
    assert len(gate._running) == 1


def test_a_call_that_has_ended_keeps_no_place_while_nobody_looks() -> None:
    """One thread can leave a loop with calls in it and make a call of its own."""
    gate = Admission(1)
    read, write = os.pipe()
    run(gate.enter(read))  # never left: its loop is not driven
    os.write(write, b"x")  # the answer is there
    run(gate.enter(write)).leave()
    os.close(read)
    os.close(write)


def test_threads_wait_for_each_other(silent: int) -> None:
    """A place that one thread leaves wakes another."""
    gate = Admission(1)
    turn = run(gate.enter(silent))
    order: list[str] = []

    def other() -> None:
        run(gate.enter(silent)).leave()
        order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    order.append("first")
    turn.leave()
    thread.join(30.0)
    assert order == ["first", "other"]


def test_a_fork_begins_with_all_places(silent: int) -> None:
    """The calls that run are the parent's."""
    gate = Admission(1)
    run(gate.enter(silent))
    pid = os.fork()
    if pid == 0:
        run(gate.enter(silent))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_one_gate_for_one_number() -> None:
    """Workers of a process share their bound; a bound below 1 is refused."""
    assert admission(3) is admission(3)
    assert admission().places >= 2
    with pytest.raises(UsageError, match="calls_at_once=-1"):
        admission(-1)
