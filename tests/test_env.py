"""``ToolEnv`` is a true ``gymnasium.Env``."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import toolenvs
from tests.fakes import CountingSandbox, FakeRuntime
from toolenvs import (
    EpisodeOverError,
    RuntimeFailure,
    Task,
    ToolCall,
    ToolEnv,
    Turn,
    UnknownNameError,
    UsageError,
    tools,
)
from toolenvs.drivers import run

TASKS = [Task(id=f"t{i}", prompt=f"What is {i} + {i}?", answer=str(2 * i)) for i in range(3)]
INFO_KEYS = {
    "task_id", "turns", "left", "reward_terms", "reward_masked", "reward_reasons", "calls",
    "results", "messages", "format_problems", "format_error", "truncated_output", "note", "replay",
    "failure", "end_reason", "gold",
}  # fmt: skip


def python(code: str, tool: str = "python") -> str:
    """A message that calls a Python tool."""
    return ToolEnv(tasks=TASKS).format.compose([ToolCall(tool, {"code": code})])


def answer(text: str) -> str:
    """A message that submits."""
    return ToolEnv(tasks=TASKS).format.compose([ToolCall("submit", {"answer": text})])


@pytest.fixture
def env() -> Iterator[ToolEnv]:
    """An environment over three tasks whose sandboxes are fakes."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), tools=["python", "python_session", "submit"])
    yield made
    made.close()


def test_G01_check_env_passes_without_a_warning() -> None:
    """G01: Gymnasium's own checker finds nothing to say."""
    made = gym.make("toolenvs/MathTIR-v0", tasks=TASKS, sandbox=FakeRuntime()).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made)
    made.close()


def test_an_episode_from_reset_to_answer(env: ToolEnv) -> None:
    """A call is run and shown, the answer ends and is paid, the terms sum to the reward."""
    obs, info = env.reset(options={"task_id": "t2"})
    assert "What is 2 + 2?" in obs
    assert "python" in obs
    assert set(info) == INFO_KEYS
    obs, reward, terminated, truncated, info = env.step(python("count"))
    assert "0" in obs
    assert not terminated
    assert not truncated
    assert info["results"][0]["data"]["stdout"] == "0\n"
    first = reward
    _, reward, terminated, truncated, info = env.step(answer("4"))
    assert (terminated, truncated, info["end_reason"]) == (True, False, "submit")
    assert set(info) == INFO_KEYS
    assert info["reward_terms"]["answer"] > 0
    assert sum(info["reward_terms"].values()) == pytest.approx(reward)
    assert env.episode.trajectory.score == pytest.approx(first + reward)


def test_a_wrong_answer_pays_less_and_is_no_failure(env: ToolEnv) -> None:
    """The answer's term is 0 and nothing is masked."""
    env.reset(options={"task_id": "t2"})
    _, _, terminated, _, info = env.step(answer("5"))
    assert terminated
    assert info["reward_terms"]["answer"] == 0.0
    assert not any(info["reward_masked"].values())


def test_G03_the_turn_limit_truncates_at_its_own_turn() -> None:
    """G03: with three turns the third is truncated, neither the second nor the fourth."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), max_turns=3)
    made.reset(seed=0)
    flags = [made.step("hm")[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    assert made.episode.trajectory.steps[-1].end_reason == "max_turns"
    with pytest.raises(EpisodeOverError):
        made.step("hm")
    made.close()


def test_step_before_reset_raises() -> None:
    """There is no episode to step."""
    with pytest.raises(EpisodeOverError, match="reset"):
        ToolEnv(tasks=TASKS, sandbox=FakeRuntime()).step("hm")


@pytest.mark.parametrize("action", [3, None, b"x", ["a"]])
def test_an_action_that_is_no_text_is_refused_and_nothing_is_scored(
    env: ToolEnv, action: Any
) -> None:
    """A wrong type is a usage error; the episode goes on unchanged."""
    env.reset(seed=0)
    with pytest.raises(UsageError):
        env.step(action)
    assert env.episode.trajectory.steps == ()


def test_G04_the_same_seed_gives_the_same_task() -> None:
    """G04: in one environment, in two, and in another process."""
    code = (
        "import sys; from toolenvs import ToolEnv, Task\n"
        "from tests.fakes import FakeRuntime; from tests.test_env import TASKS\n"
        "e = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())\n"
        "print([e.reset(seed=s)[1]['task_id'] for s in range(20)])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())
    again = [made.reset(seed=s)[1]["task_id"] for s in (*range(20), 7, 7)]
    assert str(again[:20]) == out.strip()
    assert again[7] == again[20] == again[21]
    made.close()


def test_G04_a_thousand_seeds_stay_inside_and_reach_every_task() -> None:
    """G04: no index is ever out of range, none is left out."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())
    assert {made.reset(seed=s)[1]["task_id"] for s in range(1000)} == {"t0", "t1", "t2"}
    made.close()


