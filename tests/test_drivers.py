"""The two drivers perform the same requests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.drivers import Blocking, Loop, Readable, Signal, Sleep, run


def run_in_loop(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Drive coroutines together; an exception stands in the place of its value."""
    loop = Loop()
    outcomes: dict[int, Any] = {}
    for i, coroutine in enumerate(coroutines):
        loop.spawn(coroutine, lambda v, e, i=i: outcomes.__setitem__(i, e or v))  # type: ignore[misc]
    while len(outcomes) < len(coroutines):
        loop.pump(5.0)
    loop.close()
    return [outcomes[i] for i in range(len(coroutines))]


def drive(kind: str, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine with the driver called ``kind``."""
    if kind == "run":
        return run(coroutine)
    (outcome,) = run_in_loop(coroutine)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


drivers = pytest.mark.parametrize("kind", ["run", "loop"])


@drivers
def test_a_value_and_an_exception_of_a_request_reach_the_coroutine(kind: str) -> None:
    """What a request gives is what ``await`` gives; what it raises is raised there."""

    async def main() -> list[str]:
        found = [await Blocking(lambda: "value")]
        try:
            await Blocking(lambda: int("x"))
        except ValueError as error:
            found.append(type(error).__name__)
        return found

    assert drive(kind, main()) == ["value", "ValueError"]


@drivers
def test_an_exception_of_the_coroutine_comes_out(kind: str) -> None:
    """An error that nobody catches ends the coroutine and reaches the caller."""

    async def main() -> None:
        await Sleep(0.0)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        drive(kind, main())


@drivers
def test_readable_tells_data_from_a_deadline(kind: str) -> None:
    """True when there is something to read, False when the deadline came first."""
    reading, writing = os.pipe()

    async def main() -> tuple[bool, bool]:
        late = await Readable(reading, time.monotonic() + 0.01)
        os.write(writing, b"x")
        return late, await Readable(reading, time.monotonic() + 30.0)

    assert drive(kind, main()) == (False, True)
    os.close(reading)
    os.close(writing)


@drivers
def test_a_signal_wakes_a_waiter_from_another_thread(kind: str) -> None:
    """``set`` in any thread ends the wait; a wait for a signal that is up ends at once."""
    signal, never = Signal(), Signal()

    async def main() -> tuple[bool, bool, bool]:
        threading.Timer(0.01, signal.set).start()
        first = await signal.wait(30.0)
        return first, await signal.wait(30.0), await never.wait(0.01)

    assert drive(kind, main()) == (True, True, False)


def test_several_coroutines_may_watch_one_descriptor() -> None:
    """Each watcher of a descriptor is woken."""
    reading, writing = os.pipe()

    async def wait() -> bool:
        return await Readable(reading, time.monotonic() + 30.0)

    async def write() -> None:
        await Sleep(0.01)
        os.write(writing, b"x")

    assert run_in_loop(wait(), wait(), write()) == [True, True, None]
    os.close(reading)
    os.close(writing)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=8))
def test_the_loop_gives_what_run_gives(plans: list[list[int]]) -> None:
    """For all sets of coroutines: together they give what each gives alone."""

    async def follow(plan: list[int]) -> list[int]:
        seen = []
        for milliseconds in plan:
            await Sleep(milliseconds / 1000)
            seen.append(await Blocking(lambda m=milliseconds: m * m))  # type: ignore[misc]
        return seen

    assert run_in_loop(*map(follow, plans)) == [run(follow(plan)) for plan in plans]


def test_closing_the_loop_runs_the_finally_blocks() -> None:
    """A coroutine that is given up still cleans up."""
    cleaned = []

    async def main() -> None:
        try:
            await Sleep(1000.0)
        finally:
            cleaned.append(True)

    loop = Loop()
    loop.spawn(main(), lambda value, error: None)
    loop.pump(0.0)
    loop.close()
    assert cleaned == [True]


def test_a_request_that_cannot_begin_fails_its_own_coroutine() -> None:
    """The loop throws the error where ``run`` would; the others go on."""
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)

    async def watches_a_closed_file() -> str:
        try:
            await Readable(reading, time.monotonic() + 30.0)
        except OSError:
            return "refused"
        return "read"

    async def other() -> str:
        await Sleep(0.01)
        return "went on"

    assert run_in_loop(watches_a_closed_file(), other()) == ["refused", "went on"]


def test_a_closed_loop_is_not_woken() -> None:
    """A late signal writes to no file that got the loop's number since."""
    signal = Signal()

    async def main() -> None:
        await signal.wait(1000.0)

    loop = Loop()
    loop.spawn(main(), lambda value, error: None)
    loop.pump(0.0)
    loop.close()
    loop.close()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    signal.set()
    with pytest.raises(BlockingIOError):
        os.read(reading, 8)
    os.close(reading)
    os.close(writing)
