"""The pool itself: workers of one runtime, and whose turn it is."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from toolenvs.drivers import Signal, run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import ForkingSandbox, Runtime, Sandbox, Worker

_log = logging.getLogger(__name__)
_HEALTH_CHECK_S = 1.0  # how often a waiting lease looks for workers that died


class SandboxPool:
    """A bounded set of warm workers of one runtime; usable from any thread and under any driver.

    Args:
        runtime: what starts workers.
        max_workers: workers at most, at least 1.
        prewarm: workers that the first lease starts, the others behind its back.
        lease_timeout_s: how long a lease may wait for a place, starting a worker not counted.
        places: sandboxes that must fit at once, whatever ``max_workers`` says.

    Raises:
        UsageError: A bound is out of range.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        max_workers: int = 2,
        prewarm: int = 0,
        lease_timeout_s: float = 120.0,
        places: int = 0,
    ) -> None:
        if max_workers < 1:
            raise UsageError(f"max_workers is {max_workers}; a pool needs at least 1.")
        if not 0 <= prewarm <= max_workers:
            raise UsageError(f"prewarm is {prewarm}; it must be 0 to max_workers ({max_workers}).")
        self.runtime = runtime
        self.name = runtime.name
        self.max_workers = max_workers
        self.prewarm = prewarm
        self.lease_timeout_s = lease_timeout_s
        self.places = places
        self.closed = False
        self._capacity: int | None = None  # of one worker; known once one has started
        self._forget()
        _every_pool.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the same bounds and begins without workers."""
        bounds = {
            name: getattr(self, name)
            for name in ("max_workers", "prewarm", "lease_timeout_s", "places")
        }
        return _remake, (self.runtime, bounds)

    def _forget(self) -> None:
        """Begin anew without a word to the workers: they may be another process's."""
        self._lock = threading.Lock()
        self._members: list[_Member] = []
        self._waiting: deque[_Ticket] = deque()
        self._leased: dict[int, tuple[Sandbox, _Member]] = {}

    async def lease(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        """Start a sandbox in a free place, waiting for one where the pool is full.

        Args:
            seed: where the sandbox's random streams begin.
            files: files of its folder, by relative name.
            data: what it may read of the worker's data, by place.
            now: where its clock begins, see ``Task.now``.

        Raises:
            RuntimeFailure: ``capacity``: no place came free within ``lease_timeout_s``; or a worker
                could not be started or died twice; or the pool is closed.
        """
        for last_try in (False, True):
            member = await self._place()
            try:
                sandbox = await member.spawn(seed=seed, files=files, data=data, now=now)
            except BaseException as error:
                self._free(member)
                worker_died = isinstance(error, RuntimeFailure) and not member.healthy()
                if last_try or not worker_died:
                    raise
                _log.warning("a worker died (%s); taking another", error)
            else:
                with self._lock:
                    self._leased[id(sandbox)] = (sandbox, member)
                return sandbox
        raise AssertionError("unreachable")

    async def fork(self, sandbox: Sandbox) -> Sandbox | None:
        """Branch a leased sandbox, in a free place of its own worker; ``release`` the branch too.

        Returns:
            The branch; None where the sandbox cannot be forked, or nobody has a place to spare:
            nothing has changed then.
        """
        if not isinstance(sandbox, ForkingSandbox):
            return None
        with self._lock:
            _, member = self._leased.get(id(sandbox), (None, None))
            if member is None or self.closed or self._waiting or member.free() < 1:
                return None
            member.used += 1
        branch: Sandbox | None = None
        try:
            branch = await sandbox.fork()
        except RuntimeFailure as failure:
            _log.info("a sandbox was not forked (%s)", failure)
        finally:
            if branch is None:
                self._free(member)
        if branch is not None:
            with self._lock:
                self._leased[id(branch)] = (branch, member)
        return branch

    async def release(self, sandbox: Sandbox) -> None:
        """Destroy a leased sandbox and free its place; once more is harmless.

        One that was leased before a fork is left to the parent.
        """
        with self._lock:
            _, member = self._leased.pop(id(sandbox), (None, None))
        if member is None:
            return
        try:
            await sandbox.stop()
        except Exception as failure:  # a runtime of one's own may raise anything
            _log.warning("a sandbox did not stop (%s)", failure)
            if member.healthy():  # it may still run: its place must not be given to another
                await self._retire(member)
        except BaseException:  # given up half-way: it stays leased until a release gets through
            with self._lock:
                self._leased[id(sandbox)] = (sandbox, member)
            raise
        self._free(member)

    async def warm(self) -> None:
        """Have at least one worker running, so that what keeps one from starting shows now.

        Raises:
            RuntimeFailure: No worker can be started.
        """
        with self._lock:
            ready = any(member.healthy() for member in self._members)
        if not ready:
            self._free(await self._place())

    def close(self) -> None:
        """Stop every worker with its sandboxes; leases that wait fail. Twice is harmless."""
        with self._lock:
            self.closed = True
            members, self._members = self._members, []
            waiting, self._waiting = self._waiting, deque()
        for ticket in waiting:
            ticket.answer(failure=_closed())
        for member in members:
            run(_stop(member))

    # -- places ---------------------------------

    async def _place(self) -> _Member:
        """Take a place: a free one, one of a worker started for it, or the next that is freed."""
        ticket = _Ticket()
        taken = False
        until = time.monotonic() + self.lease_timeout_s
        try:
            while not ticket.signal.is_set():
                dead, starting = self._look(ticket)
                if dead:
                    for member in dead:
                        await _stop(member)
                elif starting is not None:
                    await self._start(starting, ticket)
                    until = time.monotonic() + self.lease_timeout_s
                else:
                    await self._wait(ticket, until)
            if ticket.failure is not None:
                raise ticket.failure
            assert ticket.member is not None
            taken = True
            return ticket.member
        finally:
            if not taken:
                self._abandon(ticket)

    def _look(self, ticket: _Ticket) -> tuple[list[_Member], _Member | None]:
        """Stand in line and serve it; return the workers found dead, else one to start if due."""
        with self._lock:
            if self.closed:
                raise _closed()
            dead = [m for m in self._members if m.worker is not None and not m.healthy()]
            self._members = [m for m in self._members if m not in dead]
            if not ticket.queued:
                ticket.queued = True
                self._waiting.append(ticket)
            self._serve()
            if dead or ticket.signal.is_set() or not self._one_more_is_needed():
                return dead, None
            first = not self._members
            ahead = [_Member() for _ in range(self.prewarm - 1)] if first else []
            starting = _Member()
            self._members += [starting, *ahead]
        for member in ahead:
            start = self._start(member, None)
            threading.Thread(target=_run_quietly, args=(start,), daemon=True).start()
        return dead, starting

    async def _wait(self, ticket: _Ticket, until: float) -> None:
        """Wait a while for the ticket's answer; a worker may die or be missing meanwhile."""
        left = until - time.monotonic()
        with self._lock:
            coming = any(member.worker is None for member in self._members)
        if left <= 0 and not coming and not ticket.signal.is_set():
            raise self._full()
        await ticket.signal.wait(min(max(left, 0.01), _HEALTH_CHECK_S))

    def _most_workers(self) -> int:
        needed = 0 if self._capacity is None else -(-self.places // self._capacity)
        return max(self.max_workers, needed)

    def _one_more_is_needed(self) -> bool:
        """With the lock held: tell whether waiting leases outnumber the places being made."""
        coming = sum(member.worker is None for member in self._members)
        if len(self._members) >= self._most_workers():
            return False
        if self._capacity is None:
            return coming == 0
        return len(self._waiting) > coming * self._capacity

    def _serve(self) -> None:
        """With the lock held: give free places to those who wait, first come first served."""
        for member in self._members if self._waiting else ():
            while self._waiting and member.free() > 0 and member.healthy():
                member.used += 1
                self._waiting.popleft().answer(member=member)

    def _withdraw(self, ticket: _Ticket) -> None:
        with contextlib.suppress(ValueError):
            self._waiting.remove(ticket)

    def _abandon(self, ticket: _Ticket) -> None:
        """Give back what a ticket got too late."""
        with self._lock:
            self._withdraw(ticket)
            member, ticket.member = ticket.member, None
        if member is not None:
            self._free(member)

    def _free(self, member: _Member) -> None:
        with self._lock:
            member.used -= 1
            if member in self._members and not self.closed:
                self._serve()

    def _full(self) -> RuntimeFailure:
        with self._lock:
            places = sum(m.worker.capacity for m in self._members if m.worker is not None)
        return RuntimeFailure(
            "capacity",
            f"All {places} sandboxes of {self.name!r} stayed in use for {self.lease_timeout_s:g} s "
            f"(max_workers={self._most_workers()}). Raise max_workers, or close environments.",
        )

    # -- workers ---------------------------------

    async def _start(self, member: _Member, ticket: _Ticket | None) -> None:
        """Start a worker in the place kept for it; when that fails nobody waits for it in vain."""
        worker: Worker | None = None
        failure: RuntimeFailure | None = None
        try:
            worker = await self.runtime.start()
        except RuntimeFailure as raised:
            failure = raised
        finally:
            unwanted = self._started(member, worker, failure, ticket)
        if unwanted is not None:
            await _stop(unwanted)

    def _started(
        self,
        member: _Member,
        worker: Worker | None,
        failure: RuntimeFailure | None,
        ticket: _Ticket | None,
    ) -> _Member | None:
        """Enter a start's outcome; return the worker when nobody wants it any more."""
        with self._lock:
            if worker is not None:
                member.worker = worker
                self._capacity = worker.capacity
                if self.closed or member not in self._members:
                    return member
                self._serve()
                return None
            if member in self._members:
                self._members.remove(member)
            if failure is None:  # given up half-way: whoever waits must look for itself
                if ticket is not None:
                    self._withdraw(ticket)
                return None
            # With no other worker nobody else would serve them; one start has told them all.
            alone = not self._members
            failed = list(self._waiting) if alone else [t for t in self._waiting if t is ticket]
            for waiting in failed:
                self._withdraw(waiting)
                waiting.answer(failure=RuntimeFailure(failure.kind, str(failure)))
        return None

    async def _retire(self, member: _Member) -> None:
        """Stop a worker that others may still use; its place goes to a new one only then."""
        member.retired = True
        try:
            await _stop(member)
        finally:
            with self._lock:
                if member in self._members:
                    self._members.remove(member)


def _remake(runtime: Runtime, bounds: Mapping[str, Any]) -> SandboxPool:
    return SandboxPool(runtime, **bounds)


class _Member:
    """A worker of the pool and how many of its places are taken; ``worker`` None: starting."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.used = 0
        self.retired = False

    def healthy(self) -> bool:
        return self.worker is not None and self.worker.healthy()

    def free(self) -> int:
        if self.worker is None or self.retired:
            return 0
        return self.worker.capacity - self.used

    async def spawn(
        self, *, seed: int, files: Mapping[str, str], data: Sequence[str], now: str
    ) -> Sandbox:
        assert self.worker is not None
        if not now:  # a worker need not know of clocks
            return await self.worker.spawn(seed=seed, files=files, data=data)
        return await self.worker.spawn(seed=seed, files=files, data=data, now=now)


class _Ticket:
    """One lease's turn in the line: answered once, with a place or with a failure."""

    def __init__(self) -> None:
        self.queued = False
        self.signal = Signal()
        self.member: _Member | None = None
        self.failure: RuntimeFailure | None = None

    def answer(
        self, *, member: _Member | None = None, failure: RuntimeFailure | None = None
    ) -> None:
        self.member, self.failure = member, failure
        self.signal.set()


def _closed() -> RuntimeFailure:
    return RuntimeFailure("closed", "The sandbox pool was closed; make a new environment.")


async def _stop(member: _Member) -> None:
    if member.worker is None:
        return
    try:
        await member.worker.stop()
    except RuntimeFailure as failure:
        _log.warning("a worker did not stop: %s", failure)


def _run_quietly(start: Coroutine[Any, Any, None]) -> None:
    try:
        run(start)
    except RuntimeFailure as failure:
        _log.warning("a worker was not started ahead of need: %s", failure)


_every_pool: weakref.WeakSet[SandboxPool] = weakref.WeakSet()


def _after_fork() -> None:
    """In the child: the same pools without workers, and no lock that a parent's thread holds."""
    for pool in list(_every_pool):
        pool._forget()


def _close_all() -> None:
    """At the process's end: workers end with their connections anyway, but let none be seen."""
    for pool in list(_every_pool):
        pool.close()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