def test_G04_the_global_generators_are_untouched(env: ToolEnv) -> None:
    """G04: a reset neither reads nor moves the global random state."""
    random.seed(1)
    a = random.random()
    random.seed(1)
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    env.reset(seed=5)
    assert random.random() == a
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_G04_unseeded_resets_go_through_every_task(env: ToolEnv) -> None:
    """G04: three resets are an epoch; a fourth begins the next."""
    ids = [env.reset(seed=3)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(5))]
    assert set(ids[:3]) == set(ids[3:]) == {"t0", "t1", "t2"}


@pytest.mark.parametrize("task_id", ["t2", 2, np.int64(2)])
def test_G04_an_explicit_task_wins_over_the_seed(env: ToolEnv, task_id: Any) -> None:
    """G04: by its id or by its row."""
    for seed in range(5):
        _, info = env.reset(seed=seed, options={"task_id": task_id})
        assert info["task_id"] == "t2"


def test_wrong_options_name_what_is_allowed(env: ToolEnv) -> None:
    """An unknown task and an unknown option say what is known."""
    with pytest.raises(UnknownNameError, match="t1"):
        env.reset(options={"task_id": "t11"})
    with pytest.raises(UnknownNameError, match="task_id"):
        env.reset(options={"taskid": "t1"})
    for name, value in (("group", 0), ("group", 2.7), ("sample", "x"), ("sandbox_seed", None)):
        with pytest.raises(UsageError, match=name):
            env.reset(options={name: value})


def named(name: str) -> FakeRuntime:
    """A runtime that is known by this name."""
    runtime = FakeRuntime()
    runtime.name = name
    return runtime


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [
        ("family", "maths", "math_tir"),
        ("format", "hermess", "hermes"),
        ("rewards", "gatd", "gated"),
        ("tools", ["pyton"], "python"),
        ("replay", "sometimes", "off"),
        ("max_turns", 0, "at least 1"),
        ("max_turns", 2.5, "whole number"),
        ("tool_options", {"python": {"timeout": 2}}, "timeout_s"),
        ("sandbox_options", {"limits": {}}, "name"),
        ("render_mode", "human", "ansi"),
        ("sandbox", "postgres", "service:postgres"),
        ("sandbox", "index", "runs no code"),
        ("runtimes", {"sandbox:sql": named("index")}, "answers tools that need 'index'"),
        ("runtimes", {"index": named("local")}, "answers no requests"),
    ],
)
def test_a_wrong_setting_is_refused_at_construction(setting: str, value: Any, allowed: str) -> None:
    """The message names what is allowed."""
    with pytest.raises(UsageError, match=allowed):
        ToolEnv(**{"tasks": TASKS, "sandbox": FakeRuntime(), setting: value})


def test_options_of_a_tool_given_as_an_object_are_refused() -> None:
    """They could not reach it; the message says what to do."""
    with pytest.raises(UsageError, match="build it with them"):
        ToolEnv(tools=[tools.make("python")], tool_options={"python": {"timeout_s": 2}})


