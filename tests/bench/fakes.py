"""A runtime for tests: it runs code of the tests' own making inside the test process."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.drivers import Sleep
from toolenvs.errors import RuntimeFailure
from toolenvs.types import ExecResult


class InProcessRuntime:
    """Sandboxes that are a dictionary of variables; they may be told to misbehave."""

    name = "in process"

    def __init__(self, *, wrong_from: int = -1, fails_from: int = -1) -> None:
        self.wrong_from = wrong_from
        self.fails_from = fails_from
        self.calls = itertools.count()
        self.open_sandboxes = 0

    def fingerprint(self) -> str:
        return self.name

    async def start(self) -> InProcessWorker:
        return InProcessWorker(self)


class InProcessWorker:
    """Holds as many sandboxes as a test may want."""

    capacity = 64

    def __init__(self, runtime: InProcessRuntime) -> None:
        self._runtime = runtime

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> InProcessSandbox:
        self._runtime.open_sandboxes += 1
        return InProcessSandbox(self._runtime)

    def healthy(self) -> bool:
        return True

    async def stop(self) -> None:
        pass


class InProcessSandbox:
    """One episode's variables."""

    def __init__(self, runtime: InProcessRuntime) -> None:
        self._runtime = runtime
        self._variables: dict[str, Any] = {}
        self._open = True

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        number = next(self._runtime.calls)
        if 0 <= self._runtime.fails_from <= number:
            raise RuntimeFailure("sandbox_died", "the fake died, as it was told to")
        await Sleep(0.0)  # lets other slots run, as a real call does
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(code, self._variables)  # the code is this test's
        except Exception as error:
            return ExecResult(status="raised", stdout=out.getvalue(), stderr=repr(error))
        spoilt = f"call {number}\n" if 0 <= self._runtime.wrong_from <= number else ""
        return ExecResult(status="ok", stdout=out.getvalue() + spoilt, cpu_s=1e-3)

    async def stop(self) -> None:
        self._runtime.open_sandboxes -= self._open
        self._open = False
