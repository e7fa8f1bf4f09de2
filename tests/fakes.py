"""Fakes that several tests share: sandboxes whose state is a counter, and a pool of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolenvs.errors import RuntimeFailure
from toolenvs.protocols import ForkingSandbox
from toolenvs.types import ExecResult


class CountingSandbox:
    """A sandbox whose programs are words: what it has run so far decides what they print.

    ``count`` prints how many calls came before; ``raise`` fails as the agent's fault; ``lose`` ends
    the session as the agent's fault; ``die`` fails as the machine's fault, as does any call once
    ``dies_at`` calls ran. ``output`` is printed instead of the count.
    """

    def __init__(self, dies_at: int | None = None, output: str = "") -> None:
        self.calls: list[str] = []
        self.dies_at = dies_at
        self.output = output
        self.stopped = False

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one word."""
        if self.stopped:
            raise RuntimeFailure("stopped", "this sandbox was stopped")
        if code == "die" or (self.dies_at is not None and len(self.calls) >= self.dies_at):
            raise RuntimeFailure("sandbox_died", "the container is gone")
        self.calls.append(code)
        if code == "raise":
            return ExecResult(status="raised", stderr="ValueError: no")
        if code == "lose":
            return ExecResult(status="killed", signal=9, session_lost=True)
        return ExecResult(status="ok", stdout=self.output or f"{len(self.calls) - 1}\n")

    async def stop(self) -> None:
        """End it."""
        self.stopped = True


class Forkable(CountingSandbox):
    """One that can be forked; ``apart`` is what a fork of it cannot do."""

    def __init__(self) -> None:
        super().__init__()
        self.shares = False

    async def fork(self) -> Forkable:
        """A second one that has run the same."""
        branch = type(self)()
        branch.calls = list(self.calls)
        branch.shares = True
        return branch

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one word."""
        if code == "apart" and self.shares:
            raise RuntimeFailure("branch", "not here")
        return await super().execute(code, timeout_s=timeout_s)


class FakePool:
    """Leases what ``make`` builds; remembers everything for the test to look at."""

    def __init__(self, make: Callable[[], CountingSandbox] = CountingSandbox) -> None:
        self.make = make
        self.leased: list[CountingSandbox] = []
        self.seeds: list[int] = []
        self.files: list[Mapping[str, str]] = []
        self.data: list[Sequence[str]] = []
        self.clocks: list[str] = []

    async def lease(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> CountingSandbox:
        """Build the next sandbox."""
        sandbox = self.make()
        self.leased.append(sandbox)
        self.seeds.append(seed)
        self.files.append(files)
        self.data.append(data)
        self.clocks.append(now)
        return sandbox

    async def release(self, sandbox: CountingSandbox) -> None:
        """End it."""
        await sandbox.stop()

    async def fork(self, sandbox: CountingSandbox) -> CountingSandbox | None:
        """A copy of its state, if it is one that can be forked."""
        if not isinstance(sandbox, ForkingSandbox):
            return None
        branch = await sandbox.fork()
        assert isinstance(branch, CountingSandbox)
        self.leased.append(branch)
        return branch

    @property
    def open(self) -> list[CountingSandbox]:
        """Those not given back."""
        return [sandbox for sandbox in self.leased if not sandbox.stopped]


class FakeWorker:
    """A worker whose sandboxes are ``CountingSandbox``."""

    capacity = 64

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime
        self.running = True

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> CountingSandbox:
        """Start a sandbox."""
        sandbox = CountingSandbox(self.runtime.dies_at, self.runtime.output)
        self.runtime.sandboxes.append(sandbox)
        return sandbox

    def healthy(self) -> bool:
        """True until it is stopped."""
        return self.running

    async def stop(self) -> None:
        """End it."""
        self.runtime.stopped += self.running
        self.running = False


class FakeRuntime:
    """A runtime that runs nothing: see ``CountingSandbox``; counts what it started."""

    name = "fake"

    def __init__(self, dies_at: int | None = None, output: str = "") -> None:
        self.dies_at = dies_at
        self.output = output
        self.started = 0
        self.stopped = 0
        self.sandboxes: list[CountingSandbox] = []

    def fingerprint(self) -> str:
        """One name for all."""
        return "fake"

    async def start(self) -> FakeWorker:
        """Start a worker."""
        self.started += 1
        return FakeWorker(self)
