"""Replay modes: what is served, what runs, what is recorded, and that nobody can tell."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import CountingSandbox, FakePool
from toolenvs import tools
from toolenvs.cache import ReplayCache
from toolenvs.drivers import Loop, Sleep, run
from toolenvs.errors import CacheMissError, RuntimeFailure
from toolenvs.executor import Executor
from toolenvs.playback import Mode, Playback
from toolenvs.types import ExecResult, Task, ToolCall, ToolError, ToolResult

TASK = Task(id="t", prompt="p", answer="GOLD")
PLACE = "sandbox:python"


class WordSandbox(CountingSandbox):
    """Also knows ``late`` (interrupted, the session lives), ``full`` (out of memory) and ``slow``;
    ``clock`` and ``folder`` print what no other sandbox prints.
    """

    made = 0

    def __init__(self) -> None:
        super().__init__()
        WordSandbox.made += 1
        self.number = WordSandbox.made

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        result = await super().execute(code, timeout_s=timeout_s)
        if code == "late":
            return ExecResult(status="timeout", stdout=f"{len(self.calls)}")
        if code == "full":
            return ExecResult(status="memory")
        if code == "folder":
            return ExecResult(status="ok", stdout=f"/work/{self.number}/a.csv\n")
        if code == "clock":
            return ExecResult(status="ok", stdout=f"{self.number}\n")
        if code.startswith("slow"):
            await Sleep(0.02)
        if code == "slow clock":
            return ExecResult(status="ok", stdout=f"{self.number}\n")
        return result


class Outside:
    """A tool of the outside world, which gives another result each time."""

    name = "search"
    description = "searches"
    needs = ""
    kind = "external"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        query: str

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def run(self, args: Any, context: Any) -> ToolResult:
        """Search, or fail as a machine does."""
        self.calls.append(args.query)
        if args.query == "down" and len(self.calls) == 1:
            raise RuntimeFailure("http", "the server timed out")
        return ToolResult(f"result {len(self.calls)}")


class Made:
    """An executor with its fakes."""

    def __init__(
        self,
        cache: ReplayCache,
        mode: Mode = "auto",
        *,
        seed: int = 5,
        sample: int = 0,
        share_external: bool = False,
        fingerprint: str = "fake",
        own_folders: str = "",
        outside: Outside | None = None,
    ) -> None:
        self.pool = FakePool(WordSandbox)
        self.counts: dict[str, float] = {}
        self.outside = outside or Outside()
        made: dict[str, Any] = {n: tools.make(n) for n in ("python", "python_session", "submit")}
        made["search"] = self.outside
        playback = None
        if mode != "off":
            playback = Playback(
                mode,
                cache,
                runtimes={PLACE: {"fingerprint": fingerprint, "own_folders": own_folders}},
                counts=self.counts,
                share_external=share_external,
            )
        self.executor = Executor(
            made,
            task=TASK,
            sandboxes={PLACE: self.pool},  # type: ignore[dict-item]
            seed=seed,
            playback=playback,
            episode=f"t {seed} {sample}",
        )

    def call(self, word: str, name: str = "python_session") -> ToolResult:
        """Run one word."""
        arguments = {"query": word} if name == "search" else {"code": word}
        return run(self.executor.run(ToolCall(name, arguments)))

    def texts(self, *words: str, name: str = "python_session") -> list[str]:
        """Run words and give what the agent reads."""
        return [self.call(word, name).text for word in words]

    @property
    def ran(self) -> list[list[str]]:
        """What each sandbox ran."""
        return [sandbox.calls for sandbox in self.pool.leased]


@pytest.fixture
def cache(tmp_path: Path) -> Any:
    """An empty cache."""
    with ReplayCache(f"sqlite:///{tmp_path / 'cache.db'}") as made:
        yield made


# -- auto ---------------------------------


def test_a_second_episode_is_served_without_a_sandbox(cache: ReplayCache) -> None:
    """What was recorded in the very same states needs nothing to run."""
    words = ("count", "raise", "count", "lose", "count", "count")
    first, second = Made(cache), Made(cache)
    assert first.texts(*words) == second.texts(*words)
    assert second.pool.leased == []
    assert "cache_hits" not in first.counts
    assert second.counts["cache_hits"] == len(words)


def test_a_result_that_tells_of_its_sandboxs_folder_is_not_served(cache: ReplayCache) -> None:
    """Where each sandbox has another: served, its next call would find the state to differ."""
    words = ("folder", "count")
    episodes = [Made(cache, own_folders="/work/[0-9]+") for _ in range(3)]
    told = [tuple(made.texts(*words)) for made in episodes]
    assert len(set(told)) == 3
    assert [made.ran for made in episodes] == [[["folder", "count"]]] * 3
    assert not any(made.counts.get("cache_differences") for made in episodes)
    again = Made(cache, "replay", own_folders="/work/[0-9]+")
    assert again.call("folder").text in {folder for folder, _ in told}  # in place, as a time-out is


def test_two_equal_calls_with_different_results_replay_as_they_were(cache: ReplayCache) -> None:
    """A counter is 0, 1, 2, whatever is asked for: the key covers the history."""
    for mode in ("record", "auto", "replay"):
        assert Made(cache, mode).texts("count", "count", "count") == ["0", "1", "2"]


def test_a_sandbox_starts_at_the_first_miss_and_catches_up(cache: ReplayCache) -> None:
    """Served calls run again before the first one that was never made."""
    Made(cache).texts("count", "count")
    later = Made(cache)
    assert later.texts("count", "count") == ["0", "1"]
    assert later.pool.leased == []
    assert later.texts("raise", "count")[1] == "3"
    assert later.ran == [["count", "count", "raise", "count"]]
    assert later.counts["caught_up"] == 2


def test_a_living_sandbox_that_is_behind_catches_up_in_place(cache: ReplayCache) -> None:
    """Served, run, served, run: one sandbox, every call in it once and in order."""
    Made(cache).texts("raise", "count", "count")
    one, two = Made(cache), Made(cache)
    assert one.texts("raise", "raise") == two.texts("raise", "raise")
    Made(cache).texts("raise", "raise", "count", "count")
    assert one.texts("count", "count", "count")[-1] == "4"
    assert one.ran == [["raise", "raise", "count", "count", "count"]]


def test_a_catch_up_that_differs_ends_the_episode(cache: ReplayCache) -> None:
    """A state that cannot be rebuilt is a failure; the call is marked, and then runs instead."""
    Made(cache).texts("clock")
    second = Made(cache)
    second.texts("clock")
    with pytest.raises(RuntimeFailure) as raised:
        second.call("count")
    assert raised.value.kind == "diverged"
    assert second.counts["cache_differences"] == 1
    cache.flush()
    assert cache.stats().differing == 1
    third = Made(cache)
    third.texts("clock")
    assert third.call("count").text == "1"


def test_an_episode_survives_the_death_of_its_sandbox(cache: ReplayCache) -> None:
    """What was served and what ran is all rebuilt in the next one."""
    Made(cache).texts("count", "count")
    one = Made(cache)
    one.texts("count", "count", "raise")
    one.pool.leased[0].dies_at = 0
    assert one.texts("count", "count") == ["3", "4"]
    assert one.ran[1] == ["count", "count", "raise", "count", "count"]
    assert one.executor.restarts == 1


def test_a_lost_session_begins_again_and_can_be_rebuilt(cache: ReplayCache) -> None:
    """After a loss the notes, the counts and the catch-up are those of a new interpreter."""
    for made in (Made(cache, "off"), Made(cache), Made(cache)):
        texts = made.texts("count", "lose", "count", "count")
        assert texts[3] == "1"
        assert "restarted" in texts[2]
        if made.pool.leased:
            made.pool.leased[-1].dies_at = 0
        assert made.call("slow").text == "2"


@pytest.mark.parametrize("word", ["late", "full"])
@pytest.mark.parametrize("name", ["python", "python_session"])
def test_time_outs_and_memory_errors_run_again(cache: ReplayCache, word: str, name: str) -> None:
    """They depend on the machine's mood: recorded, replayed, but never served by auto."""
    for _ in range(2):
        one = Made(cache)
        assert one.call(word, name).error is not None
        assert len(one.pool.leased) == 1
    assert Made(cache, "replay").call(word, name).error is not None
    cache.flush()
    assert cache.stats().servable == 0


