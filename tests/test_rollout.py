"""Rollouts: order, failures, interruptions, and the numbers of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.drivers import Sleep
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.policies import Actor, Gold, Noisy, Scene
from toolenvs.records import RunWriter, read_trajectories, trajectory_hash
from toolenvs.rollout import Played, plan_jobs, run_episodes
from toolenvs.rubric import Rubric
from toolenvs.summary import EpisodeSummary, Job, evaluate, summarise
from toolenvs.terms import RewardTerm
from toolenvs.types import ExecResult, Score, Task, ToolCall, Trajectory, Turn


class Sums:
    """A source of additions."""

    name = "sums"
    rejected: Sequence[str] = ()

    def __init__(self, count: int = 6) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Task:
        row = range(self.count)[index]
        call = {"name": "python", "arguments": {"code": f"print({row}+1)"}}
        return Task(id=f"sum-{row}", prompt=f"{row}+1?", answer=str(row + 1), gold_calls=(call,))


class SameText:
    """An answer reward that compares texts."""

    name = "answer"
    low = 0.0
    high = 1.0
    when: Literal["step", "end"] = "end"
    shaping = False

    def needs(self, task: Task, prefix: Trajectory) -> Sequence[ToolCall]:
        return ()

    def score(self, task: Task, prefix: Trajectory) -> Score:
        results = prefix.steps[-1].results
        said = results[-1].data.get("answer") if results and results[-1].terminal else None
        return Score(float(said == task.answer))


class Shell:
    """A sandbox that adds, slowly where it is told to; anything else raises."""

    def __init__(self, runtime: Adder) -> None:
        self.runtime = runtime

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        self.runtime.executed += 1
        if self.runtime.executed in self.runtime.dies_at:
            raise RuntimeFailure("sandbox_died", "gone")
        if self.runtime.interrupt_at == self.runtime.executed:
            raise KeyboardInterrupt
        await Sleep(0.002 * (self.runtime.executed % 3))
        if code.startswith("print(") and code.rstrip().endswith("+1)"):
            return ExecResult(status="ok", stdout=f"{int(code[6:].split('+')[0]) + 1}\n")
        return ExecResult(status="raised", stderr="NameError: undefined")

    async def stop(self) -> None:
        self.runtime.open -= 1


class Adder:
    """The runtime of ``Shell``; it counts what is open and fails where it is told to."""

    name = "adder"

    def __init__(
        self, *, dies_at: Sequence[int] = (), interrupt_at: int = 0, starts: bool = True
    ) -> None:
        self.dies_at = set(dies_at)
        self.interrupt_at = interrupt_at
        self.starts = starts
        self.executed = 0
        self.open = 0
        self.capacity = 64

    def fingerprint(self) -> str:
        return "adder"

    async def start(self) -> Adder:
        if not self.starts:
            raise RuntimeFailure("no_engine", "nothing answers")
        return self

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> Shell:
        self.open += 1
        return Shell(self)

    def healthy(self) -> bool:
        return True

    async def stop(self) -> None:
        """Nothing is left to end."""


RUBRIC = Rubric([RewardTerm(SameText())])


def rollout(
    policy: Any, jobs: Sequence[Job], *, runtime: Adder | None = None, **options: Any
) -> list[EpisodeSummary]:
    """Play jobs of ``Sums`` in the fake sandbox."""
    return played(policy, jobs, runtime=runtime, **options).episodes


def played(
    policy: Any, jobs: Sequence[Job], *, runtime: Adder | None = None, **options: Any
) -> Played:
    """The same, with how it ended."""
    runtime = runtime or Adder()

    def make_env() -> ToolEnv:
        return ToolEnv(tasks=Sums(), sandbox=runtime, rewards=RUBRIC)

    return run_episodes(make_env, policy, jobs, **options)


def test_jobs_follow_the_source_and_wrap() -> None:
    """Every row once in order; beyond that again, with new samples and another sandbox seed."""
    jobs = plan_jobs(Sums(3), episodes=4)
    assert [job.task_id for job in jobs] == ["sum-0", "sum-1", "sum-2", "sum-0"]
    assert [job.sample for job in jobs] == [0, 0, 0, 1]
    assert jobs[0].seed != jobs[3].seed
    assert plan_jobs(Sums(3)) == jobs[:3]


@given(st.integers(1, 40), st.integers(1, 7), st.integers(0, 2**63))
def test_a_group_is_whole_and_shares_its_sandbox_seed(episodes: int, group: int, seed: int) -> None:
    """Samples are 0 to n-1 (then n to 2n-1 ...), all with one seed that fits a sandbox."""
    jobs = plan_jobs(Sums(3), episodes=episodes, group=group, seed=seed)
    assert len(jobs) == group * math.ceil(episodes / group)
    for start in range(0, len(jobs), group):
        members = jobs[start : start + group]
        assert len({(job.task_id, job.seed) for job in members}) == 1
        assert [job.sample % group for job in members] == list(range(group))
        assert 0 <= members[0].seed < 2**32
    assert len({(job.task_id, job.sample) for job in jobs}) == len(jobs)
    assert jobs == plan_jobs(Sums(3), episodes=episodes, group=group, seed=seed)


@pytest.mark.parametrize(("episodes", "group"), [(10**12, 1), (None, 10**9), (4, 10**9)])
def test_more_jobs_than_memory_are_refused(episodes: int | None, group: int) -> None:
    """At once and by name, before a list of them is made."""
    with pytest.raises(UsageError, match="at most 1000000"):
        plan_jobs(Sums(), episodes=episodes, group=group)


def test_jobs_of_nothing_are_refused() -> None:
    """Numbers below 1 have no meaning."""
    with pytest.raises(UsageError, match="at least 1"):
        plan_jobs(Sums(), episodes=0)


def test_gold_is_right_everywhere() -> None:
    """Every episode calls once, submits the right answer, and is paid 1."""
    jobs = plan_jobs(Sums())
    episodes = rollout(Gold(), jobs, envs=3)
    assert [episode.job for episode in episodes] == jobs
    table = summarise(episodes, sandbox="adder", replay="off")
    assert (table.episodes, table.success, table.score, table.failed) == (6, 1.0, 1.0, 0)
    assert (table.turns, table.calls_per_episode, table.without_call) == (2.0, 1.0, 0.0)
    assert (table.first_call_turn, table.error_rate, table.repaired) == (1.0, 0.0, None)
    assert table.terms == {"answer": 1.0, "gates": 0.0}
    assert table.ends == {"submit": 6}


@pytest.mark.parametrize("envs", [1, 2, 5, 40])
def test_the_number_of_slots_changes_nothing(envs: int, tmp_path: Path) -> None:
    """Scores, order and the bytes of the record are those of one slot."""
    jobs = plan_jobs(Sums(), episodes=30, group=3)
    alone, many = tmp_path / "alone", tmp_path / "many"
    with RunWriter(alone, {}) as out:
        first = rollout(Noisy(0), jobs, envs=1, out=out)
    with RunWriter(many, {}) as out:
        second = rollout(Noisy(0), jobs, envs=envs, out=out)
    assert [episode.score for episode in first] == [episode.score for episode in second]
    assert (alone / "trajectories.jsonl").read_bytes() == (many / "trajectories.jsonl").read_bytes()


def test_noisy_lies_strictly_between() -> None:
    """Some right, some wrong; errors are made and some are repaired."""
    episodes = rollout(Noisy(0), plan_jobs(Sums(), episodes=120), envs=8)
    table = summarise(episodes, sandbox="adder", replay="off")
    assert table.success is not None
    assert 0.4 < table.success < 0.9
    assert table.score == pytest.approx(table.success)
    assert table.repaired is not None
    assert 0.0 < table.repaired < 1.0
    assert set(table.ends) == {"submit", "length", "given_up"}


def test_a_dead_sandbox_fails_the_episode_and_no_other(tmp_path: Path) -> None:
    """C07: it is recorded as failed, is in no mean, and the rollout goes on."""
    runtime = Adder(dies_at=range(4, 7))  # all attempts of one call
    jobs = plan_jobs(Sums())
    with RunWriter(tmp_path / "run", {}) as out:
        episodes = rollout(Gold(), jobs, runtime=runtime, envs=1, out=out)
    assert [bool(episode.failure) for episode in episodes].count(True) == 1
    table = summarise(episodes, sandbox="adder", replay="off")
    assert (table.episodes, table.failed, table.success, table.score) == (6, 1, 1.0, 1.0)
    recorded = list(read_trajectories(tmp_path / "run"))
    assert len(recorded) == 6
    assert [t.steps[-1].failure for t in recorded].count("sandbox_died") == 1
    assert runtime.open == 0


class Unreliable:
    """Gold, but for one task its own machine fails after the first message."""

    name = "unreliable"

    def start(self, task: Task, scene: Scene) -> Actor:
        return _Failing(Gold().start(task, scene), fails=task.id == "sum-2")


class _Failing:
    def __init__(self, gold: Actor, *, fails: bool) -> None:
        self.gold = gold
        self.fails = fails
        self.said = 0

    async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
        self.said += 1
        if self.fails and self.said == 2:
            raise RuntimeFailure("model", "no usable reply")
        return await self.gold.act(observation, info)


def test_a_policy_whose_machine_fails_is_never_scored(tmp_path: Path) -> None:
    """The episode ends truncated with failure "model", all its terms masked and unpaid."""
    with RunWriter(tmp_path / "run", {}) as out:
        episodes = rollout(Unreliable(), plan_jobs(Sums()), envs=2, out=out)
    assert [episode.failure for episode in episodes] == ["", "", "model", "", "", ""]
    last = list(read_trajectories(tmp_path / "run"))[2].steps[-1]
    assert last.truncated
    assert (last.end_reason, last.failure, last.reward) == ("failure", "model", 0.0)
    assert all(score.masked for score in last.scores.values())


class Dead:
    """A model that answers so many messages and then is gone, told once for each reason."""

    name = "dead"

    def __init__(
        self, *, answers: int = 0, reasons: Sequence[str] = ("connection refused",)
    ) -> None:
        self.answers = answers
        self.reasons = reasons
        self.asked = 0

    def start(self, task: Task, scene: Scene) -> Actor:
        return self

    async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
        self.asked += 1
        if self.asked > self.answers:
            reason = self.reasons[self.asked % len(self.reasons)]
            raise RuntimeFailure("model", f"http://x: {reason}, number {self.asked}", reason=reason)
        return None


@pytest.mark.parametrize(
    ("envs", "answers", "failed"), [(1, 0, 3), (2, 0, 3), (5, 0, 5), (2, 1, 12), (40, 0, 40)]
)
def test_what_fails_without_end_is_given_up(
    envs: int, answers: int, failed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After as many failures in a row as slots; later an outage is borne four times as long."""
    with RunWriter(tmp_path / "run", {}) as out:
        ended = played(Dead(answers=answers), plan_jobs(Sums(), episodes=400), envs=envs, out=out)
    assert ended.given_up.startswith(f"{failed} episodes in a row failed: http://x: connection")
    table = summarise(ended.episodes, sandbox="adder", replay="off")
    assert failed <= table.failed <= failed + envs
    assert table.failures == {"model: connection refused": table.failed}
    assert len(list(read_trajectories(tmp_path / "run"))) == table.episodes
    assert len(caplog.records) == 1


