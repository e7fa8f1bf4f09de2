"""Equal calls at the same time run once."""

from __future__ import annotations

import threading

from tests.cache.making import fly
from toolenvs.cache.flights import Flights
from toolenvs.drivers import Loop, run


def test_equal_calls_of_one_loop_run_once() -> None:
    """The first flies, the others get its result; when it brings none they run by themselves."""
    flights, loop = Flights(), Loop()
    log: list[str] = []
    ends: list[str | None] = []
    for name in ("a", "b", "c"):
        loop.spawn(fly(flights, log, name), lambda value, error: ends.append(value))
    while len(ends) < 3:
        loop.pump(1.0)
    for name in ("fails", "d"):
        loop.spawn(fly(flights, log, name), lambda value, error: ends.append(value))
    while len(ends) < 5:
        loop.pump(1.0)
    loop.close()
    assert log == ["a", "fails"]
    assert sorted(map(str, ends)) == [
        "a led",
        "b shared 42",
        "c shared 42",
        "d ran itself",
        "fails led",
    ]


def test_equal_calls_of_threads_run_once() -> None:
    """Threads wait for each other, too."""
    flights = Flights()
    log: list[str] = []
    ends: list[str] = []
    threads = [
        threading.Thread(target=lambda n=name: ends.append(run(fly(flights, log, n))))
        for name in ("a", "b", "c")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(log) == 1
    assert sum("shared 42" in end for end in ends) == 2


def test_a_call_never_waits_for_its_own_thread() -> None:
    """A blocking call on the thread whose loop flies the same call runs by itself at once."""
    flights, loop = Flights(), Loop()
    log: list[str] = []
    ends: list[str | None] = []
    loop.spawn(fly(flights, log, "a"), lambda value, error: ends.append(value))
    assert run(fly(flights, log, "b")) == "b ran itself"
    loop.close()
    assert run(fly(flights, log, "c")) == "c led"  # a closed loop leaves nothing in the air
