"""The records that flow through the package: plain, frozen, serialisable.

Shapes are declared with ``msgspec.Struct``: typed, immutable, and encoded to JSON without a schema
of their own. Nothing here does anything; ``episode`` shows the flow.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from toolenvs.errors import UsageError
from toolenvs.moments import epoch_ns

ErrorKind = Literal[
    "format",  # the message holds no readable call
    "unknown_tool",
    "bad_arguments",
    "raised",  # the agent's code raised
    "exited",  # the agent's code ended its interpreter with a status other than 0
    "timeout",
    "memory",
    "killed",  # the agent's interpreter died by a signal
    "disk",
    "output",
    "processes",
    "refused",  # forbidden to the agent, such as a write to a read-only database
]

Message = dict[str, Any]
"""One chat message in OpenAI's layout: ``role``, ``content``, and tool fields where they apply."""


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """The database that a task is about.

    Attributes:
        name: what it is called, such as ``"concert_singer"``.
        engine: what runs its statements.
        place: where the sandbox finds it, never a path of this machine: for SQLite a file within
            the runtime's data folders (``"spider/concert_singer/concert_singer.sqlite"``), for
            PostgreSQL the name of a template.
        digest: SHA-256 of its content and that of its instances, hexadecimal: results recorded on
            another content are not served.
        writable: the task asks for changes, so that each episode has a copy of its own.
        instances: places of further databases with the same schema, on which a query is judged
            too; the agent never sees them.
    """

    name: str
    engine: Literal["sqlite", "postgres"] = "sqlite"
    place: str = ""
    digest: str = ""
    writable: bool = False
    instances: tuple[str, ...] = ()

    @property
    def needs(self) -> str:
        """Where its statements run, as tools say what they need."""
        return "sandbox:sql" if self.engine == "sqlite" else "service:postgres"


class Passage(msgspec.Struct, frozen=True):
    """One document of a corpus, or one page: what a search finds and the agent opens."""

    id: str
    title: str
    text: str
    url: str = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One problem.

    Attributes:
        id: stable text id, unique in its source.
        prompt: what the agent is asked.
        answer: the gold answer; never reaches a sandbox or, before the end, an observation.
        family: ``"math_tir"``, ``"sql"`` or ``"search"``.
        files: files laid into the sandbox's working folder, by relative name.
        grading: the policy by which ``answer`` is compared, as keyword arguments of the grader.
        gold_calls: calls ``{"name": ..., "arguments": {...}}`` that lead to the answer, if known.
        gradable: False when the gold answer fails its own grading; then it never pays.
        data: whatever else the source's row held.
        database: the database that it is about, None where there is none.
        now: the moment at which the clock of Python code begins, ISO 8601 (see
            ``moments.epoch_ns``); ``""`` for the real clock.

    Raises:
        UsageError: ``now`` is no moment.
    """

    id: str
    prompt: str
    answer: str = ""
    family: str = "math_tir"
    files: Mapping[str, str] = {}
    grading: Mapping[str, Any] = {}
    gold_calls: tuple[Mapping[str, Any], ...] = ()
    gradable: bool = True
    data: Mapping[str, Any] = {}
    database: Database | None = None
    now: str = ""

    def __post_init__(self) -> None:
        if self.now:
            epoch_ns(self.now)


class ToolSpec(msgspec.Struct, frozen=True):
    """What an agent is told of one tool: its name, purpose and JSON schema of arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool, as the agent wrote it: arguments are not validated yet."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


class ToolError(msgspec.Struct, frozen=True):
    """What went wrong in a call, by the agent's own doing."""

    kind: ErrorKind
    message: str


class ToolResult(msgspec.Struct, frozen=True):
    """What a call gave.

    Attributes:
        text: what the agent reads, before the format wraps it.
        data: the same for rewards and tools of analysis: ``stdout``, ``answer``, ``rows`` ...
        error: the agent's fault, or None.
        terminal: True when the call ends the episode (``submit``).
        truncated: True when ``text`` was cut to its limit.
        note: one sentence on what the machine did, such as a restarted interpreter; also in
            ``text``.
    """

    text: str
    data: Mapping[str, Any] = {}
    error: ToolError | None = None
    terminal: bool = False
    truncated: bool = False
    note: str = ""


