"""A pinned clock, in an interpreter of its own: what it pins is pinned for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

PINNED = 1_718_452_800  # 2024-06-15 12:00:00 UTC
PREFIX = f"""
import datetime, pickle, time, uuid, warnings
from datetime import date, datetime as D, timedelta, timezone
from time import struct_time
before = D.now()
for _ in range(100): D.now()  # what the interpreter remembers of the method must not stay
warnings.simplefilter("ignore", DeprecationWarning)
from toolenvs.supervisor.clock import pin
real = time.monotonic, time.perf_counter, time.process_time
pin({PINNED} * 10**9)
"""


def said(code: str) -> list[str]:
    """What code prints in a fresh interpreter, in UTC, whose clock is pinned."""
    done = subprocess.run(
        [sys.executable, "-c", PREFIX + code],
        capture_output=True,
        text=True,
        env={"TZ": "UTC"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        ("time.time()", "1718452800.0"),
        ("time.time_ns()", "1718452800000000000"),
        ("time.clock_gettime(time.CLOCK_REALTIME)", "1718452800.0"),
        ("time.clock_gettime_ns(time.CLOCK_TAI)", "1718452800000000000"),
        ("tuple(time.gmtime())[:6]", "(2024, 6, 15, 12, 0, 0)"),
        ("tuple(time.localtime(None))[:6]", "(2024, 6, 15, 12, 0, 0)"),
        ("time.ctime()", "Sat Jun 15 12:00:00 2024"),
        ("time.asctime()", "Sat Jun 15 12:00:00 2024"),
        ("time.strftime('%F %T')", "2024-06-15 12:00:00"),
        ("datetime.datetime.now()", "2024-06-15 12:00:00"),
        ("D.now(timezone(timedelta(hours=2)))", "2024-06-15 14:00:00+02:00"),
        ("D.utcnow()", "2024-06-15 12:00:00"),
        ("D.today()", "2024-06-15 12:00:00"),
        ("date.today()", "2024-06-15"),
        ("uuid.uuid1().time - 0x01b21dd213814000", f"{PINNED * 10**7}"),
        # With a moment of its own a function does what it did.
        ("time.ctime(0), time.gmtime(0).tm_year", "('Thu Jan  1 00:00:00 1970', 1970)"),
        ("time.strftime('%Y', time.gmtime(0)), D.fromtimestamp(0).year", "('1970', 1970)"),
        ("D.strptime('2020-02-03', '%Y-%m-%d')", "2020-02-03 00:00:00"),
    ],
)
def test_every_reading_of_the_day_begins_at_the_moment(reading: str, text: str) -> None:
    """Whichever function or class is asked, and however it was imported."""
    assert said(f"print(({reading}))") == [text]


def test_it_goes_on_by_readings_and_by_sleep_alone() -> None:
    """A millisecond for each reading, a sleep as long as asked; the same in every run."""
    code = (
        "a = time.time_ns(); b = time.time_ns()\ntime.sleep(0.25); print(b - a, time.time_ns() - b)"
    )
    assert said(code) == ["1000000 251000000"]


def test_a_loop_that_waits_ends() -> None:
    """Also one that never sleeps."""
    code = "end = time.time() + 0.5; n = 0\nwhile time.time() < end: n += 1\nprint(400 < n < 600)"
    assert said(code) == ["True"]


def test_how_long_something_takes_stays_real() -> None:
    """Clocks that measure are those they were."""
    code = (
        "print(real == (time.monotonic, time.perf_counter, time.process_time))\n"
        "print(abs(time.clock_gettime(time.CLOCK_MONOTONIC) - time.monotonic()) < 10)"
    )
    assert said(code) == ["True", "True"]


def test_classes_and_functions_are_what_they_were() -> None:
    """Type, subclass, pickle, arithmetic and signature: nothing stands in for ``datetime``."""
    code = """
import inspect
class Mine(D): pass
now = D.now()
print(type(now) is D is datetime.datetime, repr(now)[:24], type(Mine.now()) is type(Mine.today()))
print(isinstance(Mine.now(), Mine), type(Mine.utcnow()) is Mine, before - now > timedelta(0))
print(pickle.loads(pickle.dumps((now, date.today(), D, time.time)))[0] == now)
print(inspect.signature(D.now), D.now.__name__, time.time.__name__, time.time.__module__)
"""
    assert said(code) == [
        "True datetime.datetime(2024,  True",
        "True True True",
        "True",
        "(tz=None) now time time",
    ]


def test_wrong_arguments_are_refused_as_before() -> None:
    """With the same kind of error."""
    code = """
for call in (lambda: time.time(1), lambda: time.gmtime(1, 2), lambda: time.sleep(-1),
             lambda: time.ctime("x"), lambda: D.now("x"), lambda: time.strftime()):
    try: call()
    except (TypeError, ValueError) as error: print(type(error).__name__)
"""
    assert said(code) == [*["TypeError"] * 2, "ValueError", *["TypeError"] * 3]