def test_T06_text_cut_by_the_token_limit_is_no_format_error(env: ToolEnv) -> None:
    """T06 b: not run, truncated with its own reason, and the format is not blamed."""
    env.reset(seed=0)
    text = python("count")[:-20]
    obs, _, terminated, truncated, info = env.step(Turn(text, finish_reason="length"))
    assert (obs, terminated, truncated, info["end_reason"]) == ("", False, True, "length")
    assert info["calls"] == []
    assert info["format_error"] == ""


def test_T06_a_stop_string_eaten_by_the_sampler_is_forgiven(env: ToolEnv) -> None:
    """T06 a: the call runs."""
    env.reset(seed=0)
    text = python("count").removesuffix("</tool_call>")
    _, _, _, _, info = env.step(Turn(text, "stop", "</tool_call>"))
    assert info["results"][0]["data"]["stdout"] == "0\n"
    assert info["format_problems"] == []


def test_T05_an_invented_tool_costs_a_turn_and_nothing_else(env: ToolEnv) -> None:
    """T05: the observation names the tools, the episode goes on."""
    env.reset(options={"task_id": "t1"})
    obs, _, _, truncated, info = env.step(python("count", tool="pyton"))
    assert not truncated
    assert "python_session" in obs
    assert info["results"][0]["error"]["kind"] == "unknown_tool"
    assert info["failure"] == ""
    _, _, terminated, _, info = env.step(answer("2"))
    assert terminated
    assert info["turns"] == 2
    assert info["reward_terms"]["answer"] > 0


def test_finish_settles_the_terms_of_the_end(env: ToolEnv) -> None:
    """An episode that the trainer gives up is truncated with the trainer's word and is over."""
    env.reset(seed=0)
    env.step(python("count"))
    obs, _, terminated, truncated, info = env.finish("budget")
    assert (obs, terminated, truncated, info["end_reason"]) == ("", False, True, "budget")
    assert info["reward_terms"]["answer"] == 0.0
    with pytest.raises(EpisodeOverError):
        env.finish("again")
    env.reset(seed=0)
    with pytest.raises(UsageError, match="own"):
        env.finish("submit")


def test_act_takes_structured_calls(env: ToolEnv) -> None:
    """The same as the message that the format would write."""
    env.reset(options={"task_id": "t1"})
    _, _, _, _, info = env.act([ToolCall("python", {"code": "count"})])
    assert info["results"][0]["data"]["stdout"] == "0\n"
    _, _, terminated, _, info = env.act([ToolCall("submit", {"answer": "2"})])
    assert terminated
    assert info["reward_terms"]["answer"] > 0


def test_tool_specs_are_openais(env: ToolEnv) -> None:
    """A trainer hands them to a chat template as they are."""
    specs = env.tool_specs()
    assert [spec["function"]["name"] for spec in specs] == ["python", "python_session", "submit"]
    assert specs[0]["type"] == "function"
    assert specs[0]["function"]["parameters"]["required"] == ["code"]