FINISH_REASONS = frozenset(
    (
        *("", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "content_filter"),
        *("length", "max_tokens", "max_length", "abort", "error"),
        *("tool_calls", "tool_use", "function_call"),
    )
)
"""Why samplers and APIs say that they ended a text, in lower case."""


class Turn(str):
    """An action that carries what the sampler knows: still a ``str``, so any wrapper passes it.

    Args:
        text: the model's own text.
        finish_reason: ``"stop"``, ``"length"`` (cut by the token limit) or ``""``; None is ``""``,
            and the other words of ``FINISH_REASONS`` are known, in any case.
        stop_string: the stop string that the sampler removed from the end, ``""`` if none.
        token_ids: the sampled token ids, ints (numpy's too), kept as they were sampled.
        logprobs: their log-probabilities, floats (numpy's too), natural logarithm, one for each
            token.
        policy_version: which weights sampled it, by number (int) or name; ``""`` where not told.

    Raises:
        UsageError: A value is of another kind, so that no record of it could be read again.
    """

    finish_reason: str
    stop_string: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    policy_version: int | str

    __slots__ = ("finish_reason", "logprobs", "policy_version", "stop_string", "token_ids")

    def __new__(
        cls,
        text: str = "",
        finish_reason: str | None = "",
        stop_string: str | None = "",
        token_ids: tuple[int, ...] = (),
        logprobs: tuple[float, ...] = (),
        policy_version: int | str | None = "",
    ) -> Turn:
        self = super().__new__(cls, text)
        self.finish_reason = _finish_reason(finish_reason)
        if not isinstance(stop_string, str | None):
            raise UsageError(f"Turn: stop_string={stop_string!r} must be a text.")
        self.stop_string = stop_string or ""
        self.token_ids = _numbers("token_ids", token_ids, int, "__index__")
        self.logprobs = _numbers("logprobs", logprobs, float, "__float__")
        self.policy_version = _policy_version(policy_version)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        sampled = self.finish_reason, self.stop_string, self.token_ids, self.logprobs
        return str(self), *sampled, self.policy_version

    @classmethod
    def of(cls, text: str) -> Turn:
        """Return ``text`` itself if it is a Turn already, else a Turn that knows only the text."""
        return text if isinstance(text, Turn) else cls(text)


def _finish_reason(reason: object) -> str:
    if reason is None:
        return ""
    if not isinstance(reason, str) or reason.lower() not in FINISH_REASONS:
        known = ", ".join(map(repr, sorted(FINISH_REASONS)))
        raise UsageError(f"Turn: finish_reason={reason!r} is not known; known are {known}.")
    return reason


def _policy_version(version: Any) -> int | str:
    if isinstance(version, str | None):
        return str(version or "")
    whole = hasattr(version, "__index__") and not isinstance(version, bool)
    if not whole or not -(1 << 63) <= operator.index(version) < 1 << 63:
        raise UsageError(f"Turn: policy_version={version!r} must be a text or an int of 64 bits.")
    return operator.index(version)


def _numbers(name: str, values: Any, kind: type[Any], converts: str) -> tuple[Any, ...]:
    """``values`` as Python's own numbers; they come by the thousand, so mostly only looked at."""
    try:
        numbers = tuple(values)
    except TypeError:
        raise UsageError(f"Turn: {name}={values!r} must be a list of numbers.") from None
    if set(map(type, numbers)) <= {kind}:
        return numbers
    for index, value in enumerate(numbers):
        if isinstance(value, str | bool) or not hasattr(value, converts):
            raise UsageError(f"Turn: {name}[{index}]={value!r} must be of type {kind.__name__}.")
    return tuple(map(kind, numbers))


