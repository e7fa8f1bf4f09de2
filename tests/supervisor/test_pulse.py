"""The clock that stands still while the process is kept from running."""

from __future__ import annotations

import time

from toolenvs.supervisor.pulse import Pulse


def passed_ns(pulse: Pulse, *, held_s: float, slept_s: float) -> int:
    """Nanoseconds that pass for the pulse while nothing runs for ``held_s``."""
    pulse.beat(0.0)
    before = pulse.now_ns()
    time.sleep(held_s)
    pulse.beat(slept_s)
    return pulse.now_ns() - before


def test_it_stands_still_while_held() -> None:
    """Half a second of which the process knows nothing does not pass."""
    assert passed_ns(Pulse(), held_s=0.5, slept_s=0.0) < 300_000_000


def test_it_goes_on_while_the_process_sleeps_by_its_own_will() -> None:
    """As it does between two looks."""
    assert passed_ns(Pulse(), held_s=0.5, slept_s=0.5) >= 500_000_000


def test_it_goes_on_while_the_process_works() -> None:
    """A supervisor that is busy keeps no sandbox from running."""
    pulse = Pulse()
    pulse.beat(0.0)
    before = pulse.now_ns()
    ends = time.process_time() + 0.4
    while time.process_time() < ends:
        pass
    pulse.beat(0.0)
    assert pulse.now_ns() - before >= 400_000_000
