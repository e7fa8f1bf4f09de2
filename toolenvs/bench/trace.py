"""What a simulated model says, and how long it takes to say it: drawn once, the same for all.

A trace is a file of JSON Lines: first the settings it was drawn with, then one line for each turn
with its latency and text. Whoever reads it back plays exactly the same episodes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import numpy as np

from toolenvs.errors import DataError, UsageError
from toolenvs.types import Task, ToolCall

T = TypeVar("T")
Compose = Callable[[Sequence[ToolCall]], str]

MAX_EXTRA_TURNS = 5
"""Turns of trying things out that precede a task's own calls: 0 to this many."""

WRONG_ANSWER_SHARE = 0.25
FRESH_SHARE = 0.25
"""Share of the turns of trying out that use a fresh interpreter instead of the episode's own."""

KEPT_TOOL, FRESH_TOOL = "python_session", "python"

_PAYLOADS = (
    "print({a} * {b})",
    "import sympy\nx = sympy.Symbol('x')\nprint(sympy.solve(x**2 - {c}*x - {a}, x))",
    "import numpy\nm = numpy.arange({a}.0 * 40).reshape(40, -1)\nprint(int((m @ m.T).trace()))",
    "print(sum(i * i % {b} for i in range({a}00)))",
    "print(undefined_name_{a})",
)
"""From microseconds to some ten milliseconds, one of them a mistake."""


class TraceTurn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the simulated model and the seconds that it takes to write it.

    ``turn`` counts from 0 and ``turns`` is how many the episode has.
    """

    episode: int
    turn: int
    turns: int
    task_id: str
    latency_s: float
    text: str


class TraceHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a trace was drawn with: enough to draw it again and to set its environments up.

    Attributes:
        family, tasks, format: the environments' settings of these names.
        seed: draws texts and latencies, at least 0.
        episodes: at least 1.
        median_s: median seconds that the simulated model takes for a turn, above 0.
        sigma: standard deviation of the latency's logarithm, at least 0; the mean latency is
            ``median_s * exp(sigma**2 / 2)``.
        distribution: of the latencies, each turn on its own.
    """

    family: str = "math_tir"
    tasks: str = "generated"
    format: str = "hermes"
    seed: int = 0
    episodes: int = 32
    median_s: float = 0.1
    sigma: float = 0.8
    distribution: Literal["lognormal"] = "lognormal"
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.seed < 0:
            raise UsageError(
                f"episodes={self.episodes}, seed={self.seed}: give at least one episode and a seed "
                "of at least 0."
            )
        if not (0 < self.median_s < math.inf and 0 <= self.sigma < math.inf):
            raise UsageError(
                f"median_s={self.median_s}, sigma={self.sigma}: give seconds above 0 and a "
                "deviation of at least 0."
            )

    def latencies(self, rng: np.random.Generator, n: int) -> list[float]:
        """Draw ``n`` latencies in seconds."""
        logs = rng.standard_normal(n) * self.sigma
        return [float(value) for value in self.median_s * np.exp(logs)]


class Trace(msgspec.Struct, frozen=True):
    """All turns of all episodes, by episode and turn."""

    head: TraceHead
    episodes: tuple[tuple[TraceTurn, ...], ...]

    @property
    def model_s(self) -> float:
        """Seconds of the simulated model over all turns."""
        return sum(turn.latency_s for turns in self.episodes for turn in turns)

    @property
    def longest_s(self) -> float:
        """Seconds of the simulated model in the slowest episode."""
        return max(sum(turn.latency_s for turn in turns) for turns in self.episodes)

    def encode(self) -> bytes:
        """The trace as JSON Lines; equal traces give equal bytes."""
        lines = [self.head, *(turn for turns in self.episodes for turn in turns)]
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)

    @property
    def sha256(self) -> str:
        """Content hash, to tell in a report which trace was played."""
        return hashlib.sha256(self.encode()).hexdigest()


