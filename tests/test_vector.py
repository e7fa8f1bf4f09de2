"""``ToolVectorEnv`` equals that many single environments, in every autoreset mode."""

from __future__ import annotations

import os
import pickle
import signal
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeRuntime
from tests.test_env import TASKS, answer, python
from toolenvs import (
    EpisodeOverError,
    ToolCall,
    ToolEnv,
    ToolResult,
    ToolVectorEnv,
    UsageError,
)
from toolenvs.drivers import Sleep

MESSAGES = [
    "hm",
    python("count"),
    python("count", tool="python_session"),
    python("raise"),
    answer("2"),
    answer("9"),
]
TOOLS = ["python", "python_session", "submit"]
MODES = list(AutoresetMode)


def make_vector(n: int, mode: AutoresetMode, **settings: Any) -> ToolVectorEnv:
    """A vector environment over fakes."""
    settings = {"tasks": TASKS, "sandbox": FakeRuntime(), "max_turns": 3, **settings}
    return ToolVectorEnv(n, autoreset_mode=mode, tools=TOOLS, **settings)


def make_sync(n: int, mode: AutoresetMode) -> SyncVectorEnv:
    """Gymnasium's own vector of the same single environments."""

    def one() -> ToolEnv:
        return ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), tools=TOOLS, max_turns=3)

    return SyncVectorEnv([one] * n, autoreset_mode=mode)


def plain(value: Any) -> Any:
    """Arrays as lists, so that two results compare by ``==``."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tolist()]
    return value


@settings(max_examples=25, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    turns=st.lists(st.tuples(*[st.sampled_from(MESSAGES)] * 3), min_size=1, max_size=6),
    seed=st.integers(0, 50),
)
def test_it_equals_single_environments_step_for_step(
    mode: AutoresetMode, turns: list[tuple[str, ...]], seed: int
) -> None:
    """For all messages, seeds and modes: the same observations, rewards, flags and infos."""
    ours, theirs = make_vector(3, mode), make_sync(3, mode)
    assert plain(ours.reset(seed=seed)) == plain(theirs.reset(seed=seed))
    for actions in turns:
        mine, other = ours.step(actions), theirs.step(actions)
        assert plain(mine) == plain(other)
        ended = mine[2] | mine[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            resets = [e.reset(options={"reset_mask": ended.copy()}) for e in (ours, theirs)]
            assert plain(resets[0]) == plain(resets[1])
    ours.close()
    theirs.close()


@settings(max_examples=25, deadline=None)
@given(
    turns=st.lists(st.tuples(*[st.sampled_from(MESSAGES)] * 3), min_size=1, max_size=5),
    sizes=st.lists(st.integers(1, 3), min_size=1),
)
def test_send_and_recv_give_each_slot_what_step_gives(
    turns: list[tuple[str, ...]], sizes: list[int]
) -> None:
    """For all batch sizes: each slot's own sequence is that of the lock-step."""
    mode = AutoresetMode.NEXT_STEP
    lock, free = make_vector(3, mode), make_vector(3, mode)
    lock.reset(seed=1)
    free.reset(seed=1)
    expected: list[list[Any]] = [[], [], []]
    for actions in turns:
        obs, rewards, terminations, truncations, _ = lock.step(actions)
        for i in range(3):
            expected[i].append((obs[i], rewards[i], terminations[i], truncations[i]))
    got: list[list[Any]] = [[], [], []]
    free.send(turns[0], range(3))
    under_way, k = 3, 0
    while under_way:
        batch = free.recv(min(sizes[k % len(sizes)], under_way))
        k += 1
        for j, slot in enumerate(batch.env_ids):
            got[slot].append(
                (
                    batch.observations[j],
                    batch.rewards[j],
                    batch.terminations[j],
                    batch.truncations[j],
                )
            )
            under_way -= 1
            if len(got[slot]) < len(turns):
                free.send([turns[len(got[slot])][slot]], [int(slot)])
                under_way += 1
    assert got == expected
    lock.close()
    free.close()


@pytest.mark.parametrize("mode", MODES)
def test_G03_an_episode_is_reset_once_and_its_end_is_kept(mode: AutoresetMode) -> None:
    """G03: the turn limit truncates at turn 3 with its parts; no task is skipped."""
    envs = make_vector(2, mode)
    single = ToolEnv(tasks=TASKS, sandbox=FakeRuntime(), tools=TOOLS, max_turns=3)
    order = [single.reset(seed=0)[1]["task_id"], *(single.reset()[1]["task_id"] for _ in range(3))]
    seen = [envs.reset(seed=0)[1]["task_id"][0]]
    for _ in range(3):
        for turn in range(3):
            _, rewards, terminated, truncated, infos = envs.step(["hm", "hm"])
            assert truncated[0] == (turn == 2)
            assert not terminated[0]
        last = infos["final_info"] if mode == AutoresetMode.SAME_STEP else infos
        assert last["end_reason"][0] == "max_turns"
        assert set(last["reward_terms"]) >= {"answer", "gates"}
        if mode == AutoresetMode.NEXT_STEP:
            _, rewards, _, _, infos = envs.step(["ignored", "ignored"])
            assert rewards.tolist() == [0.0, 0.0]
            assert not any(infos["reward_terms"][n].any() for n in ("answer", "gates"))
        elif mode == AutoresetMode.DISABLED:
            with pytest.raises(EpisodeOverError):
                envs.step(["hm", "hm"])
            _, infos = envs.reset(options={"reset_mask": np.array([True, True])})
        seen.append(infos["task_id"][0])
    assert seen == order
    envs.close()
    single.close()


