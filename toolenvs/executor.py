"""One episode's calls: validate, find a sandbox, run, and go on when a sandbox dies.

The agent's faults come back as ``ToolResult.error``. A fault of the machine is retried on a fresh
sandbox, into which the earlier calls are played again (catch-up) so that the agent finds the state
it left; when that cannot be, ``RuntimeFailure`` is raised and the episode ends unscored.

With a ``Playback`` results are recorded and served. No sandbox is leased before a call has to run;
the stateful calls that were served until then are caught up with first.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from toolenvs.errors import CacheMissError, RuntimeFailure, UnknownNameError, UsageError
from toolenvs.freshness import Watch
from toolenvs.neutral import printable
from toolenvs.playback import Playback
from toolenvs.protocols import Sandbox, Tool, ToolContext
from toolenvs.session import Done, Session
from toolenvs.statekey import CallKey, StateKeys, digest
from toolenvs.types import ErrorKind, Task, ToolCall, ToolError, ToolResult, ToolSpec

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Sandboxes tried for one call before the episode is given up."""

NOT_MENDED_BY_ANOTHER = {
    *("capacity", "closed", "data", "diverged", "image_missing", "no_engine", "no_service", "tool"),
}
"""Kinds of failure that a fresh sandbox would only meet again."""


KEPT = ("reads", "stateful")
"""Kinds of tools that run in the episode's kept sandbox."""