def test_a_failing_machine_truncates_unscored() -> None:
    """Never a score, never the agent's fault: truncated, named, masked (C07)."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(dies_at=0))
    made.reset(seed=0)
    obs, reward, terminated, truncated, info = made.step(python("count"))
    assert (obs, reward, terminated, truncated) == ("", 0.0, False, True)
    assert info["failure"] == "sandbox_died"
    assert info["end_reason"] == "failure"
    assert all(info["reward_masked"].values())
    assert not any(info["reward_terms"].values())
    made.close()


def test_C07_a_dead_grader_truncates_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    """C07 e: the answer is not scored as wrong; the step failed, the agent did not."""

    def dies(left: object, right: object, *, timeout_s: float) -> None:
        raise RuntimeFailure("grader", "the helper died")

    monkeypatch.setattr("toolenvs.grading.worker.prove_equal", dies)
    tasks = [Task(id="hard", prompt="?", answer=r"\sin(x)^2 + \cos(x)^2")]
    made = ToolEnv(tasks=tasks, sandbox=FakeRuntime())
    made.reset(seed=0)
    _, reward, terminated, truncated, info = made.step(answer(r"\tan(x)\cot(x)"))
    assert (reward, terminated, truncated, info["failure"]) == (0.0, False, True, "grader")
    assert all(info["reward_masked"].values())
    made.close()


def test_an_episode_survives_the_death_of_its_sandbox(env: ToolEnv) -> None:
    """The observations are those of an episode in which nothing died."""
    env.reset(seed=0)
    seen = [env.step(python("count", tool="python_session"))[0] for _ in range(2)]
    for sandbox in env._staging.pools.get("sandbox:python").runtime.sandboxes:  # type: ignore[attr-defined]
        sandbox.dies_at = 0
    seen.append(env.step(python("count", tool="python_session"))[0])
    assert ["0" in seen[0], "1" in seen[1], "2" in seen[2]] == [True] * 3


def test_fork_continues_one_state_independently(env: ToolEnv) -> None:
    """Each branch goes on from the same state; neither sees the other."""
    env.reset(seed=0)
    env.step(python("count", tool="python_session"))
    branches = env.fork(2)
    seen = [b.step(python("count", tool="python_session"))[4] for b in (*branches, branches[0])]
    assert [info["results"][0]["data"]["stdout"] for info in seen] == ["1\n", "1\n", "2\n"]
    assert len(env.episode.trajectory.steps) == 1
    assert env._staging.pools.get("sandbox:python").runtime.started == 1  # type: ignore[attr-defined]
    branches[0].reset()
    branches[0].reset()
    single = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())
    expected = [single.reset(seed=0)[1]["task_id"], single.reset()[1]["task_id"]]
    assert env.reset()[1]["task_id"] == expected[1]
    for branch in (*branches, single):
        branch.close()


@pytest.mark.parametrize("n", [-1, "2", True, 1.0, None, 10**6])
def test_a_number_of_branches_without_meaning_is_refused(env: ToolEnv, n: Any) -> None:
    """With the value and what is allowed."""
    env.reset(seed=0)
    with pytest.raises(UsageError, match=r"fork: n=.*from 0 to 1024"):
        env.fork(n)
    assert env.fork(0) == []


class Forking(FakeRuntime):
    """Its sandboxes can be forked, all but the ``refused``-th fork."""

    def __init__(self, refused: int) -> None:
        super().__init__()
        self.refused = refused

    async def start(self) -> Any:
        worker = await super().start()

        async def spawn(**_: Any) -> ForkableOnce:
            return ForkableOnce(self)

        worker.spawn = spawn  # type: ignore[method-assign]
        return worker


class ForkableOnce(CountingSandbox):
    """A sandbox of ``Forking``."""

    def __init__(self, runtime: Forking) -> None:
        super().__init__()
        self.runtime = runtime
        runtime.sandboxes.append(self)

    async def fork(self) -> ForkableOnce:
        """A second one, or the failure."""
        if len(self.runtime.sandboxes) == self.runtime.refused:
            raise MemoryError
        return ForkableOnce(self.runtime)


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_fork_that_fails_leaves_nothing_open(refused: int) -> None:
    """Every place of the pool is given back, and the episode goes on."""
    runtime = Forking(refused)
    env = ToolEnv(tasks=TASKS, sandbox=runtime, tools=["python_session", "submit"])
    env.reset(seed=0)
    env.step(python("count", tool="python_session"))
    for _ in range(2):
        with pytest.raises(MemoryError):
            env.fork(4)
        assert [one.stopped for one in runtime.sandboxes[1:]] == [True] * (refused - 1)
    runtime.refused = 0
    assert "1" in env.step(python("count", tool="python_session"))[0]
    (branch,) = env.fork(1)
    branch.close()
    env.close()
    assert all(one.stopped for one in runtime.sandboxes)
    assert runtime.stopped == 1


class StartsAtThird(FakeRuntime):
    """It fails to start twice."""

    async def start(self) -> Any:
        if self.started < 2:
            self.started += 1
            raise RuntimeFailure("no_engine", "nothing answers")
        return await super().start()


def test_a_reset_that_failed_loses_no_sample() -> None:
    """The next reset plays what it was to play; a failed episode in its place is one of them."""
    made = ToolEnv(tasks=TASKS, sandbox=StartsAtThird())
    with pytest.raises(RuntimeFailure):
        made.reset(options={"task_id": "t1", "group": 3})
    with pytest.raises(RuntimeFailure):
        made.reset()
    played = []
    for _ in range(3):
        made.reset()
        played.append((made.episode.trajectory.task.id, made.episode.trajectory.sample))
    assert played == [("t1", 0), ("t1", 1), ("t1", 2)]
    made.close()
    made = ToolEnv(tasks=TASKS, sandbox=StartsAtThird())
    with pytest.raises(RuntimeFailure):
        made.reset(options={"task_id": "t1", "group": 2})
    assert run(made.afail("no_engine"))[4]["failure"] == "no_engine"
    with pytest.raises(RuntimeFailure):
        made.reset()
    made.reset()
    assert made.episode.trajectory.sample == 1
    made.close()


def test_gold_is_in_info_only_after_the_end_and_when_asked(env: ToolEnv) -> None:
    """H06: nothing but an explicit setting reveals it."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), reveal_gold=True)
    for each, expected in ((made, "2"), (env, "")):
        assert each.reset(options={"task_id": "t1"})[1]["gold"] == ""
        assert each.step("hm")[4]["gold"] == ""
        assert each.step(answer("9"))[4]["gold"] == expected
    made.close()