def test_failures_that_differ_are_borne() -> None:
    """They say nothing of the next episode: all are played, and counted by their reason."""
    reasons = ("connection refused", "status 500")
    ended = played(Dead(reasons=reasons), plan_jobs(Sums(), episodes=20), envs=2)
    assert (len(ended.episodes), ended.given_up) == (20, "")
    table = summarise(ended.episodes, sandbox="adder", replay="off")
    assert table.failures == {"model: status 500": 10, "model: connection refused": 10}


def test_a_sandbox_that_never_starts_ends_the_rollout() -> None:
    """Nothing can be played: one error rather than a table of failures."""
    with pytest.raises(RuntimeFailure, match="nothing answers") as caught:
        rollout(Gold(), plan_jobs(Sums()), runtime=Adder(starts=False), envs=3)
    assert caught.value.kind == "no_engine"


def test_an_unknown_task_ends_the_rollout() -> None:
    """The caller's mistake is an error that names the task; sandboxes are given back."""
    runtime = Adder()
    with pytest.raises(UnknownNameError, match="sum-99"):
        rollout(Gold(), [Job("sum-99")], runtime=runtime)
    assert runtime.open == 0


def test_an_interrupt_keeps_what_was_played(tmp_path: Path) -> None:
    """Ctrl-C ends cleanly: the summaries and records of the finished episodes are there."""
    runtime = Adder(interrupt_at=4)
    with RunWriter(tmp_path / "run", {}) as out:
        ended = played(Gold(), plan_jobs(Sums()), runtime=runtime, envs=1, out=out)
    assert ended.interrupted
    assert [episode.job.task_id for episode in ended.episodes] == ["sum-0", "sum-1", "sum-2"]
    assert [t.task.id for t in read_trajectories(tmp_path / "run")] == ["sum-0", "sum-1", "sum-2"]


