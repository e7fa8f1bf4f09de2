"""What each kind of plugin must be: small protocols, no base classes.

A plugin is any object with these members. The coroutines await only ``drivers.Request`` objects
or each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from toolenvs.types import (
    ExecResult,
    Message,
    ParsedTurn,
    Passage,
    Score,
    Task,
    ToolCall,
    ToolResult,
    ToolSpec,
    Trajectory,
)

ToolKind = Literal["pure", "reads", "stateful", "external"]
"""What a call leaves behind, and so what its result may depend on.

* ``pure``: a new sandbox for each call, nothing is kept;
* ``reads``: in the episode's kept sandbox, in which it changes nothing;
* ``stateful``: in the kept sandbox, and later calls find what it did;
* ``external``: the outside world.
"""


@runtime_checkable
class Sandbox(Protocol):
    """One episode's place to run code: it keeps its variables and files until ``stop``."""

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run ``code`` once, at most once, and return how it ended.

        Args:
            code: a program of the sandbox's language.
            timeout_s: a shorter limit than the sandbox's own for this call.

        Raises:
            RuntimeFailure: The machine failed. Whether the code ran is then unknown and the sandbox
                is of no further use.
        """
        ...

    async def stop(self) -> None:
        """End it with all its processes and files. More than once is harmless."""
        ...


@runtime_checkable
class ForkingSandbox(Sandbox, Protocol):
    """A sandbox that can be branched: what a ``Sandbox`` may be beyond what it must."""

    async def fork(self) -> Sandbox | None:
        """Make a second sandbox that goes on from this one's state, independent of it from here.

        Variables, files and random streams are as in this one. It takes one of the worker's places
        and is ended by its own ``stop``.

        Returns:
            The branch, or None where that cannot be done now; this sandbox is then unchanged.

        Raises:
            RuntimeFailure: The machine failed. ``execute`` of a branch may raise it with the kind
                ``"branch"``, when the code does what cannot be done independently here: its state
                must then be rebuilt in another sandbox.
        """
        ...


@runtime_checkable
class Worker(Protocol):
    """A trust domain that holds sandboxes: a container, or a group of namespaces."""

    capacity: int
    """Sandboxes that it can hold at once."""

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Sandbox:
        """Start a sandbox whose random streams begin at ``seed`` and whose folder holds ``files``.

        Args:
            seed: where the random streams begin.
            files: contents by relative name.
            data: what it may read of the worker's data, by place (see ``Database.place``).
            now: where its clock begins, see ``Task.now``; given for tasks that have one, and only
                to what runs Python. Other workers need not take it.

        Raises:
            RuntimeFailure: The worker is gone or full.
        """
        ...

    def healthy(self) -> bool:
        """Tell without waiting whether the worker still lives."""
        ...

    async def stop(self) -> None:
        """End it and everything in it. More than once is harmless."""
        ...


@runtime_checkable
class Runtime(Protocol):
    """A way to run code: ``docker``, ``local``, ``scripted``.

    One whose sandboxes see folders of different names has ``own_folders``, a regular expression
    that finds such a name: the cache serves no result that holds one. ``""`` is as if it had none.
    """

    name: str

    def fingerprint(self) -> str:
        """Name everything outside the calls that a result may depend on (an image's digest ...)."""
        ...

    async def start(self) -> Worker:
        """Start a worker.

        Raises:
            RuntimeFailure: It cannot be started; the message says what to do.
        """
        ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may use while it runs.

    Attributes:
        task: the problem, its gold answer blanked.
        sandbox: where to run code, when the tool ``needs`` one: new for each call of a ``pure``
            tool, kept for the episode for a ``stateful`` one.
        restarted: True when the kept sandbox is new because the last one died in an earlier call.
    """

    task: Task
    sandbox: Sandbox | None = None
    restarted: bool = False


@runtime_checkable
class Tool(Protocol):
    """Something an agent can call.

    Attributes:
        name: the name the agent uses.
        description: one or two sentences for the agent.
        Args: a ``msgspec.Struct``: the schema shown and the validation done are the same thing.
        needs: where it runs: ``""``, ``"sandbox:python"``, ``"sandbox:sql"``,
            ``"service:postgres"`` or ``"index"``.
        kind: what a call leaves behind; see ``ToolKind``.
        version: raise it when the same call may give another result than before.

    A tool whose results are its arguments, such as ``submit``, may have ``instant = True``: it is
    run wherever it is called, even in a replay, and never recorded.

    A stateful tool whose call was stopped but undone as a whole says ``"state_kept": True`` in the
    result's ``data``. A tool may have ``fingerprint() -> str``, which then stands for its options.

    A tool whose ``needs`` or ``kind`` depend on the task has ``bound(task) -> Tool``, which gives
    the tool as it is for that task; an episode asks once.
    """

    name: str
    description: str
    Args: type[msgspec.Struct]
    needs: str
    kind: ToolKind
    version: str

    async def run(self, args: Any, context: ToolContext) -> ToolResult:
        """Do it. ``args`` is a validated ``Args``. The agent's faults go into ``error``."""
        ...


@runtime_checkable
class ToolFormat(Protocol):
    """How calls and results are written as text. It reads only the model's own text.

    ``parse(compose(calls)).calls == calls`` for all calls that the format can express.

    A format whose texts are the messages of a chat API may have ``native = True``: a model behind
    such an API is then told of the tools by the request and answers with ``tool_calls``.
    """

    name: str
    stop: Sequence[str]
    """Strings at which a sampler should stop, ``()`` if none."""

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """The text that tells a model which tools there are and how to call them."""
        ...

    def parse(self, text: str, specs: Sequence[ToolSpec]) -> ParsedTurn:
        """Read a model's message (a ``Turn`` tells more). Never raises, whatever the text."""
        ...

    def compose(self, calls: Sequence[ToolCall], thought: str = "") -> str:
        """Write the message that makes ``calls``, as a model would."""
        ...

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Write results as the text that goes back to the model; what they hold is neutralised.

        A message that could not be read is answered with ``calls == ()`` and one result that
        carries the error.
        """
        ...

    def messages(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Message]:
        """The same results as chat messages without this format's wrappers, neutralised."""
        ...


@runtime_checkable
class RewardComponent(Protocol):
    """A bounded score of the trajectory so far: pure, no I/O, 0 on the empty prefix.

    Attributes:
        name: key of its term.
        low: smallest value. high: largest value.
        when: ``"step"``: scored each turn; ``"end"``: 0 until the episode ends.
        shaping: True when the score returns to 0 at the end, so that it only guides.
    """

    name: str
    low: float
    high: float
    when: Literal["step", "end"]
    shaping: bool

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        """Private calls whose results ``score`` wants to find in the last step's evidence."""
        ...

    def score(self, task: Task, prefix: Trajectory) -> Score:
        """Score the steps so far."""
        ...


@runtime_checkable
class Corpus(Protocol):
    """Documents to search; iterating gives them in the same order each time."""

    name: str

    @property
    def digest(self) -> str:
        """SHA-256 of the content, hexadecimal."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Passage]: ...


@runtime_checkable
class TaskSource(Protocol):
    """A sequence of tasks with stable ids; loading reports rows that cannot be graded.

    A source whose tasks live on data has ``resources``: options of the runtimes that its tasks
    need, by ``needs``, such as ``{"sandbox:sql": {"data": {"spider": FOLDER}}}``.
    """

    name: str
    rejected: Sequence[str]
    """One message for each unusable row: ``path:line: why``."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Task: ...