class SandboxSource(Protocol):
    """Where sandboxes come from: a ``SandboxPool``."""

    async def lease(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox: ...

    async def release(self, sandbox: Sandbox) -> None: ...

    async def fork(self, sandbox: Sandbox) -> Sandbox | None: ...


class Executor:
    """Runs the calls of one episode, one after another.

    Args:
        tools: the tools by the name the agent uses, bound to the task (see ``bound_tools``).
        task: the problem; its gold answer never leaves this process.
        sandboxes: where to lease sandboxes, by what tools ``need``.
        seed: start of the sandbox's random streams.
        playback: records and serves results; None to run everything.
        episode: names the episode, for recorded calls of the outside world.
        private: the calls are a reward's, not an agent's: its sandboxes may also read what the task
            is only judged on, and a call that cannot be made is no result but a failure.
        like: the executor of an episode that this one goes on from, as a branch of its own.
        watch: looks whether the task's database is still the one that it was; None to trust it.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        task: Task,
        sandboxes: Mapping[str, SandboxSource],
        seed: int,
        playback: Playback | None = None,
        episode: str = "",
        private: bool = False,
        like: Executor | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._tools = tools
        self._task = without_gold(task)
        self._private = private
        self._sandboxes = sandboxes
        self._seed = seed
        self._watch = watch
        self._playback = playback
        self._keys: StateKeys | None = None
        if playback is not None:
            self._keys = playback.keys(self._task, tools=tools, seed=seed, episode=episode)
        self._sessions: dict[str, Session] = {}
        self._outside = 0  # calls of the outside world so far
        if like is not None:
            self._sessions = {needs: one.branch() for needs, one in like._sessions.items()}
            self._outside = like._outside
        self._miss: CacheMissError | None = None
        self.restarts = 0
        """Sandboxes replaced because the machine failed."""

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one call, or serve what was recorded for it.

        Raises:
            RuntimeFailure: The machine failed and catch-up could not mend it.
            CacheMissError: In replay, the call was never recorded; every later call then is, too.
        """
        if self._miss is not None:
            raise self._miss
        tool = self._tools.get(call.name)
        if tool is None:
            return self._refuse(
                "unknown_tool", str(UnknownNameError("a tool", call.name, self._tools))
            )
        try:
            args = msgspec.convert(call.arguments, tool.Args)
        except msgspec.ValidationError as error:
            return self._refuse("bad_arguments", _explain(tool, error))
        if self._playback is None or getattr(tool, "instant", False):
            result, ran, key = await self._perform(tool, args), True, None
        else:
            key = self._key(tool, args)
            try:
                answer = await self._playback.answer(
                    tool, call, key, lambda: self._perform(tool, args)
                )
            except CacheMissError as miss:
                self._miss = miss
                raise
            result, ran = answer.result, answer.ran
        if tool.kind == "stateful":
            await self._keep(tool, call, key, result, ran=ran)
        return result

    async def fork_from(self, origin: Executor) -> None:
        """Take forks of the sandboxes that the origin has now, where they can be had.

        Without one a session catches up with its calls before the next.

        Args:
            origin: the executor that this one was made ``like``, with nothing run since.
        """
        for needs, session in self._sessions.items():
            before = origin._sessions[needs]
            if before.sandbox is None or not before.ran or session.sandbox is not None:
                continue
            session.sandbox = await self._source(needs).fork(before.sandbox)
            session.ran = before.ran if session.sandbox is not None else 0

    async def close(self) -> None:
        """Give back every sandbox, whatever one of them raises. More than once is harmless."""
        raised: list[Exception] = []
        for needs in list(self._sessions):
            try:
                await self._drop(needs)
            except Exception as error:  # raised again below
                raised.append(error)
        if raised:
            raise raised[0]

    # -- running ---------------------------------

    async def _perform(self, tool: Tool, args: Any) -> ToolResult:
        """Run a call, on a fresh sandbox when one fails."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._attempt(tool, args)
            except RuntimeFailure as failure:
                if tool.kind in KEPT:
                    await self._drop(tool.needs)
                if (
                    tool.kind == "external"
                    or failure.kind in NOT_MENDED_BY_ANOTHER
                    or attempt == MAX_ATTEMPTS
                ):
                    raise
                if failure.kind == "branch":  # nothing has failed: it moves out
                    _log.debug("a branch gets a sandbox of its own")
                    continue
                self.restarts += 1
                _log.warning("sandbox failed (%s); trying a fresh one", failure)
        raise AssertionError("unreachable")

    async def _attempt(self, tool: Tool, args: Any) -> ToolResult:
        if tool.kind in KEPT:
            session = self._session(tool.needs)
            await self._catch_up(session)
            result = await self._run(tool, args, session.sandbox, restarted=session.restarted)
            if tool.kind == "reads" and result.data.get("session_lost"):
                await self._drop(tool.needs)  # the state is rebuilt before the next call
            return result
        if not tool.needs:
            return await self._run(tool, args, None)
        source = self._source(tool.needs)
        sandbox = await self._lease(tool.needs)
        try:
            return await self._run(tool, args, sandbox)
        finally:
            await source.release(sandbox)

    async def _run(
        self, tool: Tool, args: Any, sandbox: Sandbox | None, *, restarted: bool = False
    ) -> ToolResult:
        context = ToolContext(task=self._task, sandbox=sandbox, restarted=restarted)
        try:
            result = await tool.run(args, context)
            if not isinstance(result, ToolResult):
                raise TypeError(f"run() gave no ToolResult but {type(result).__name__}")
            if self._watch is not None and tool.needs == self._watch.needs:
                self._watch.check()  # before the result is recorded, or judged
            return msgspec.structs.replace(result, text=printable(result.text))
        except RuntimeFailure:
            raise
        except Exception as error:  # a fault of the tool's own code is not the agent's
            _log.exception("the tool %r failed", tool.name)
            what = (
                f"the tool {tool.name!r} raised {type(error).__name__}; the log has its traceback"
            )
            raise RuntimeFailure("tool", what) from error

    async def _catch_up(self, session: Session) -> None:
        """Bring the session's sandbox, leased if need be, to the state that the calls left."""
        if session.sandbox is None and session.needs:
            session.sandbox = await self._lease(session.needs)
        for done in session.missing():
            if done.interrupted:
                raise self._diverged(done)
            if done.undone:
                session.ran += 1
                continue
            tool = self._tools[done.call.name]
            args = msgspec.convert(done.call.arguments, tool.Args)
            again = await self._run(tool, args, session.sandbox, restarted=done.restarted)
            if self._playback is not None:
                self._playback.count("caught_up")
            if digest(again) != done.digest:
                raise self._diverged(done)
            session.ran += 1

    async def _lease(self, needs: str) -> Sandbox:
        database = self._task.database
        places: tuple[str, ...] = ()
        if database is not None and database.needs == needs:
            places = (database.place, *(database.instances if self._private else ()))
        try:
            return await self._source(needs).lease(
                seed=self._seed,
                files=self._task.files,
                data=places,
                now=self._task.now if needs == "sandbox:python" else "",
            )
        except UsageError as error:  # the task and the runtime do not fit each other
            raise RuntimeFailure("data", str(error)) from error

    def _refuse(self, kind: ErrorKind, message: str) -> ToolResult:
        """A call that cannot be made is its maker's fault."""
        if self._private:
            raise RuntimeFailure("referee", f"a private call cannot be made: {message}")
        text = printable(message)
        return ToolResult(text=text, error=ToolError(kind, text))

    def _diverged(self, done: Done) -> RuntimeFailure:
        if self._playback is not None:
            self._playback.diverged(done.key)
        return RuntimeFailure(
            "diverged",
            "the state of a session could not be rebuilt in a fresh sandbox: an earlier call of "
            f"{done.call.name!r} "
            + ("was interrupted." if done.interrupted else "gave another result this time."),
        )

    # -- sessions ---------------------------------

    def _session(self, needs: str) -> Session:
        if needs not in self._sessions:
            self._sessions[needs] = Session(needs)
        return self._sessions[needs]

    async def _keep(
        self, tool: Tool, call: ToolCall, key: CallKey | None, result: ToolResult, *, ran: bool
    ) -> None:
        """Enter a stateful call into its session."""
        session = self._session(tool.needs)
        if result.data.get("session_lost"):
            await self._drop(tool.needs)
            session.lose(result)
        else:
            session.add(call, key, result, ran=ran)

    async def _drop(self, needs: str) -> None:
        session = self._sessions.get(needs)
        if session is None:
            return
        sandbox, session.sandbox, session.ran = session.sandbox, None, 0
        if sandbox is not None:
            await self._source(needs).release(sandbox)

    def _key(self, tool: Tool, args: Any) -> CallKey | None:
        """The call in its state; None where the state, or the call, cannot be written down."""
        assert self._keys is not None
        try:
            if tool.kind in KEPT:
                session = self._session(tool.needs)
                if not session.known:
                    return None
                return self._keys.key(tool, args, after=session.state, restarted=session.restarted)
            if tool.kind == "external" and not self._keys.share_external:
                self._outside += 1
                return self._keys.key(tool, args, after=str(self._outside))
            return self._keys.key(tool, args)
        except UsageError as error:
            _log.warning("a call of %r is not recorded: %s", tool.name, error)
            return None

    def _source(self, needs: str) -> SandboxSource:
        if needs not in self._sandboxes:
            raise UnknownNameError("a sandbox of this environment", needs, self._sandboxes)
        return self._sandboxes[needs]


def without_gold(task: Task) -> Task:
    """The task as tools and sandboxes see it."""
    return msgspec.structs.replace(task, answer="", gold_calls=(), data={}, grading={})


def bound_tools(tools: Mapping[str, Tool], task: Task) -> dict[str, Tool]:
    """The tools as they are for this task; see ``protocols.Tool``."""
    seen = without_gold(task)
    return {
        name: tool.bound(seen) if hasattr(tool, "bound") else tool for name, tool in tools.items()
    }


def as_external(tool: Tool) -> Tool:
    """The tool, run against the outside world: its results are facts of one episode only."""
    if tool.kind != "pure":
        return tool
    outside = copy.copy(tool)
    outside.kind = "external"
    return outside


def tool_spec(tool: Tool) -> ToolSpec:
    """What an agent is told of a tool; the schema is that of ``tool.Args``."""
    schema = msgspec.json.schema(tool.Args)
    definitions = dict(schema["$defs"])
    parameters = dict(definitions.pop(tool.Args.__name__))
    parameters.pop("title", None)
    parameters.pop("description", None)
    if definitions:  # of structs inside Args
        parameters["$defs"] = definitions
    return ToolSpec(tool.name, tool.description, parameters)


def _explain(tool: Tool, error: msgspec.ValidationError) -> str:
    fields = msgspec.structs.fields(tool.Args)
    wanted = ", ".join(f"{field.name}{'' if field.required else ' (optional)'}" for field in fields)
    return f"{tool.name}: {error}. Its arguments are: {wanted}."