def test_observations_stay_within_their_budget() -> None:
    """A long result is cut, head and tail kept, flagged, wrappers whole."""
    runtime = FakeRuntime(output="HEAD" + "-" * 5000 + "TAIL")
    made = ToolEnv(tasks=TASKS, sandbox=runtime, max_obs_tokens=300)
    made.reset(seed=0)
    obs, _, _, _, info = made.step(python("count"))
    assert len(obs.encode()) <= 300
    assert "HEAD" in obs
    assert "TAIL" in obs
    assert info["truncated_output"] is True
    assert obs.rstrip().endswith("</tool_response>")
    made.close()


def test_token_budgets_end_the_episode() -> None:
    """A message over its budget is not run; an episode over its own is truncated."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), max_turn_tokens=50)
    made.reset(seed=0)
    _, _, _, truncated, info = made.step(python("count" + " " * 100))
    assert (truncated, info["end_reason"], info["calls"]) == (True, "tokens", [])
    made.close()
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), max_episode_tokens=10)
    assert made.reset(seed=0)[1]["left"]["tokens"] == 0
    assert made.step("hm")[3] is True
    made.close()


def test_a_message_may_make_only_so_many_calls() -> None:
    """Further calls are refused, visibly."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), max_calls=2)
    made.reset(seed=0)
    calls = [ToolCall("python", {"code": "count"})] * 3
    info = made.step(made.format.compose(calls))[4]
    assert [r["error"]["kind"] for r in info["results"]] == ["", "", "refused"]
    made.close()


@settings(max_examples=60, deadline=None)
@given(actions=st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_garbage_is_answered_never_raised(actions: list[str]) -> None:
    """For all texts: a step gives a text, a finite reward whose terms sum, and the same keys."""
    made = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())
    made.reset(seed=0)
    for action in actions:
        obs, reward, terminated, truncated, info = made.step(action)
        assert made.observation_space.contains(obs)
        assert np.isfinite(reward)
        assert sum(info["reward_terms"].values()) == pytest.approx(reward, abs=1e-9)
        assert set(info) == INFO_KEYS
        if terminated or truncated:
            break
    made.close()


