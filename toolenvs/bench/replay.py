"""What replaying costs: a step served from the cache, and a look-up beside that of a dictionary."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from toolenvs import formats, tools
from toolenvs.bench.interleave import Progress, Timed, clocked, interleave
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, median_interval, paired_ratios, percentile
from toolenvs.cache import ReplayCache
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes.scripted import Scripted
from toolenvs.statekey import CallKey, StateKeys, Surroundings, identity
from toolenvs.tools.python import Python
from toolenvs.types import Task, ToolCall, ToolResult

STEPS = 64
"""Steps of the episode that is replayed; a round takes its whole length."""

LOOK_UPS = 256
"""Look-ups of a round."""

SMALL = 1000
"""Entries of the small cache."""

_SORTED = 50_000  # entries put in the order of their keys, which lie together in the file


class ReplayRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way over ``n`` rounds, in milliseconds for one step or look-up."""

    way: str
    payload: str
    n: int
    p50_ms: float
    p95_ms: float
    least_ms: float
    per_s: float


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_replay`` found.

    ``ratios["env_step / dict"]`` says how many times longer the first way takes than the second:
    median and interval of the ratios within each round.
    """

    rows: tuple[ReplayRow, ...]
    ratios: dict[str, Interval]
    setting: Setting


def bench_replay(
    *,
    entries: int = 100_000,
    repeats: int = 50,
    warmup: int = 5,
    progress: Progress | None = None,
) -> ReplayReport:
    """Time replayed steps of the scripted sandbox, and look-ups in a small and a large cache.

    Args:
        entries: entries of the large cache, more than ``SMALL``.
        repeats: rounds that count.
        warmup: rounds before them that do not.
        progress: called at the end of each round.

    Raises:
        UsageError: A number makes no sense.
        RuntimeFailure: A look-up or step gave something wrong.
    """
    if entries <= SMALL:
        raise UsageError(f"entries={entries}: give more than {SMALL}.")
    with TemporaryDirectory(prefix="toolenvs-bench-") as folder, ExitStack() as open_things:
        small = open_things.enter_context(closing(_filled(Path(folder, "small.db"), SMALL)))
        large = open_things.enter_context(closing(_filled(Path(folder, "large.db"), entries)))
        stepper = open_things.enter_context(closing(_Steps(Path(folder, "steps.db"))))
        results = {_key(n).key: _result(n) for n in range(SMALL)}
        ways: dict[str, tuple[int, Timed]] = {
            "env_step": (STEPS, stepper.replay),
            "dict": (LOOK_UPS, _look_ups(SMALL, lambda key: results[key.key])),
            f"cache_of_{SMALL}": (LOOK_UPS, _look_ups(SMALL, lambda key: _got(small, key))),
            f"cache_of_{entries}": (LOOK_UPS, _look_ups(entries, lambda key: _got(large, key))),
        }
        seconds = interleave(
            {name: timed for name, (_, timed) in ways.items()},
            repeats=repeats,
            warmup=warmup,
            progress=progress,
        )
    each = {name: [value / ways[name][0] for value in took] for name, took in seconds.items()}
    return ReplayReport(
        rows=tuple(_row(name, values) for name, values in each.items()),
        ratios={
            f"{one} / {other}": median_interval(paired_ratios(each[one], each[other]))
            for one, other in (
                ("env_step", "dict"),
                (f"cache_of_{SMALL}", "dict"),
                (f"cache_of_{entries}", f"cache_of_{SMALL}"),
            )
        },
        setting=look_around("scripted"),
    )


class _Steps:
    """An episode that was recorded, to be replayed over and over."""

    def __init__(self, file: Path) -> None:
        self._messages = [
            formats.make("hermes").compose([ToolCall("python_session", {"code": f"x += {n}"})])
            for n in range(STEPS)
        ]
        with closing(self._env(file, "record")) as env:
            self._recorded = self._play(env)
        self._replayed = self._env(file, "replay")

    def replay(self) -> float:
        """Seconds for the steps of one episode; the reset before them is not counted."""
        seen: list[str] = []
        self._replayed.reset(options={"task_id": "bench", "sandbox_seed": 0})
        took = clocked(lambda: seen.extend(self._take(self._replayed)))
        if seen != self._recorded:
            raise RuntimeFailure("bench", "a replayed step gave another observation.")
        return took

    def close(self) -> None:
        self._replayed.close()

    def _play(self, env: ToolEnv) -> list[str]:
        env.reset(options={"task_id": "bench", "sandbox_seed": 0})
        return self._take(env)

    def _take(self, env: ToolEnv) -> list[str]:
        return [env.step(message)[0] for message in self._messages]

    def _env(self, file: Path, mode: Any) -> ToolEnv:
        return ToolEnv(
            tasks=[Task(id="bench", prompt="Add.", answer="0")],
            tools=["python_session", "submit"],
            sandbox=Scripted(default="1\n"),
            max_turns=STEPS + 1,
            replay=mode,
            cache=f"sqlite:///{file}",
        )


def _filled(file: Path, entries: int) -> ReplayCache:
    cache = ReplayCache(f"sqlite:///{file}")
    for start in range(0, entries, _SORTED):
        made = [(_key(n), n) for n in range(start, min(start + _SORTED, entries))]
        for key, number in sorted(made, key=lambda pair: pair[0].key):
            cache.put(key, _result(number))
    cache.flush()
    return cache


def _look_ups(entries: int, look_up: Any) -> Timed:
    """Look ``LOOK_UPS`` entries up that are spread evenly and asked for in a random order."""
    draw = random.Random(0)  # noqa: S311 - no secret depends on it
    rounds = itertools.count()

    def timed() -> float:
        numbers = draw.sample(range(entries), LOOK_UPS)
        keys = [_key(number) for number in numbers]
        found: list[ToolResult] = []
        took = clocked(lambda: found.extend(map(look_up, keys)))
        if [result.text for result in found] != [_result(number).text for number in numbers]:
            raise RuntimeFailure("bench", f"round {next(rounds)}: a look-up gave a wrong result.")
        return took

    return timed


def _got(cache: ReplayCache, key: CallKey) -> ToolResult:
    found = cache.get(key)
    if found is None:
        raise RuntimeFailure("bench", "an entry of the cache was not found.")
    return found.result


_TOOL = tools.make("python")
_KEYS = StateKeys(
    Surroundings(
        task=Task(id="bench", prompt=""), seed=0, runtimes={"sandbox:python": {"name": "bench"}}
    ),
    tools={"python": identity(_TOOL)},
)


def _key(number: int) -> CallKey:
    return _KEYS.key(_TOOL, Python.Args(code=f"print({number})"))


def _result(number: int) -> ToolResult:
    return ToolResult(text=f"{number}\n", data={"stdout": f"{number}\n", "stderr": ""})


def _row(way: str, seconds: Sequence[float]) -> ReplayRow:
    return ReplayRow(
        way=way,
        payload="scripted",
        n=len(seconds),
        p50_ms=percentile(seconds, 50) * 1e3,
        p95_ms=percentile(seconds, 95) * 1e3,
        least_ms=min(seconds) * 1e3,
        per_s=1 / percentile(seconds, 50),
    )