@pytest.mark.parametrize("word", ["late", "full"])
def test_nothing_after_an_interrupted_call_is_recorded(cache: ReplayCache, word: str) -> None:
    """The state that it left is not known, not even after the session was lost."""
    Made(cache).texts("count", word, "count", "lose", "count")
    cache.flush()
    assert cache.stats().entries == 2
    replayed = Made(cache, "replay")
    replayed.texts("count", word)
    with pytest.raises(CacheMissError, match="interrupted"):
        replayed.call("count")


def test_a_catch_up_never_passes_an_interrupted_call(cache: ReplayCache) -> None:
    """A sandbox that dies after one cannot be rebuilt."""
    one = Made(cache)
    one.texts("count", "late")
    one.pool.leased[0].dies_at = 0
    with pytest.raises(RuntimeFailure) as raised:
        one.call("count")
    assert raised.value.kind == "diverged"


def test_faults_of_the_machine_are_never_recorded(cache: ReplayCache) -> None:
    """A dead sandbox is no result, whatever the mode."""
    for mode in ("record", "auto", "verify"):
        with pytest.raises(RuntimeFailure):
            Made(cache, mode).call("die", "python")
    cache.flush()
    assert cache.stats().entries == 0


def test_pure_calls_do_not_depend_on_the_history(cache: ReplayCache) -> None:
    """A fresh interpreter gives the same whatever came before; another seed may not."""
    Made(cache).call("count", "python")
    later = Made(cache)
    later.call("raise", "python")
    assert later.call("count", "python").text == "0"
    assert len(later.pool.leased) == 1
    other = Made(cache, seed=6)
    other.call("count", "python")
    assert len(other.pool.leased) == 1