def test_construction_is_cheap_and_picklable() -> None:
    """Nothing starts before ``reset``; a pickled copy plays the same episode."""
    runtime = FakeRuntime()
    made = ToolEnv(tasks=TASKS, sandbox=runtime)
    assert runtime.started == 0
    copy = pickle.loads(pickle.dumps(made))
    assert copy.reset(seed=4)[0] == made.reset(seed=4)[0]
    copy.close()
    made.close()
    made.close()


def test_dropping_the_environment_ends_its_pool() -> None:
    """C03 e: fifty resets without close, then the object is dropped: nothing stays."""
    runtime = FakeRuntime()
    made = ToolEnv(tasks=TASKS, sandbox=runtime)
    for _ in range(50):
        made.reset()
        made.step(python("count", tool="python"))
    assert runtime.started == 1
    del made
    until = time.monotonic() + 30.0
    while not runtime.stopped and time.monotonic() < until:
        time.sleep(0.01)
    assert runtime.stopped == 1


def test_gymnasium_wrappers_work() -> None:
    """``TimeLimit`` and ``RecordEpisodeStatistics`` wrap it as any other."""
    made = gym.make("toolenvs/MathTIR-v0", tasks=TASKS, sandbox=FakeRuntime(), max_episode_steps=2)
    wrapped = gym.wrappers.RecordEpisodeStatistics(made)
    wrapped.reset(seed=0)
    wrapped.step("hm")
    _, _, _, truncated, info = wrapped.step("hm")
    assert truncated
    assert info["episode"]["l"] == 2
    wrapped.close()


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_make_vec_works_in_every_mode(mode: str) -> None:
    """The same first observations, whatever carries the environments."""
    extra: dict[str, Any] = {"vector_kwargs": {"shared_memory": False}} if mode == "async" else {}
    envs = gym.make_vec(
        "toolenvs/MathTIR-v0",
        num_envs=2,
        vectorization_mode=mode,
        tasks=TASKS,
        sandbox=FakeRuntime(),
        **extra,
    )
    obs, infos = envs.reset(seed=3)
    single = ToolEnv(tasks=TASKS, sandbox=FakeRuntime())
    assert list(obs) == [single.reset(seed=3 + i)[0] for i in range(2)]
    obs, rewards, _, _, infos = envs.step((answer("x"), "hm"))
    assert rewards.shape == (2,)
    assert infos["end_reason"][0] == "submit"
    assert infos["reward_terms"]["answer"].dtype == np.float64
    envs.close()
    single.close()


def test_importing_is_quiet_and_lists_at_most_25_names() -> None:
    """The import prints nothing and loads nothing heavy."""
    code = (
        "import sys, toolenvs\n"
        "heavy = {'sympy', 'scipy', 'docker', 'sqlalchemy', 'httpx', 'rich', 'typer'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    assert len(toolenvs.__all__) <= 25
    for name in toolenvs.__all__:
        assert getattr(toolenvs, name)


def test_a_group_of_any_size_costs_nothing_ahead(env: ToolEnv) -> None:
    """Its samples are dealt one by one; a fork goes on in the same place."""
    env.reset(options={"task_id": "t1", "group": 10**18})
    samples = [env.episode.trajectory.sample]
    for _ in range(2):
        env.reset()
        samples.append(env.episode.trajectory.sample)
    (twin,) = env.fork(1)
    for one in (env, twin):
        one.reset()
        assert (one.episode.trajectory.task.id, one.episode.trajectory.sample) == ("t1", 3)
    assert samples == [0, 1, 2]
    twin.close()


class WithoutData(FakeRuntime):
    """It never starts: what a task is about is not there."""

    async def start(self) -> Any:
        raise RuntimeFailure("data", "the file is gone")


def test_a_task_whose_data_is_gone_does_not_block_the_next() -> None:
    """Each reset tells of another task."""
    made = ToolEnv(tasks=TASKS, sandbox=WithoutData())
    drawn = []
    for seed in (5, None, None, None):
        with pytest.raises(RuntimeFailure):
            made.reset(seed=seed)
        drawn.append(made._dealer._pending)
    assert drawn == [None] * 4
