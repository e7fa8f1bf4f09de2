"""Requests that coroutines await, and the two drivers that perform them.

The core is written once, as coroutines that await a ``Request``; it never touches an event loop.
``run`` performs requests one after another on the caller's thread (a hop to another thread would
cost more than a sandboxed call). ``Loop`` drives many coroutines at once on the caller's thread,
with one epoll for all of them.

    async def reply(fd: int) -> bytes:
        await Readable(fd, deadline=monotonic() + 1.0)
        return os.read(fd, 100)

    run(reply(fd))                       # one
    loop.spawn(reply(fd), done=print)    # many
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Request(Generic[T]):
    """Something a coroutine waits for; ``await request`` hands it to whichever driver runs."""

    def __await__(self) -> Generator[Request[T], T, T]:
        return (yield self)

    def perform(self) -> T:
        """Do it now, blocking this thread."""
        raise NotImplementedError

    def start(self, loop: Loop, wake: Callable[[T | None, BaseException | None], None]) -> None:
        """Begin it under ``loop``; ``wake(value, error)`` once, on the loop's thread."""
        raise NotImplementedError


class Readable(Request[bool]):
    """Wait until ``fd`` can be read (or its peer hung up).

    Args:
        fd: a file descriptor that epoll accepts.
        deadline: ``time.monotonic()`` seconds at which to give up, or None to wait for ever.

    Returns (from ``await``):
        True when readable, False when the deadline passed first.
    """

    __slots__ = ("deadline", "fd")

    def __init__(self, fd: int, deadline: float | None = None) -> None:
        self.fd = fd
        self.deadline = deadline

    def perform(self) -> bool:
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(_milliseconds(self.deadline)))

    def start(self, loop: Loop, wake: Callable[[bool | None, BaseException | None], None]) -> None:
        loop.watch(self.fd, self.deadline, lambda ready: wake(ready, None))


class Sleep(Request[None]):
    """Wait ``seconds``."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = max(0.0, seconds)

    def perform(self) -> None:
        time.sleep(self.seconds)

    def start(self, loop: Loop, wake: Callable[[None, BaseException | None], None]) -> None:
        loop.call_at(time.monotonic() + self.seconds, lambda: wake(None, None))


class Blocking(Request[T]):
    """Run a blocking function: on the caller's thread, or under ``Loop`` on one of its threads.

    For life cycles (start a container, read a folder), never for a call's hot path.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function

    def perform(self) -> T:
        return self.function()

    def start(self, loop: Loop, wake: Callable[[T | None, BaseException | None], None]) -> None:
        loop.submit(self.function, wake)