def draw_trace(head: TraceHead, tasks: Sequence[Task], compose: Compose) -> Trace:
    """Draw ``head.episodes`` episodes over ``tasks`` in turn, each from a stream of its own.

    Each episode tries 0 to ``MAX_EXTRA_TURNS`` things out, makes its task's gold calls, one a turn,
    and submits, sometimes a wrong answer. A longer trace of one seed begins with the shorter.

    Args:
        head: settings.
        tasks: at least one, with ``gold_calls``.
        compose: writes one turn's calls as the model's text.
    """
    if not tasks:
        raise UsageError("a trace needs at least one task.")
    episodes = []
    for number in range(head.episodes):
        task = tasks[number % len(tasks)]
        rng = np.random.default_rng([head.seed, number])
        texts = [compose(calls) for calls in _script(task, rng)]
        delays = head.latencies(rng, len(texts))
        episodes.append(
            tuple(
                TraceTurn(
                    episode=number,
                    turn=turn,
                    turns=len(texts),
                    task_id=task.id,
                    latency_s=delay,
                    text=text,
                )
                for turn, (delay, text) in enumerate(zip(delays, texts, strict=True))
            )
        )
    return Trace(head, tuple(episodes))


def load_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        DataError: A line cannot be used; the message starts with ``path:line``.
    """
    lines = path.read_bytes().splitlines()
    if not lines:
        raise DataError(f"{path}:1: the file is empty; a trace begins with its settings.")
    head = _decode(path, 1, lines[0], TraceHead)
    episodes: list[list[TraceTurn]] = []
    expected = 0, 0
    for number, line in enumerate(lines[1:], start=2):
        turn = _decode(path, number, line, TraceTurn)
        if (turn.episode, turn.turn) != expected or turn.turn >= turn.turns:
            raise DataError(
                f"{path}:{number}: turn {turn.turn} of episode {turn.episode} stands where turn "
                f"{expected[1]} of episode {expected[0]} belongs."
            )
        if not turn.latency_s >= 0:
            raise DataError(f"{path}:{number}: latency_s={turn.latency_s} is below 0.")
        if turn.turn == 0:
            episodes.append([])
        episodes[-1].append(turn)
        last = turn.turn + 1 == turn.turns
        expected = (turn.episode + 1, 0) if last else (turn.episode, turn.turn + 1)
    if expected != (head.episodes, 0):
        raise DataError(
            f"{path}:{len(lines)}: the file ends before turn {expected[1]} of episode "
            f"{expected[0]}; it should hold {head.episodes} whole episodes."
        )
    return Trace(head, tuple(tuple(turns) for turns in episodes))


def _decode(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}:{number}: {error}.") from error


def _script(task: Task, rng: np.random.Generator) -> list[list[ToolCall]]:
    """The calls of each turn of one episode."""
    extra = int(rng.integers(0, MAX_EXTRA_TURNS + 1))
    turns = [[ToolCall(_tool(rng), {"code": _payload(rng)})] for _ in range(extra)]
    turns += [[ToolCall(KEPT_TOOL, _code(call))] for call in task.gold_calls]
    wrong = rng.random() < WRONG_ANSWER_SHARE
    turns.append([ToolCall("submit", {"answer": "no answer" if wrong else task.answer})])
    return turns


def _tool(rng: np.random.Generator) -> str:
    return FRESH_TOOL if rng.random() < FRESH_SHARE else KEPT_TOOL


def _payload(rng: np.random.Generator) -> str:
    template = _PAYLOADS[int(rng.integers(len(_PAYLOADS)))]
    a, b, c = (int(rng.integers(low, high)) for low, high in ((100, 1000), (3, 98), (2, 50)))
    return template.format(a=a, b=b, c=c)


def _code(call: Mapping[str, object]) -> Mapping[str, str]:
    arguments = call["arguments"]
    assert isinstance(arguments, Mapping)
    return {"code": str(arguments["code"])}