def test_a_failed_slot_is_marked_and_the_others_go_on() -> None:
    """One slot's machine fails: truncated, named, unscored; its neighbour never notices."""
    envs = make_vector(2, AutoresetMode.DISABLED)
    envs.reset(seed=0)
    _, rewards, _, truncated, infos = envs.step(
        [python("die"), python("count", tool="python_session")]
    )
    assert infos["failure"].tolist() == ["sandbox_died", ""]
    assert truncated.tolist() == [True, False]
    assert rewards[0] == 0.0
    assert infos["reward_masked"]["answer"].tolist() == [True, False]
    envs.close()


def test_recv_returns_what_is_there_when_the_time_is_up() -> None:
    """A batch may be smaller than asked for, and nothing of it is lost."""
    envs = make_vector(2, AutoresetMode.DISABLED)
    envs.reset(seed=0)
    envs.send(["hm", "hm"], [0, 1])
    batch = envs.recv(2, timeout_s=10.0)
    assert batch.env_ids.tolist() == [0, 1]
    assert envs.recv(0, timeout_s=0.0).env_ids.tolist() == []
    envs.close()


@pytest.mark.parametrize(
    ("actions", "slots"),
    [(["a"], [0, 1]), (["a", "b"], [0, 0]), (["a"], [5]), (["a"], [-1]), ([3], [0])],
)
def test_a_wrong_send_starts_nothing(actions: list[Any], slots: list[int]) -> None:
    """Lengths, doubles, unknown slots and actions that are no text are refused as a whole."""
    envs = make_vector(2, AutoresetMode.DISABLED)
    envs.reset(seed=0)
    with pytest.raises(UsageError):
        envs.send(actions, slots)
    envs.send(["hm", "hm"], [0, 1])
    with pytest.raises(UsageError, match="recv"):
        envs.send(["hm"], [0])
    with pytest.raises(UsageError, match="under way"):
        envs.recv(3)
    assert len(envs.recv(2).infos) == 2
    envs.close()


def test_each_slot_may_have_its_own_options() -> None:
    """A list gives one task to each slot."""
    envs = make_vector(2, AutoresetMode.DISABLED)
    _, infos = envs.reset(options={"task_id": ["t2", "t0"]})
    assert infos["task_id"].tolist() == ["t2", "t0"]
    envs.close()


def test_gymnasiums_vector_statistics_wrap_it() -> None:
    """``RecordEpisodeStatistics`` of the vector kind counts our episodes."""
    envs = gym.wrappers.vector.RecordEpisodeStatistics(make_vector(2, AutoresetMode.NEXT_STEP))
    envs.reset(seed=0)
    for _ in range(3):
        infos = envs.step(["hm", "hm"])[4]
    assert infos["episode"]["l"].tolist() == [3, 3]
    envs.close()


def test_it_is_made_anew_after_a_fork_and_pickles() -> None:
    """The child of a fork and a pickled copy step on loops of their own."""
    envs = make_vector(2, AutoresetMode.DISABLED)
    expected = envs.reset(seed=3)[0]
    copy = pickle.loads(pickle.dumps(envs))
    assert copy.reset(seed=3)[0] == expected
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = envs.reset(seed=3)[0] == expected and envs.step(["hm", "hm"])[1].shape == (2,)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert envs.step(["hm", "hm"])[1].shape == (2,)
    copy.close()
    envs.close()


class Nap:
    """A tool that takes as long as it is told, without a sandbox."""

    name = "nap"
    description = "sleeps"
    needs = ""
    kind = "pure"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        seconds: float

    async def run(self, args: Args, context: Any) -> ToolResult:
        """Sleep."""
        await Sleep(args.seconds)
        return ToolResult(text="awake")


def test_finished_slots_begin_anew_while_others_run() -> None:
    """The end of an episode is no barrier: only the chosen slots are reset."""
    envs = ToolVectorEnv(
        3,
        autoreset_mode=AutoresetMode.DISABLED,
        tasks=TASKS,
        sandbox=FakeRuntime(),
        tools=[Nap(), "submit"],
    )
    envs.reset(seed=0)
    slow = envs.envs[0].format.compose([ToolCall("nap", {"seconds": 0.3})])
    envs.send([slow, answer("2"), answer("2")], [0, 1, 2])
    assert envs.recv(2).env_ids.tolist() == [1, 2]
    envs.reset(options={"reset_mask": np.array([False, True, True])})
    with pytest.raises(UsageError, match="0"):
        envs.reset(options={"reset_mask": np.array([True, True, True])})
    envs.send(["hm", "hm"], [1, 2])
    assert envs.recv(2).env_ids.tolist() == [1, 2]
    assert envs.recv(1).infos[0]["results"][0]["text"] == "awake"
    envs.close()
    with pytest.raises(UsageError, match="closed"):
        envs.reset()