def test_another_runtime_is_another_state(cache: ReplayCache) -> None:
    """What one image gave is not served for another."""
    Made(cache).call("count")
    other = Made(cache, fingerprint="newer")
    other.call("count")
    assert len(other.pool.leased) == 1


# -- the outside world ---------------------------------


def test_the_outside_world_is_recorded_but_not_served(cache: ReplayCache) -> None:
    """Two equal searches may differ; a replay gives each its own, another episode asks anew."""
    first = Made(cache)
    assert first.texts("lyon", "lyon", name="search") == ["result 1", "result 2"]
    again = Made(cache)
    again.texts("lyon", name="search")
    assert again.outside.calls == ["lyon"]
    replayed = Made(cache, "replay")
    assert replayed.texts("lyon", "lyon", name="search") == ["result 1", "result 2"]
    assert replayed.outside.calls == []
    with pytest.raises(CacheMissError):
        Made(cache, "replay", sample=1).call("lyon", "search")


def test_the_outside_world_is_shared_when_asked(cache: ReplayCache) -> None:
    """Then one search serves every episode."""
    assert Made(cache, share_external=True).texts("lyon", name="search") == ["result 1"]
    other = Made(cache, share_external=True, sample=3, seed=9)
    assert other.texts("lyon", "lyon", name="search") == ["result 1", "result 1"]
    assert other.outside.calls == []


# -- replay and verify ---------------------------------


def test_a_replay_runs_nothing_and_a_miss_is_loud(cache: ReplayCache) -> None:
    """A miss names the nearest recording, and the episode can only be given up after it."""
    Made(cache).texts("count", "count")
    replayed = Made(cache, "replay")
    replayed.call("count")
    with pytest.raises(CacheMissError, match=r'nearest recording: python_session .*"count"'):
        replayed.call("raise")
    with pytest.raises(CacheMissError):
        replayed.call("count")
    assert replayed.pool.leased == []


