"""One episode's calls: validate, find a sandbox, run, and go on when a sandbox dies.

The agent's faults come back as ``ToolResult.error``. A fault of the machine is retried on a fresh
sandbox, into which the earlier calls are played again (catch-up) so that the agent finds the state
it left; when that cannot be, ``RuntimeFailure`` is raised and the episode ends unscored.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from toolenvs.errors import RuntimeFailure, UnknownNameError
from toolenvs.neutral import printable
from toolenvs.protocols import Sandbox, Tool, ToolContext
from toolenvs.types import Task, ToolCall, ToolError, ToolResult, ToolSpec

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Sandboxes tried for one call before the episode is given up."""


class SandboxSource(Protocol):
    """Where sandboxes come from: a ``SandboxPool``."""

    async def lease(self, *, seed: int, files: Mapping[str, str]) -> Sandbox: ...

    async def release(self, sandbox: Sandbox) -> None: ...


class Done(msgspec.Struct, frozen=True):
    """A stateful call that ran, kept for catch-up: the call and the digest of what it gave."""

    call: ToolCall
    digest: str
    repeatable: bool


class Executor:
    """Runs the calls of one episode, one after another.

    Args:
        tools: the tools by the name the agent uses.
        task: the problem; its gold answer never leaves this process.
        sandboxes: where to lease sandboxes, by what tools ``need``.
        seed: start of the sandbox's random streams.
        history: stateful calls that ran before, when an episode is continued from a fork.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        task: Task,
        sandboxes: Mapping[str, SandboxSource],
        seed: int,
        history: Sequence[Done] = (),
    ) -> None:
        self._tools = tools
        self._task = msgspec.structs.replace(task, answer="", gold_calls=(), data={}, grading={})
        self._sandboxes = sandboxes
        self._seed = seed
        self._history = list(history)
        self._kept: dict[str, Sandbox] = {}
        self._restarted = False
        self.restarts = 0
        """Sandboxes replaced because the machine failed."""

    @property
    def history(self) -> tuple[Done, ...]:
        """The stateful calls of the living session, in order."""
        return tuple(self._history)

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one call.

        Raises:
            RuntimeFailure: The machine failed and catch-up could not mend it.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            return _refusal("unknown_tool", str(UnknownNameError("a tool", call.name, self._tools)))
        try:
            args = msgspec.convert(call.arguments, tool.Args)
        except msgspec.ValidationError as error:
            return _refusal("bad_arguments", _explain(tool, error))
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                result = await self._attempt(tool, call, args)
            except RuntimeFailure as failure:
                await self._drop(tool.needs)
                if tool.kind == "external" or failure.kind == "diverged" or attempt == MAX_ATTEMPTS:
                    raise
                self.restarts += 1
                _log.warning("sandbox failed (%s); trying a fresh one", failure)
            else:
                return msgspec.structs.replace(result, text=printable(result.text))
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Give back every sandbox. More than once is harmless."""
        for needs in list(self._kept):
            await self._drop(needs)

    async def _attempt(self, tool: Tool, call: ToolCall, args: Any) -> ToolResult:
        if not tool.needs:
            return await tool.run(args, ToolContext(task=self._task))
        if tool.kind == "stateful":
            return await self._run_kept(tool, call, args)
        source = self._source(tool.needs)
        sandbox = await source.lease(seed=self._seed, files=self._task.files)
        try:
            return await tool.run(args, ToolContext(task=self._task, sandbox=sandbox))
        finally:
            await source.release(sandbox)

    async def _run_kept(self, tool: Tool, call: ToolCall, args: Any) -> ToolResult:
        sandbox = self._kept.get(tool.needs) or await self._catch_up(tool.needs)
        context = ToolContext(task=self._task, sandbox=sandbox, restarted=self._restarted)
        result = await tool.run(args, context)
        self._restarted = bool(result.data.get("session_lost"))
        if self._restarted:
            await self._drop(tool.needs)
            self._history.clear()
        else:
            repeatable = result.error is None or result.error.kind != "timeout"
            self._history.append(Done(call, digest(result), repeatable))
        return result

    async def _catch_up(self, needs: str) -> Sandbox:
        """Lease a sandbox and bring it to the state that the earlier calls left."""
        sandbox = await self._source(needs).lease(seed=self._seed, files=self._task.files)
        self._kept[needs] = sandbox
        context = ToolContext(task=self._task, sandbox=sandbox)
        for done in self._history:
            tool = self._tools[done.call.name]
            again = await tool.run(msgspec.convert(done.call.arguments, tool.Args), context)
            if not done.repeatable or digest(again) != done.digest:
                raise RuntimeFailure(
                    "diverged",
                    "the sandbox died and its state could not be rebuilt: an earlier call "
                    f"{done.call.name!r} gave another result when it was run again.",
                )
        return sandbox

    async def _drop(self, needs: str) -> None:
        sandbox = self._kept.pop(needs, None)
        if sandbox is not None:
            await self._source(needs).release(sandbox)

    def _source(self, needs: str) -> SandboxSource:
        if needs not in self._sandboxes:
            raise UnknownNameError("a sandbox of this environment", needs, self._sandboxes)
        return self._sandboxes[needs]


def tool_spec(tool: Tool) -> ToolSpec:
    """What an agent is told of a tool; the schema is that of ``tool.Args``."""
    schema = msgspec.json.schema(tool.Args)
    parameters = dict(schema["$defs"][tool.Args.__name__])
    parameters.pop("title", None)
    parameters.pop("description", None)
    return ToolSpec(tool.name, tool.description, parameters)


def digest(result: ToolResult) -> str:
    """Content hash of a result, equal for equal results in every process."""
    return hashlib.sha256(msgspec.json.encode(result, order="sorted")).hexdigest()


def _refusal(kind: Any, message: str) -> ToolResult:
    text = printable(message)
    return ToolResult(text=text, error=ToolError(kind, text))


def _explain(tool: Tool, error: msgspec.ValidationError) -> str:
    fields = msgspec.structs.fields(tool.Args)
    wanted = ", ".join(f"{field.name}{'' if field.required else ' (optional)'}" for field in fields)
    return f"{tool.name}: {error}. Its arguments are: {wanted}."
