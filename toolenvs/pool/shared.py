"""Shares in pools: one pool for equal settings in a process, closed with its last handle."""

from __future__ import annotations

import atexit
import functools
import inspect
import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import msgspec

from toolenvs import runtimes
from toolenvs.errors import RuntimeFailure, UnknownNameError
from toolenvs.pool.bounded import SandboxPool
from toolenvs.protocols import Runtime, Sandbox

_log = logging.getLogger(__name__)


class PoolHandle:
    """A share in a pool: ``close`` it, or let it be collected, and the last one closes the pool.

    Args:
        pool: the pool.
        drop: called once when this share ends.
    """

    def __init__(self, pool: SandboxPool, drop: Callable[[], None]) -> None:
        self.pool = pool
        self.name = pool.name
        self._drop: Callable[[], None] | None = drop
        # A collection may strike amid anything, so all it does is leave a note.
        self._note = weakref.finalize(self, _collected.put, drop)
        self._note.atexit = False

    @property
    def runtime(self) -> Runtime:
        """The pool's runtime."""
        return self.pool.runtime

    async def lease(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        """See ``SandboxPool.lease``."""
        return await self.pool.lease(seed=seed, files=files, data=data, now=now)

    async def release(self, sandbox: Sandbox) -> None:
        """See ``SandboxPool.release``."""
        await self.pool.release(sandbox)

    async def fork(self, sandbox: Sandbox) -> Sandbox | None:
        """See ``SandboxPool.fork``."""
        return await self.pool.fork(sandbox)

    async def warm(self) -> None:
        """See ``SandboxPool.warm``."""
        await self.pool.warm()

    def close(self) -> None:
        """End this share. Twice is harmless."""
        drop, self._drop = self._drop, None
        self._note.detach()
        if drop is not None:
            drop()


class _SharedPool:
    """A pool of the process and the number of handles on it."""

    def __init__(self, key: tuple[str, str, bytes], pool: SandboxPool) -> None:
        self.key = key
        self.pool = pool
        self.handles = 0

    def drop(self) -> None:
        with _shared_lock:
            self.handles -= 1
            if self.handles > 0:
                return
            if _shared.get(self.key) is self:
                del _shared[self.key]
        self.pool.close()


_POOL_OPTIONS = ("max_workers", "prewarm", "lease_timeout_s", "places")
_shared: dict[tuple[str, str, bytes], _SharedPool] = {}
_shared_lock = threading.RLock()
_collected: SimpleQueue[Callable[[], None]] = SimpleQueue()
_janitor: threading.Thread | None = None


def shared_pool(runtime_name: str, whose: str = "agent", /, **options: Any) -> PoolHandle:
    """Return a handle on the process's pool for this runtime and these options.

    Args:
        runtime_name: ``"docker"``, ``"local"``, any name of ``runtimes.names()``, or ``"auto"``:
            docker where an engine answers and the image can be had, else local.
        whose: pools of another name share no worker.
        options: ``max_workers``, ``prewarm``, ``lease_timeout_s`` and ``places`` of the pool; all
            others go to the runtime.

    Raises:
        UsageError: An option has no meaning.
    """
    name = sandbox_kind(runtime_name)
    # Never an old pool for new options: what has no plain value is told apart by its content, or
    # else by its identity.
    plain = msgspec.json.encode(options, enc_hook=_told)
    return _share((name, whose, plain), lambda: _make_pool(name, options))


def _told(value: Any) -> str:
    return f"{type(value).__name__} {getattr(value, 'digest', '') or f'{value!r} {id(value)}'}"


def _share(key: tuple[str, str, bytes], make: Callable[[], SandboxPool]) -> PoolHandle:
    """A handle on the pool with this key, which is made if there is none."""
    with _shared_lock:
        _start_janitor()
        entry = _shared.get(key)
        if entry is None or entry.pool.closed:
            entry = _shared[key] = _SharedPool(key, make())
        entry.handles += 1
    if entry.pool.closed:  # its last handle was collected in this very moment
        return _share(key, make)
    return PoolHandle(entry.pool, entry.drop)


def _make_pool(name: str, options: Mapping[str, Any]) -> SandboxPool:
    for_pool = {k: v for k, v in options.items() if k in _POOL_OPTIONS}
    for_runtime = {k: v for k, v in options.items() if k not in _POOL_OPTIONS}
    taken = inspect.signature(runtimes.get(name)).parameters
    unknown = sorted(set(for_runtime) - set(taken))
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        raise UnknownNameError(f"an option of {name!r}", unknown[0], [*taken, *_POOL_OPTIONS])
    return SandboxPool(runtimes.make(name, **for_runtime), **for_pool)


def own_pool(source: Runtime | SandboxPool, whose: str = "agent") -> PoolHandle:
    """Return a handle on the process's pool for a runtime, or on a pool that its maker closes.

    Args:
        source: the runtime; one object has one pool for each of those that use it.
        whose: see ``shared_pool``.
    """
    if isinstance(source, SandboxPool):
        return PoolHandle(source, _nothing)
    key = (f"{source.name} {id(source)}", whose, b"")  # the pool keeps the runtime, and so its id
    return _share(key, lambda: SandboxPool(source))


def sandbox_kind(name: str) -> str:
    """The name of a runtime; for ``"auto"`` the best that this machine has."""
    return name if name != "auto" else _best_sandbox(os.environ.get("DOCKER_HOST", ""))


@functools.cache
def _best_sandbox(docker_host: str) -> str:
    """Docker where an engine answers and holds the image or can make it, else local."""
    from toolenvs import images  # it loads docker-py, which only this name needs

    try:
        images.ensure_image()
    except RuntimeFailure as failure:
        expected = failure.kind == "no_engine"
        level = logging.INFO if expected else logging.WARNING
        _log.log(level, "taking the sandbox 'local' (weaker isolation): %s", failure)
        return "local"
    return "docker"


def _nothing() -> None:
    pass


def _start_janitor() -> None:
    """Have the thread that closes the pools of collected handles."""
    global _janitor
    if _janitor is None:
        _janitor = threading.Thread(target=_sweep, name="toolenvs-janitor", daemon=True)
        _janitor.start()


def _sweep() -> None:
    while True:
        try:
            _collected.get()()
        except Exception:
            _log.exception("a pool did not close")


def _close_all() -> None:
    for entry in list(_shared.values()):
        entry.pool.close()


def _after_fork() -> None:
    global _shared_lock, _janitor, _collected
    _shared_lock = threading.RLock()
    _collected = SimpleQueue()
    _janitor = None


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
