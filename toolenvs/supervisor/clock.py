"""Let the wall clock of this process begin at a moment of the task's, whatever the day.

It goes on by what the code does and not by the time that passes: a millisecond with each reading,
and a ``time.sleep`` as long as it was asked to. So equal calls read equal times in every sandbox,
on every day and after a catch-up, forks go on alike, and a loop that waits for a time some minutes
later ends, if it reads the clock as fast as it can or sleeps. Waits of other kinds (of threads, of
``select``) take real time, which this clock does not see.

Pinned: the readings and defaults of ``time``, ``datetime.now``, ``utcnow`` and ``today``,
``date.today``, ``uuid.uuid1``, and what is built on them. Not pinned: ``monotonic``,
``perf_counter`` and other clocks of how long something takes; times of files, ``numpy``'s
``datetime64("now")``, SQLite's and other programs' clock, which ask the kernel.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

_READING_NS = 1_000_000
_SECOND_NS = 1_000_000_000
_COARSE, _ALARM = 5, 8  # of CLOCK_REALTIME; Linux numbers that ``time`` does not name
_WALL = (time.CLOCK_REALTIME, time.CLOCK_TAI, _COARSE, _ALARM)


def pin(now_ns: int) -> None:
    """Pin the clock of this process and of its forks.

    Args:
        now_ns: nanoseconds since 1970 in UTC; what the first reading gives.
    """
    clock = _Clock(now_ns)
    _pin_time(clock)
    _pin_datetime(clock)
    uuid: Any = sys.modules.get("uuid")
    if uuid is not None:
        uuid._generate_time_safe = None  # the C library's own clock; without it ``time`` is asked
    logging: Any = sys.modules.get("logging")
    if logging is not None:  # when it was loaded; records tell their distance from that
        whole = isinstance(logging._startTime, int)
        logging._startTime = now_ns if whole else now_ns / _SECOND_NS


class _Clock:
    """The pinned clock; each call is a reading, in nanoseconds."""

    def __init__(self, now_ns: int) -> None:
        self._readings = itertools.count(now_ns, _READING_NS)  # atomic, also between threads
        self._slept_ns = 0

    def __call__(self) -> int:
        return next(self._readings) + self._slept_ns

    def sleep(self, seconds: float) -> None:
        self._slept_ns += int(seconds * _SECOND_NS)


def _pin_time(clock: _Clock) -> None:
    real = {name: getattr(time, name) for name in _TIME}

    def seconds(given: float | None = None) -> float:
        return clock() // _SECOND_NS if given is None else given

    def sleep(duration: float, /) -> None:
        real["sleep"](duration)
        clock.sleep(duration)

    def clock_gettime_ns(number: int, /) -> int:
        read: int = clock() if number in _WALL else real["clock_gettime_ns"](number)
        return read

    def clock_gettime(number: int, /) -> float:
        read: float = clock() / _SECOND_NS if number in _WALL else real["clock_gettime"](number)
        return read

    pinned: tuple[Callable[..., Any], ...] = (
        lambda: clock() / _SECOND_NS,
        lambda: clock(),
        clock_gettime,
        clock_gettime_ns,
        sleep,
        lambda *given: real["gmtime"](seconds(*given)),
        lambda *given: real["localtime"](seconds(*given)),
        lambda *given: real["ctime"](seconds(*given)),
        lambda *given: real["asctime"](*(given or [real["localtime"](seconds())])),
        lambda form, *given: real["strftime"](form, *(given or [real["localtime"](seconds())])),
    )
    for name, function in zip(_TIME, pinned, strict=True):
        setattr(time, name, update_wrapper(function, real[name]))


_TIME = (
    *("time", "time_ns", "clock_gettime", "clock_gettime_ns", "sleep"),
    *("gmtime", "localtime", "ctime", "asctime", "strftime"),
)


def _pin_datetime(clock: _Clock) -> None:
    """Give the classes themselves other methods; ``today`` of both asks ``time.time``.

    A class that only looks like ``datetime`` could be told from it: by pickle, by instances that
    other modules make, by what those have imported already.
    """

    def now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return cls.fromtimestamp(clock() // 1_000 / 1e6, tz)

    def utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
        if sys.version_info >= (3, 12):
            warnings.warn(_OUTDATED, DeprecationWarning, stacklevel=2)
        seconds, rest_ns = divmod(clock(), _SECOND_NS)
        year, month, day, hour, minute, second, *_ = time.gmtime(seconds)
        return cls(year, month, day, hour, minute, second, rest_ns // 1_000)

    kind = datetime.datetime
    (attributes,) = gc.get_referents(kind.__dict__)  # the dictionary behind the read-only view
    for function in (now, utcnow):
        name = function.__name__
        attributes[name] = classmethod(update_wrapper(function, attributes[name]))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))  # what is remembered of it is old


_OUTDATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use "
    "timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)