def test_the_agents_own_errors_need_no_recording(cache: ReplayCache) -> None:
    """Unknown tools, bad arguments and submissions are answered in a replay too."""
    replayed = Made(cache, "replay").executor
    for call in (ToolCall("pythn", {}), ToolCall("python", {"cod": 1})):
        assert run(replayed.run(call)).error is not None
    assert run(replayed.run(ToolCall("submit", {"answer": 42}))).terminal


def test_verify_runs_again_and_tells_what_differs(
    cache: ReplayCache, caplog: pytest.LogCaptureFixture
) -> None:
    """The new result counts; a difference is counted, logged, and marked in the cache."""
    Made(cache).texts("clock", name="python")
    Made(cache).texts("count")
    verified = Made(cache, "verify")
    verified.texts("count")
    assert verified.counts.get("cache_differences", 0) == 0
    fresh = verified.texts("clock", name="python")
    assert verified.counts["cache_differences"] == 1
    assert fresh[0] in caplog.text
    cache.flush()
    assert cache.stats().differing == 1


def test_a_broken_cache_costs_time_and_no_episode(
    cache: ReplayCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the database does not answer, calls run."""

    def broken(key: object) -> None:
        raise RuntimeFailure("cache", "disk image is malformed")

    monkeypatch.setattr(cache, "get", broken)
    assert Made(cache).texts("count", "count") == ["0", "1"]
    with pytest.raises(RuntimeFailure):
        Made(cache, "replay").call("count")


def test_a_cache_that_breaks_under_way_costs_time_and_no_episode(
    cache: ReplayCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Damaged and opened anew: calls run, which is told once; a replay ends as a failure."""
    made, verified = Made(cache), Made(cache, "verify")
    assert made.texts("count") == ["0"]
    replayed = Made(cache, "replay")
    cache.close()
    for file in tmp_path.glob("cache.db*"):
        file.unlink()
    (tmp_path / "cache.db").write_text("no database " * 2000)
    assert made.texts("count", "count", "count") == ["1", "2", "3"]
    assert verified.texts("count", "clock")[0] == "0"
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 4  # reading and writing, by either
    with pytest.raises(RuntimeFailure) as raised:
        replayed.call("count")
    assert raised.value.kind == "cache"
    assert (tmp_path / "cache.db").read_text().startswith("no database")


# -- at the same time ---------------------------------


def at_once(samples: Sequence[Made], name: str, word: str) -> list[ToolResult]:
    """What each of them gets for this call, when all make it at the same time."""
    loop = Loop()
    results: list[Any] = []
    for made in samples:
        call = ToolCall(name, {"code": word})
        loop.spawn(made.executor.run(call), lambda value, _: results.append(value))
    while len(results) < len(samples):
        loop.pump(1.0)
    loop.close()
    return results


def test_equal_calls_of_a_group_run_once(cache: ReplayCache) -> None:
    """Eight samples that begin alike lease one sandbox between them."""
    samples = [Made(cache, sample=n) for n in range(8)]
    results = at_once(samples, "python", "slow")
    assert {value.text for value in results} == {"0"}
    assert sum(len(made.pool.leased) for made in samples) == 1
    assert sum(made.counts.get("cache_hits", 0) for made in samples) == 7


def test_a_stateful_call_that_gives_two_results_ends_no_sample_of_a_group(
    cache: ReplayCache,
) -> None:
    """Each session runs its own, so all go on from what they were shown, in every round."""
    for _ in range(3):
        samples = [Made(cache, sample=n) for n in range(4)]
        shown = at_once(samples, "python_session", "slow clock")
        assert len({value.text for value in shown}) == 4
        for number, made in enumerate(samples):
            assert made.texts(*["raise"] * number, "count")[-1] == str(number + 1)
        cache.flush()
    assert cache.stats().differing == 1


def test_a_failure_is_not_shared(cache: ReplayCache) -> None:
    """Whoever waited for a call that failed runs it for itself."""
    loop = Loop()
    outcomes: list[Any] = []
    for _ in range(3):
        call = ToolCall("python", {"code": "late"})
        loop.spawn(Made(cache).executor.run(call), lambda v, e: outcomes.append(v))
    while len(outcomes) < 3:
        loop.pump(1.0)
    loop.close()
    assert [value.error.kind for value in outcomes] == ["timeout"] * 3


# -- nobody can tell ---------------------------------

WORDS = st.sampled_from(["count", "raise", "lose", "late", "full"])
CALLS = st.lists(st.tuples(st.sampled_from(["python", "python_session"]), WORDS), max_size=6)


def play(made: Made, calls: Sequence[tuple[str, str]]) -> list[ToolResult]:
    """All results of an episode."""
    results = [made.call(word, name) for name, word in calls]
    run(made.executor.close())
    assert made.pool.open == []
    return results


@given(episodes=st.lists(st.tuples(st.integers(0, 1), CALLS), max_size=5))
@settings(max_examples=50, deadline=None)
def test_the_cache_never_changes_an_answer(
    episodes: list[tuple[int, list[tuple[str, str]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all episodes, in any order, of stateful and pure calls: cached and uncached are equal."""
    with ReplayCache(f"sqlite:///{tmp_path_factory.mktemp('cache') / 'c.db'}") as cache:
        for mode in ("auto", "record", "verify", "auto"):
            for seed, calls in episodes:
                plain = play(Made(cache, "off", seed=seed), calls)
                assert play(Made(cache, mode, seed=seed), calls) == plain


@given(calls=CALLS)
@settings(max_examples=50, deadline=None)
def test_what_was_recorded_is_replayed(
    calls: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all episodes: a replay gives the recorded results and runs nothing."""
    with ReplayCache(f"sqlite:///{tmp_path_factory.mktemp('cache') / 'c.db'}") as cache:
        recorded = play(Made(cache, "record"), calls)
        replayed = Made(cache, "replay")
        unknown = False
        for (name, word), expected in zip(calls, recorded, strict=True):
            if unknown and name == "python_session":
                with pytest.raises(CacheMissError):
                    replayed.call(word, name)
                break
            assert replayed.call(word, name) == expected
            unknown = unknown or (name == "python_session" and word in ("late", "full"))
        assert replayed.pool.leased == []


@given(calls=CALLS, dies=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_a_death_is_never_noticed(
    calls: list[tuple[str, str]], dies: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For all episodes: a sandbox that dies after any call changes no result, or fails loudly."""
    with ReplayCache(f"sqlite:///{tmp_path_factory.mktemp('cache') / 'c.db'}") as cache:
        plain = play(Made(cache, "off"), calls)
        play(Made(cache), calls[: len(calls) // 2])
        made = Made(cache)
        for number, (name, word) in enumerate(calls):
            if number == dies:
                for sandbox in made.pool.open:
                    sandbox.dies_at = 0
            try:
                assert made.call(word, name) == plain[number]
            except RuntimeFailure:
                interrupted = {("python_session", "late"), ("python_session", "full")}
                assert interrupted & set(calls[:number])
                return


def test_R01_only_facts_are_kept(cache: ReplayCache) -> None:
    """R01: a transient failure leaves nothing, an agent's error is a fact like any other."""
    outside = Outside()
    one = Made(cache, share_external=True, outside=outside)
    with pytest.raises(RuntimeFailure):
        one.call("down", "search")
    assert one.call("down", "search").text == "result 2"
    assert one.call("down", "search").text == "result 2"
    assert one.call("raise", "python").error == ToolError("raised", "ValueError: no")
    served = Made(cache)
    assert served.call("raise", "python").error == ToolError("raised", "ValueError: no")
    assert served.pool.leased == []
