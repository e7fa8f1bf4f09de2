"""A runtime that counts the processor seconds of what it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.types import ExecResult


class MeteredRuntime:
    """Wraps a runtime; ``cpu_s`` grows by the processor seconds of every call.

    Spawning, transport and the client's own work are not in it, so it is a lower bound of what the
    calls cost a machine.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.name = runtime.name
        self.cpu_s = 0.0

    def fingerprint(self) -> str:
        return self._runtime.fingerprint()

    async def start(self) -> Worker:
        return _MeteredWorker(await self._runtime.start(), self)


class _MeteredWorker:
    def __init__(self, worker: Worker, meter: MeteredRuntime) -> None:
        self._worker = worker
        self._meter = meter
        self.capacity = worker.capacity

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        sandbox = await self._worker.spawn(seed=seed, files=files, data=data, now=now)
        return _MeteredSandbox(sandbox, self._meter)

    def healthy(self) -> bool:
        return self._worker.healthy()

    async def stop(self) -> None:
        await self._worker.stop()


class _MeteredSandbox:
    def __init__(self, sandbox: Sandbox, meter: MeteredRuntime) -> None:
        self._sandbox = sandbox
        self._meter = meter

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        result = await self._sandbox.execute(code, timeout_s=timeout_s)
        self._meter.cpu_s += result.cpu_s
        return result

    async def stop(self) -> None:
        await self._sandbox.stop()