class Signal:
    """A one-shot flag that coroutines of any driver, and threads, can wait for."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Raise the flag and wake every waiter; more than once is harmless."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        """Tell whether the flag is up."""
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> Raised:
        """Return a request that gives True once the flag is up, False after ``timeout_s``."""
        return Raised(self, timeout_s)

    def _when_set(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()


class Raised(Request[bool]):
    """Wait for a ``Signal``; made by ``Signal.wait``."""

    __slots__ = ("signal", "timeout_s")

    def __init__(self, signal: Signal, timeout_s: float | None) -> None:
        self.signal = signal
        self.timeout_s = timeout_s

    def perform(self) -> bool:
        return self.signal._event.wait(self.timeout_s)

    def start(self, loop: Loop, wake: Callable[[bool | None, BaseException | None], None]) -> None:
        first = _Once(lambda up: wake(up, None))
        self.signal._when_set(lambda: loop.call_soon_threadsafe(lambda: first(True)))
        if self.timeout_s is not None:
            loop.call_at(time.monotonic() + self.timeout_s, lambda: first(False))


def run(coroutine: Coroutine[Request[Any], Any, T]) -> T:
    """Drive one coroutine to its end on this thread and return its value.

    An exception of a request (KeyboardInterrupt too) is thrown into the coroutine, so that its
    ``finally`` blocks run.
    """
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            request = coroutine.send(value) if error is None else coroutine.throw(error)
            value, error = None, None
            try:
                value = request.perform()
            except BaseException as raised:
                error = raised
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        coroutine.close()


class Loop:
    """Drive many coroutines at once on the thread that calls ``pump``.

    Nothing runs between two calls of ``pump``; what already runs in sandboxes goes on there.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wakeup, select.EPOLLIN)
        self._waiting: dict[int, list[_Once]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_number = 0
        self._soon: deque[Callable[[], None]] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._pumping = 0  # the thread that pumped last
        self._running: dict[int, Coroutine[Request[Any], Any, Any]] = {}
        self._open = threading.Lock()

    def spawn(
        self,
        coroutine: Coroutine[Request[Any], Any, T],
        done: Callable[[T | None, BaseException | None], None],
    ) -> None:
        """Start a coroutine, running it up to its first wait; ``done(value, error)`` at its end."""
        key = id(coroutine)
        self._running[key] = coroutine

        def advance(value: Any, error: BaseException | None) -> None:
            try:
                request = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                del self._running[key]
                done(stop.value, None)
            except BaseException as raised:
                del self._running[key]
                done(None, raised)
            else:
                begin(request)

        def begin(request: Request[Any]) -> None:
            try:
                request.start(self, advance)
            except Exception as error:  # as under ``run``, where ``perform`` would have raised it
                self._soon.append(lambda error=error: advance(None, error))  # type: ignore[misc]

        advance(None, None)

    def pump(self, timeout_s: float | None = None) -> None:
        """Handle what is ready; wait at most ``timeout_s`` seconds when nothing is."""
        self._pumping = threading.get_ident()
        if not self._soon:
            self._collect(timeout_s)
        while self._soon:
            self._soon.popleft()()

    def _collect(self, timeout_s: float | None) -> None:
        now = time.monotonic()
        until = None if timeout_s is None else now + timeout_s
        if self._timers and (until is None or self._timers[0][0] < until):
            until = self._timers[0][0]
        wait = -1.0 if until is None else max(0.0, until - now)
        for fd, _events in self._epoll.poll(wait):
            if fd == self._wakeup:
                os.eventfd_read(fd)
            else:
                for first in list(self._waiting.get(fd, ())):
                    first(True)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            self._soon.append(heapq.heappop(self._timers)[2])

    def watch(self, fd: int, deadline: float | None, ready: Callable[[bool], None]) -> None:
        """Call ``ready(True)`` once ``fd`` can be read, or ``ready(False)`` at the deadline.

        Several may watch one descriptor; all of them are called.
        """

        def finish(readable: bool) -> None:
            waiting = self._waiting[fd]
            waiting.remove(first)
            if not waiting:
                del self._waiting[fd]
                with contextlib.suppress(OSError):  # closed meanwhile: epoll forgot it by itself
                    self._epoll.unregister(fd)
            ready(readable)

        first = _Once(finish)
        if fd not in self._waiting:
            self._epoll.register(fd, select.EPOLLIN)
            self._waiting[fd] = []
        self._waiting[fd].append(first)
        if deadline is not None:
            self.call_at(deadline, lambda: first(False))

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back at ``time.monotonic() == when``."""
        self._timer_number += 1
        heapq.heappush(self._timers, (when, self._timer_number, callback))

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Call back on the loop's thread; may be called from any thread."""
        with self._open:
            if self._wakeup >= 0:  # else the loop is closed, and its number is another file's
                self._soon.append(callback)
                if threading.get_ident() != self._pumping:  # that thread is here, not waiting
                    os.eventfd_write(self._wakeup, 1)

    def submit(
        self, function: Callable[[], T], wake: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run a blocking function on a thread; ``wake`` with its outcome on the loop's thread."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="toolenvs-loop")

        def finished(future: Future[T]) -> None:
            if future.cancelled():  # by ``close``: nobody waits any more
                return
            error = future.exception()
            value = None if error is not None else future.result()
            self.call_soon_threadsafe(lambda: wake(value, error))

        self._threads.submit(function).add_done_callback(finished)

    def close(self) -> None:
        """Give up every coroutine (their ``finally`` blocks run) and free the descriptors."""
        for coroutine in list(self._running.values()):
            try:
                coroutine.close()
            except RuntimeError:  # it awaited while being closed: it holds no thread and is done
                _log.debug("a coroutine awaited while it was closed", exc_info=True)
        self._running.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
        with self._open:
            if self._wakeup >= 0:
                self._epoll.close()
                os.close(self._wakeup)
                self._wakeup = -1


class _Once:
    """A callback of which only the first call counts."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[bool], None]) -> None:
        self._callback: Callable[[bool], None] | None = callback

    def __call__(self, value: bool) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(value)


def _milliseconds(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    return max(0.0, deadline - time.monotonic()) * 1000.0
