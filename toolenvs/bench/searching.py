"""What a search step costs at a size: building the index, 32 episodes at once, memory."""

from __future__ import annotations

import gc
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.bench.interleave import Progress
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, percentile
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.runtimes.index import Index
from toolenvs.tasks import TaskList
from toolenvs.types import Passage, Task, ToolCall
from toolenvs.vector import ToolVectorEnv

_WORDS = 60  # of a passage, as many as one of Wikipedia's has on average in retrieval corpora
_VOCABULARY = 200_000
_QUERY_WORDS = 6
_TURNS = 1000
_MEASURED_EPISODES = 256  # for memory: one takes less than what an allocator asks for at once


class SearchingRow(msgspec.Struct, frozen=True, kw_only=True):
    """Search steps of environments that take turns, or of a batch of them.

    Attributes:
        way: ``"in_turn"``: one step after another, each of the next episode; ``"batch"``: all
            episodes' steps in one ``step`` of a vector, whose time is divided by their number.
        payload: backend and size.
        n: steps, or batches.
        p50_ms, p95_ms: milliseconds of one step.
    """

    way: str
    payload: str
    n: int
    p50_ms: float
    p95_ms: float


class SearchingReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_searching`` found.

    Attributes:
        rows: the steps.
        ratios: none; every bench has the key.
        passages: size of the corpus.
        build_s: seconds to read the corpus and build the index.
        built_per_s: passages a second.
        index_mib: size of all that was written, the passages included.
        peak_build_mib: largest resident memory of this process so far, right after building.
        episode_kib: resident memory of one more episode.
        setting: the machine.
    """

    rows: tuple[SearchingRow, ...]
    ratios: dict[str, Interval]
    passages: int
    build_s: float
    built_per_s: float
    index_mib: float
    peak_build_mib: float
    episode_kib: float
    setting: Setting


class DrawnCorpus:
    """Passages of words drawn by Zipf's law, the same for the same size and seed.

    Args:
        size: number of passages.
        seed: of the stream.
    """

    name = "drawn"

    def __init__(self, size: int, *, seed: int = 0) -> None:
        self._size = size
        self._seed = seed
        self.digest = f"drawn {size} {seed} {_WORDS} {_VOCABULARY}"

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Passage]:
        stream = random.Random(self._seed)  # noqa: S311 - words of a bench are no secret
        for number in range(self._size):
            words = draw_words(stream, _WORDS)
            text = " ".join(words).capitalize() + "."
            yield Passage(id=f"p{number}", title=" ".join(words[:2]), text=text)


def draw_words(stream: random.Random, count: int) -> list[str]:
    """Words of which the r-th commonest comes about 1/r as often as the first."""
    return [_word(int(_VOCABULARY ** stream.random()) - 1) for _ in range(count)]


def bench_searching(
    passages: int = 100_000,
    *,
    episodes: int = 32,
    repeats: int = 30,
    backend: str = "bm25",
    progress: Progress | None = None,
) -> SearchingReport:
    """Build an index of drawn passages and step many episodes that search it.

    The index is built in a folder of its own, which is removed at the end.

    Args:
        passages: size of the corpus.
        episodes: environments at once.
        repeats: steps of each.
        backend: a backend that searches a corpus.
        progress: called after each of three parts.

    Raises:
        RuntimeFailure: The index cannot be built.
        UsageError: A number makes no sense.
    """
    if passages < 1 or episodes < 2 or not 1 <= repeats <= _TURNS - 2:
        raise UsageError(
            f"passages={passages} must be 1 or more, episodes={episodes} 2 or more, "
            f"repeats={repeats} 1 to {_TURNS - 2}."
        )
    done = progress or (lambda: None)
    setting = look_around("index")
    with _own_cache() as folder:
        index = Index(backend=backend, corpus=DrawnCorpus(passages))
        began = time.perf_counter()
        run(index.start())
        build_s = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        done()
        payload = f"{backend} {passages} passages"
        queries = _queries(episodes * repeats)
        seconds, episode_kib = _in_turn(index, queries, episodes)
        done()
        batches = _in_batches(index, queries, episodes)
        done()
    return SearchingReport(
        rows=(
            _row("in_turn", payload, seconds),
            _row("batch", payload, batches),
        ),
        ratios={},
        passages=passages,
        build_s=build_s,
        built_per_s=passages / build_s,
        index_mib=size / 2**20,
        peak_build_mib=peak,
        episode_kib=episode_kib,
        setting=setting,
    )


def _in_turn(index: Index, queries: list[str], episodes: int) -> tuple[list[float], float]:
    """Seconds of each step, and KiB of memory that one more episode takes."""
    envs = [_env(index)]
    _step(envs[0], "warm up")
    before = _resident_kib()
    try:
        while len(envs) <= _MEASURED_EPISODES:
            envs.append(_env(index))
            _step(envs[-1], "warm up")
        episode_kib = (_resident_kib() - before) / _MEASURED_EPISODES
        seconds = [_step(envs[n % episodes], query) for n, query in enumerate(queries)]
    finally:
        for env in envs:
            env.close()
    return seconds, episode_kib


def _in_batches(index: Index, queries: list[str], episodes: int) -> list[float]:
    """Seconds of each vector step, divided by the number of slots."""
    envs = ToolVectorEnv(episodes, runtimes={"index": index}, **_settings())
    try:
        envs.reset(seed=0)
        seconds = []
        compose = envs.envs[0].format.compose
        for first in range(0, len(queries), episodes):
            actions = [compose([_call(query)]) for query in queries[first : first + episodes]]
            began = time.perf_counter()
            envs.step(actions)
            seconds.append((time.perf_counter() - began) / episodes)
    finally:
        envs.close()
    return seconds


def _env(index: Index) -> ToolEnv:
    env = ToolEnv(runtimes={"index": index}, **_settings())
    env.reset(seed=0)
    return env


def _settings() -> dict[str, Any]:
    task = Task(id="drawn", prompt="Search.", answer="none", family="search")
    return {
        "family": "search",
        "tasks": TaskList([task]),
        "tools": ["search", "submit"],
        "rewards": {"terms": [{"reward": "tool_success"}], "known_hacks": ["nothing is graded"]},
        "max_turns": _TURNS,
        "max_calls": _TURNS,
        "max_obs_tokens": 1 << 20,
    }


def _step(env: ToolEnv, query: str) -> float:
    action = env.format.compose([_call(query)])
    began = time.perf_counter()
    _, _, terminated, truncated, info = env.step(action)
    took = time.perf_counter() - began
    if terminated or truncated:
        raise RuntimeFailure("bench", f"an episode ended amid the bench: {info['end_reason']}")
    return took


def _call(query: str) -> ToolCall:
    return ToolCall("search", {"query": query})


def _queries(count: int) -> list[str]:
    stream = random.Random(1)  # noqa: S311 - words of a bench are no secret
    return [" ".join(draw_words(stream, _QUERY_WORDS)) for _ in range(count)]


def _word(rank: int) -> str:
    """A pronounceable word of its own for each rank."""
    syllables = []
    rank += 1
    while rank:
        rank, consonant = divmod(rank, 20)
        rank, vowel = divmod(rank, 5)
        syllables.append("bcdfghjklmnpqrstvwxz"[consonant] + "aeiou"[vowel])
    return "".join(syllables)


def _row(way: str, payload: str, seconds: list[float]) -> SearchingRow:
    return SearchingRow(
        way=way,
        payload=payload,
        n=len(seconds),
        p50_ms=percentile(seconds, 50) * 1e3,
        p95_ms=percentile(seconds, 95) * 1e3,
    )


def _resident_kib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


@contextmanager
def _own_cache() -> Iterator[Path]:
    """A cache folder that is gone afterwards."""
    before = os.environ.get("XDG_CACHE_HOME")
    folder = tempfile.mkdtemp(prefix="toolenvs-bench-")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        yield Path(folder)
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
        shutil.rmtree(folder, ignore_errors=True)