class ParsedTurn(msgspec.Struct, frozen=True):
    """A model's message, read by a format.

    Attributes:
        calls: the calls to run, in order; at most one ``submit``, and then it is the last.
        error: the one problem because of which nothing is run, or None. ``calls`` is then empty.
        problems: everything that keeps the message from being well-formed, one sentence each;
            empty for a clean message. Rewards for format read this.
        cut: True when the token limit cut the message: nothing is run and it is no format error.
        repaired: True when a call was read only after a repair; then ``problems`` says so.
        thought: the text inside ``<think>``, never run or graded.
    """

    calls: tuple[ToolCall, ...] = ()
    error: ToolError | None = None
    problems: tuple[str, ...] = ()
    cut: bool = False
    repaired: bool = False
    thought: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one sandbox may use.

    Attributes:
        timeout_s: seconds for one call. They count while the code runs or sleeps, not while it is
            ready but waits for a processor, and no more than this much processor time is used.
        backstop: wall-clock seconds of one call, as a multiple of ``timeout_s``.
        grace_s: seconds between the interrupt and the kill.
        memory_bytes: memory beside that of the loaded interpreter, in two ways. No process may add
            more address space: what goes beyond raises ``MemoryError``, status ``"memory"``. And
            all processes of a sandbox together may not hold more, pages that they share counted
            once: a sandbox beyond that is ended, status ``"memory"``. Where the machine has less
            for it, since others take their shares, that is no fault of the sandbox's:
            ``RuntimeFailure`` of kind ``"memory"``.
        processes: processes and threads of one sandbox.
        disk_bytes: bytes in the working folder.
        file_bytes: bytes in one file.
        output_bytes: bytes kept of each of stdout and stderr, a call's share of a session.
    """

    timeout_s: float = 10.0
    backstop: float = 10.0
    grace_s: float = 0.3
    memory_bytes: int = 1 << 30
    processes: int = 32
    disk_bytes: int = 16 << 20
    file_bytes: int = 16 << 20
    output_bytes: int = 1 << 20


ExecStatus = Literal[
    "ok", "raised", "exited", "timeout", "memory", "killed", "output", "disk", "processes"
]


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one piece of code ended. A failing program is a value, not an exception.

    Attributes:
        status: from signals, exit status and limits as seen outside the sandbox, except ``ok``,
            ``raised``, ``memory`` (a MemoryError), ``disk`` and ``processes``, which the code's own
            interpreter reports: no reward may rely on those alone.
        stdout: what it printed, with the value of a last expression; valid UTF-8, undecodable bytes
            as U+FFFD, at most ``Limits.output_bytes``.
        stderr: warnings and the traceback.
        exit_code: the process's exit status, 0 while it lives.
        signal: the signal that ended it, 0 if none.
        session_lost: True when the interpreter is gone, with its variables.
        output_cut: True when the output limit was reached.
        cpu_s: processor seconds of the call; not reproducible, so never in info or a record.
        wall_s: wall seconds from the moment the code started to run; likewise.
    """

    status: ExecStatus
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    signal: int = 0
    session_lost: bool = False
    output_cut: bool = False
    cpu_s: float = 0.0
    wall_s: float = 0.0


class Score(msgspec.Struct, frozen=True):
    """A component's score of the trajectory so far; a masked score counts 0 and says so."""

    value: float
    reason: str = ""
    masked: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: everything that scoring, replay and export need.

    ``terms`` sum to ``reward``. ``parsed`` is None for a step that ``act`` or ``finish`` made.
    ``evidence`` holds the results of the private calls that rewards asked for.
    """

    action: str
    finish_reason: str = ""
    stop_string: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    policy_version: int | str = ""
    parsed: ParsedTurn | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    evidence: tuple[tuple[ToolCall, ToolResult], ...] = ()
    observation: str = ""
    scores: Mapping[str, Score] = {}
    terms: Mapping[str, float] = {}
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    end_reason: str = ""
    failure: str = ""


Branch = tuple[tuple[int, int], ...]
"""A path in a tree of rollouts: of each fork the steps before it and the branch's number."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One episode so far: the task, how it was set up, and its steps.

    ``settings`` holds what replay needs (format, rubric and its hash, limits, fingerprint, seeds);
    no clock, host, path or random id is in a trajectory.

    ``branch`` is its path in a tree of rollouts: for each fork that led to it, the number of steps
    before the fork and the number of the branch, counted from 0; empty for what no fork made.
    """

    task: Task
    prompt: str = ""
    settings: Mapping[str, Any] = {}
    seed: int = 0
    sample: int = 0
    branch: Branch = ()
    steps: tuple[Step, ...] = ()
    version: int = 1

    @property
    def ended(self) -> bool:
        """True once a step terminated or truncated the episode."""
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def score(self) -> float:
        """The episode's score: the sum of its rewards."""
        return float(sum(step.reward for step in self.steps))