def test_progress_hears_of_each_episode() -> None:
    """Once each, as it ends."""
    heard: list[str] = []
    rollout(
        Gold(),
        plan_jobs(Sums()),
        envs=4,
        progress=lambda episode: heard.append(episode.job.task_id),
    )
    assert sorted(heard) == [f"sum-{row}" for row in range(6)]


def test_a_policy_that_gives_up_settles_the_episode() -> None:
    """None ends the episode by finish: it is scored, as any stalling is."""

    class Silent:
        name = "silent"

        def start(self, task: Task, scene: Scene) -> Actor:
            return self

        async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
            return None

    episodes = rollout(Silent(), plan_jobs(Sums(), episodes=1))
    assert (episodes[0].end_reason, episodes[0].score, episodes[0].counts) == (
        "given_up",
        0.0,
        True,
    )


def test_an_evaluation_names_its_k() -> None:
    """Four metrics over whole groups."""
    episodes = rollout(Noisy(0), plan_jobs(Sums(), episodes=24, group=4), envs=4)
    found = evaluate(episodes, 4)
    assert list(found) == ["avg@4", "pass@4", "pass^4", "maj@4"]
    assert found["pass^4"].value <= found["avg@4"].value <= found["pass@4"].value


def test_equal_rollouts_have_equal_hashes(tmp_path: Path) -> None:
    """Nothing timed is in a trajectory: two runs are equal to the byte."""
    hashes = []
    for name in ("one", "two"):
        with RunWriter(tmp_path / name, {}) as out:
            rollout(Noisy(3), plan_jobs(Sums(), episodes=18), envs=5, out=out)
        hashes.append([trajectory_hash(t) for t in read_trajectories(tmp_path / name)])
    assert hashes[0] == hashes[1]
