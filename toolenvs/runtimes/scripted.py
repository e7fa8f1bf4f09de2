"""Canned results instead of a sandbox: for tests, and for a demo where nothing can be run.

Example: ``Scripted({"6 * 7": "42"}, failures={3: RuntimeFailure("sandbox_died", "gone")})``.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.places import checked_places
from toolenvs.types import ExecResult

Canned = ExecResult | str | BaseException
"""A result, the stdout of a good one, or what to raise."""


class ScriptedCall(NamedTuple):
    """One call that reached a scripted sandbox."""

    code: str
    seed: int
    files: Mapping[str, str]
    timeout_s: float | None
    data: Sequence[str] = ()


class Scripted:
    """A runtime that knows its answers by the text of the code.

    Args:
        script: what each piece of code gives.
        default: what any other code gives; None: other code is an error of the test.
        failures: what to raise instead of the n-th call, counted from 1 over all sandboxes; the
            sandbox has then ended, as after a failure of the machine.
        capacity: sandboxes of one worker at once.
        flavour: the language, for the fingerprint only.

    Attributes:
        calls: every call so far, also those that raised.
        workers: every worker started; ``die`` ends one as a machine's fault would.
    """

    name = "scripted"

    def __init__(
        self,
        script: Mapping[str, Canned] | None = None,
        default: Canned | None = None,
        failures: Mapping[int, BaseException] | None = None,
        capacity: int = 32,
        flavour: str = "python",
    ) -> None:
        self.script = dict(script or {})
        self.default = default
        self.failures = dict(failures or {})
        self.capacity = capacity
        self.flavour = flavour
        self.calls: list[ScriptedCall] = []
        self.workers: list[ScriptedWorker] = []

    def fingerprint(self) -> str:
        """A digest of the script, since nothing else decides a result."""
        text = repr((sorted(self.script.items(), key=lambda item: item[0]), self.default))
        return f"scripted {self.flavour} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    async def start(self) -> ScriptedWorker:
        worker = ScriptedWorker(self)
        self.workers.append(worker)
        return worker

    def answer(self, call: ScriptedCall) -> ExecResult:
        """Record a call and give its canned result.

        Raises:
            UsageError: The script has no such code and there is no default.
        """
        self.calls.append(call)
        failure = self.failures.get(len(self.calls))
        canned = failure or self.script.get(call.code, self.default)
        if canned is None:
            near = difflib.get_close_matches(call.code, self.script, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"the script has no result for {call.code!r}.{hint}")
        if isinstance(canned, BaseException):
            raise canned
        return ExecResult(status="ok", stdout=canned) if isinstance(canned, str) else canned


class ScriptedWorker:
    """A worker without processes."""

    def __init__(self, runtime: Scripted) -> None:
        self.capacity = runtime.capacity
        self.sandboxes: list[ScriptedSandbox] = []
        self._runtime = runtime
        self._alive = True

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> ScriptedSandbox:
        given = ScriptedCall("", seed, dict(files), None, tuple(checked_places(data)))
        if not self._alive:
            raise RuntimeFailure("sandbox_died", "the worker has ended")
        if sum(not sandbox.ended for sandbox in self.sandboxes) >= self.capacity:
            raise RuntimeFailure("capacity", f"all {self.capacity} sandboxes are in use")
        sandbox = ScriptedSandbox(self._runtime, given)
        self.sandboxes.append(sandbox)
        return sandbox

    def healthy(self) -> bool:
        return self._alive

    async def stop(self) -> None:
        self.die()

    def die(self) -> None:
        """End at once with all sandboxes, as a machine's fault would."""
        self._alive = False
        for sandbox in self.sandboxes:
            sandbox.ended = True


class ScriptedSandbox:
    """A sandbox that only looks its answers up."""

    def __init__(self, runtime: Scripted, given: ScriptedCall) -> None:
        self.ended = False
        self._runtime = runtime
        self._given = given  # seed, files and data of every call

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        if self.ended:
            raise RuntimeFailure("sandbox_died", "this sandbox has ended")
        try:
            result = self._runtime.answer(self._given._replace(code=code, timeout_s=timeout_s))
        except BaseException:
            self.ended = True
            raise
        self.ended = result.session_lost
        return result

    async def stop(self) -> None:
        self.ended = True
