"""Replays of recorded runs: the same bytes, and every difference found and shown."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeRuntime
from toolenvs.drivers import run
from toolenvs.env import ToolEnv
from toolenvs.errors import CacheMissError, DataError, RuntimeFailure, UsageError
from toolenvs.records import RunWriter, encode_trajectory
from toolenvs.replay import Parts, replay_live, replay_run, replay_trajectory
from toolenvs.rescoring import rescore_run
from toolenvs.types import Database, Step, Task, ToolCall, ToolResult, Trajectory, Turn
from toolenvs.vector import ToolVectorEnv

TASK = Task(id="t", prompt="How many?", answer="1", grading={})
TOOLS = ("python_session", "python", "submit")


def call(name: str, **arguments: Any) -> str:
    """A message that makes one call."""
    return (
        f"<think>so</think><tool_call>\n"
        f"{msgspec.json.encode({'name': name, 'arguments': arguments}).decode()}\n</tool_call>"
    )


COUNT = call("python_session", code="count")
RAISE = call("python_session", code="raise")
ACTIONS: tuple[Any, ...] = (
    COUNT,
    RAISE,
    call("python", code="count"),
    call("python_session", code="lose"),
    call("python_session", cod="count"),
    call("pythn", code="count"),
    COUNT + RAISE,
    "I do not know.\u2028\u0085\x00",
    "<tool_call>{broken</tool_call>",
    Turn("<tool_call>{", finish_reason="length"),
    Turn(COUNT, stop_string="</tool_call>", token_ids=(1, 2, 3), logprobs=(-0.5, -1.0, 0.0)),
    Turn(COUNT, policy_version=12),
    [ToolCall("python_session", {"code": "count", "x": 1.0}), ToolCall("submit", {"answer": 1})],
    [ToolCall("python", {"code": "count"})],
    [],
    f'<tool_call>{{"name": "python", "arguments": {{"code": {2**64}}}}}</tool_call>',
    f'<tool_call>{{"name": "python", "arguments": {{"code": [{-(2**63) - 1}]}}}}</tool_call>',
    call("submit", answer="1"),
    call("submit", answer=2),
    call("python_session", code="die"),
)


def make_env(**options: Any) -> ToolEnv:
    """An environment of one task with a fake sandbox."""
    defaults: dict[str, Any] = {"tasks": [TASK], "tools": TOOLS, "sandbox": FakeRuntime()}
    return ToolEnv(**{**defaults, **options})


def play(
    actions: Sequence[Any], *, end: str = "stop", env: ToolEnv | None = None, **options: Any
) -> Trajectory:
    """Record an episode of these actions; what has not ended then is ended by ``end``."""
    env = env or make_env(**options)
    env.reset(options={"task_id": "t", "sandbox_seed": 3, "sample": 2})
    for action in actions:
        if env.episode.trajectory.ended:
            break
        if isinstance(action, list):
            env.act(action)
        else:
            env.step(action)
    if not env.episode.trajectory.ended:
        if end == "fail":
            run(env.episode.fail("endpoint"))
        else:
            env.finish(end)
    recorded = env.episode.trajectory
    env.close()
    return recorded


@given(
    actions=st.lists(st.sampled_from(ACTIONS), max_size=6),
    end=st.sampled_from(["stop", "fail"]),
    max_turns=st.integers(1, 6),
    max_obs_tokens=st.sampled_from([40, 20_000]),
)
@settings(max_examples=150, deadline=None)
def test_every_recorded_episode_replays_to_the_byte(
    actions: list[Any], end: str, max_turns: int, max_obs_tokens: int
) -> None:
    """For all episodes, failed ones too: the record alone gives every step again."""
    recorded = play(actions, end=end, max_turns=max_turns, max_obs_tokens=max_obs_tokens)
    replayed = replay_trajectory(recorded)
    assert replayed.differences == ()
    assert replayed.identical_steps == replayed.steps == len(recorded.steps)
    assert encode_trajectory(recorded)  # all of it is data


def test_a_replay_needs_no_tool_and_no_sandbox(tmp_path: Path) -> None:
    """What a record does not name is never asked for: the tool of this one exists nowhere."""

    class Nowhere:
        name = "nowhere"
        description = "is nowhere"
        needs = ""
        kind = "pure"
        version = "7"

        class Args(msgspec.Struct):
            code: str

        async def run(self, args: Any, context: Any) -> ToolResult:
            return ToolResult(f"seen {args.code}", {"rows": [[1, 2.0, None]]})

    recorded = play(
        [call("nowhere", code="x"), call("submit", answer="1")], tools=[Nowhere(), "submit"]
    )
    assert recorded.steps[0].results[0].text == "seen x"
    with RunWriter(tmp_path / "run", {}) as writer:
        writer.write(recorded)
    assert replay_run(tmp_path / "run").identical == 1


def change_step(recorded: Trajectory, number: int, **fields: Any) -> Trajectory:
    """The trajectory with other fields in one step."""
    steps = list(recorded.steps)
    steps[number] = msgspec.structs.replace(steps[number], **fields)
    return msgspec.structs.replace(recorded, steps=tuple(steps))


RECORDED = (COUNT, RAISE, COUNT + COUNT, call("submit", answer="1"))
OTHER = ToolResult("7")


@pytest.mark.parametrize(
    ("tamper", "step", "field"),
    [
        (lambda t: change_step(t, 0, observation="7"), 0, "observation"),
        (lambda t: change_step(t, 0, results=(OTHER,)), 0, "observation"),
        (lambda t: change_step(t, 2, results=t.steps[2].results[:1]), 2, "results"),
        (lambda t: change_step(t, 1, results=(*t.steps[1].results, OTHER)), 1, "results"),
        (lambda t: change_step(t, 1, results=()), 1, "results"),
        (
            lambda t: change_step(t, 1, calls=(ToolCall("python_session", {"code": "x"}),)),
            1,
            "calls",
        ),
        (lambda t: change_step(t, 0, action=RAISE), 0, "parsed"),
        (lambda t: change_step(t, 3, reward=0.5), 3, "reward"),
        (lambda t: change_step(t, 3, terms={**t.steps[3].terms, "answer": 0.5}), 3, "terms"),
        (lambda t: change_step(t, 3, terminated=False), 3, "terminated"),
        (lambda t: change_step(t, 2, truncated=True), 2, "truncated"),
        (lambda t: change_step(t, 3, end_reason="max_turns"), 3, "end_reason"),
        (lambda t: change_step(t, 1, failure="sandbox_died"), 1, "failure"),
        (lambda t: change_step(t, 1, evidence=((ToolCall("x", {}), OTHER),)), 1, "evidence"),
        (lambda t: msgspec.structs.replace(t, steps=t.steps[:-1]), 2, "steps"),
        (lambda t: msgspec.structs.replace(t, steps=(*t.steps, t.steps[0])), 4, "steps"),
        (lambda t: msgspec.structs.replace(t, steps=t.steps[1:]), 0, "observation"),
        (lambda t: msgspec.structs.replace(t, prompt="another"), -1, "prompt"),
        (
            lambda t: msgspec.structs.replace(t, settings={**t.settings, "rubric": "0"}),
            -1,
            "rubric",
        ),
    ],
)
def test_whatever_was_changed_is_found(
    tamper: Callable[[Trajectory], Trajectory], step: int, field: str
) -> None:
    """A changed field, one too few and one too many are differences; the first is shown."""
    replayed = replay_trajectory(tamper(play(RECORDED)))
    found = replayed.differences[0]
    assert found.step == step
    assert found.field == field or field == "observation"
    assert found.diff.startswith("--- recorded\n+++ replayed\n")
    assert (found.task_id, found.sample) == ("t", 2)


@pytest.mark.parametrize(("was", "becomes"), [(1, True), (1, 1.0), (0, False)])
def test_a_number_that_is_equal_but_not_the_same_is_a_difference(was: Any, becomes: Any) -> None:
    """Python's 1 == 1.0 == True hides nothing."""
    recorded = play([[ToolCall("python_session", {"code": "count", "n": was})]])
    changed = change_step(
        recorded,
        0,
        parsed=None,
        calls=(ToolCall("python_session", {"code": "count", "n": becomes}),),
    )
    assert replay_trajectory(changed).differences == ()  # it is what was asked for
    observed = change_step(recorded, 0, results=(ToolResult("x", {"n": was}),), observation="")
    assert replay_trajectory(observed).differences
    mixed = change_step(play(RECORDED), 0, scores={**play(RECORDED).steps[0].scores})
    assert replay_trajectory(mixed).differences == ()
    terms = play(RECORDED).steps[0].terms
    assert replay_trajectory(
        change_step(play(RECORDED), 0, terms={**terms, "answer": 0})
    ).differences


def test_what_is_no_data_must_be_given_again() -> None:
    """A tokenizer and a rubric of objects are named in the error, and accepted as parts."""
    recorded = play(RECORDED, tokenizer=len, max_obs_tokens=30)
    with pytest.raises(UsageError, match=r"builtins\.len"):
        replay_trajectory(recorded)
    assert replay_trajectory(recorded, parts=Parts(tokenizer=len)).differences == ()
    anonymous = msgspec.structs.replace(
        recorded, settings={**recorded.settings, "rewards": None, "tokenizer": ""}
    )
    with pytest.raises(UsageError, match="rubric"):
        replay_trajectory(anonymous)
    parts = Parts(rubric=make_env().rubric, tokenizer=len)
    assert replay_trajectory(anonymous, parts=parts).differences == ()
    with pytest.raises(UsageError, match="no setting 'rewards'"):
        replay_trajectory(msgspec.structs.replace(recorded, settings={}))


# -- live ---------------------------------


def test_a_live_replay_runs_the_tools_again() -> None:
    """Equal where the tools are, and where they are not every step is named."""
    recorded = play([COUNT, RAISE, COUNT, call("submit", answer="1")])
    same = replay_live(recorded, sandbox=FakeRuntime())
    assert (same.steps, same.identical_steps, same.differences) == (4, 4, ())
    other = replay_live(recorded, sandbox=FakeRuntime(output="9"))
    assert (other.steps, other.identical_steps) == (4, 2)
    assert [difference.step for difference in other.differences] == [0, 2]
    assert "+" in other.differences[0].diff


def test_a_live_replay_tells_the_tools_in_the_recorded_order(tmp_path: Path) -> None:
    """The order is part of the prompt, and no order of the record's keys."""
    tasks = [Task(id="t", prompt="p", answer="1")]
    env = ToolEnv(tasks=tasks, tools=["submit", "python"], sandbox=FakeRuntime())
    env.reset(seed=0)
    env.step(call("submit", answer="1"))
    with RunWriter(tmp_path, {}) as writer:
        writer.write(env.episode.trajectory)
    env.close()
    assert replay_run(tmp_path, live=FakeRuntime()).clean


def test_a_step_in_which_a_machine_failed_is_not_compared() -> None:
    """It was no fact, so nobody can repeat it."""
    recorded = play([COUNT, call("python_session", code="die")])
    assert recorded.steps[-1].failure == "sandbox_died"
    assert replay_live(recorded, sandbox=FakeRuntime()).steps == 1


def two_families(folder: Path) -> tuple[Task, Path]:
    """A run of an episode of mathematics and one of SQL."""
    database = Database(name="d", place="d.sqlite")
    asks = Task(id="q", prompt="?", answer="SELECT 1", family="sql", database=database)
    env = ToolEnv("sql", tasks=[asks], sandbox=FakeRuntime(output=ROWS))
    env.reset()
    env.act([ToolCall("sql_query", {"sql": "SELECT 1"})])
    env.finish("stop")
    with RunWriter(folder, {}) as writer:
        writer.write(play([COUNT, RAISE]))
        writer.write(env.episode.trajectory)
    env.close()
    return asks, folder


ROWS = '{"columns": ["1"], "rows": [[1]], "row_count": 1, "cut": false}'


def test_a_run_of_several_families_gets_the_resources_of_each(tmp_path: Path) -> None:
    """Each episode's runtimes are asked for by its trajectory."""
    _, run_folder = two_families(tmp_path / "run")
    asked = []

    def of(trajectory: Trajectory) -> dict[str, Any]:
        asked.append(trajectory.task.family)
        return {"sandbox:sql": FakeRuntime(output=ROWS)} if trajectory.task.family == "sql" else {}

    report = replay_run(run_folder, live=FakeRuntime(), runtimes=of)
    assert asked == ["math_tir", "sql"]
    assert (report.episodes, report.identical, report.clean) == (2, 2, True)


class NoData(FakeRuntime):
    """A runtime whose sandboxes never come, since data is missing."""

    async def start(self) -> Any:
        raise RuntimeFailure("data", "/data/d.sqlite is not there")


class DiesOfData(FakeRuntime):
    """A runtime that starts and whose sandboxes do not."""

    async def start(self) -> Any:
        worker = await super().start()

        async def spawn(**_: Any) -> Any:
            raise RuntimeFailure("data", "/data/d.sqlite is not there")

        worker.spawn = spawn  # type: ignore[method-assign]
        return worker


@pytest.mark.parametrize("broken", [NoData, DiesOfData])
def test_a_machine_that_fails_now_is_no_difference(broken: Any, tmp_path: Path) -> None:
    """It is told as such, with what happened, and neither step nor episode counts as compared."""
    _, run_folder = two_families(tmp_path / "run")
    runtimes = {"sandbox:sql": broken()}
    report = replay_run(run_folder, live=FakeRuntime(), runtimes=runtimes)
    assert report.differences == ()
    assert (report.episodes, report.identical) == (1, 1)
    assert (report.steps, report.identical_steps) == (3, 3)
    (failed,) = report.not_run
    assert (failed.episode, failed.task_id) == (1, "q")
    assert failed.failure == "data: /data/d.sqlite is not there"
    assert not report.clean


def test_a_live_replay_that_cannot_begin_at_all_says_why(tmp_path: Path) -> None:
    """When no episode can be started there is nothing to report."""
    with RunWriter(tmp_path, {}) as writer:
        writer.write(play([COUNT]))
    with pytest.raises(RuntimeFailure, match="not there"):
        replay_run(tmp_path, live=NoData())


# -- runs ---------------------------------


def test_a_run_is_replayed_whole_and_what_is_damaged_is_named(tmp_path: Path) -> None:
    """A line that a crash cut is no difference, a line that holds no episode is damage."""
    unplayed = Trajectory(
        task=Task(id="t", prompt=""), steps=(Step(action="", failure="capacity"),)
    )
    with RunWriter(tmp_path / "run", {}) as writer:
        for recorded in (play(RECORDED), play([COUNT]), unplayed):
            writer.write(recorded)
    file = tmp_path / "run" / "trajectories.jsonl"
    with file.open("ab") as lines:
        lines.write(b'{"version": 1, "ta')
    report = replay_run(tmp_path / "run")
    assert (report.episodes, report.identical, report.unplayed) == (2, 2, 1)
    assert report.clean
    file.write_bytes(file.read_bytes().rpartition(b"\n")[0])  # only its end is missing: whole
    assert replay_run(file).unplayed == 1
    file.write_bytes(b"not json\n" + file.read_bytes())
    report = replay_run(file)
    assert (report.episodes, report.identical, len(report.damaged)) == (2, 2, 1)
    assert not report.clean
    file.write_bytes(b"")
    with pytest.raises(UsageError, match="no episode"):
        replay_run(file)


def each(name: str, *values: Any) -> list[dict[str, Any]]:
    """One setting with each of these values."""
    return [{name: value} for value in values]


DAMAGED = [
    *each("budgets", None, "x", [], {"max_turns": "\ud800"}, {"max_turns": 0}),
    *each("format", None, {}, [], 10**30, "\ud800", "no_such"),
    *each("format_options", None, [], 10**30, {"\ud800": 1}, {"no_such": 1}),
    *each("specs", None, -7, [], "x", "{", "\ud800", '[{"name": "\ud800"}]'),
    *each("rewards", "x", -7, [], 10**30, {"terms": "\ud800"}, {"terms": []}),
    *each("tokenizer", None),
]


@pytest.mark.parametrize("settings", DAMAGED)
def test_settings_that_cannot_be_used_cost_no_other_episode(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """The line is named as damaged; those beside it are played and scored."""
    good = play([COUNT])
    bad = msgspec.structs.replace(good, settings={**good.settings, **settings})
    with RunWriter(tmp_path, {}) as writer:
        for one in (good, bad, good):
            writer.write(one)
    report = replay_run(tmp_path)
    assert (report.episodes, report.identical, report.clean) == (2, 2, False)
    assert [piece.reason[:8] for piece in report.damaged] == ["line 2: "]
    live = replay_run(tmp_path, live=FakeRuntime())
    assert (live.episodes, [piece.reason[:8] for piece in live.damaged]) == (2, ["line 2: "])
    if "rewards" in settings:
        again = rescore_run(tmp_path)
        assert (again.episodes, again.equal, again.whole) == (2, 2, False)
        assert [piece.reason[:8] for piece in again.damaged] == ["line 2: "]
    with pytest.raises(DataError):
        replay_trajectory(bad)


def test_a_step_that_no_episode_takes_is_damage(tmp_path: Path) -> None:
    """Such as one that was ended by a word that only the environment says."""
    good = play([COUNT])
    step = Step(action="", truncated=True, end_reason="submit")
    with RunWriter(tmp_path, {}) as writer:
        for one in (msgspec.structs.replace(good, steps=(step,)), good):
            writer.write(one)
    report = replay_run(tmp_path)
    assert (report.identical, len(report.damaged)) == (1, 1)
    assert "end reason" in report.damaged[0].reason


def test_an_imported_episode_is_no_replay_and_says_so(tmp_path: Path) -> None:
    """Alone it is an error; beside others it is named, and they are played."""
    imported = Trajectory(
        task=Task(id="i", prompt="?", family="imported"),
        settings={"imported": "react"},
        prompt="?",
        steps=(Step(action="hm", terminated=True, end_reason="imported"),),
    )
    with RunWriter(tmp_path / "theirs", {}) as writer:
        writer.write(imported)
    with pytest.raises(UsageError, match=r"was imported \(react\); it cannot be replayed"):
        replay_run(tmp_path / "theirs")
    with RunWriter(tmp_path / "both", {}) as writer:
        for one in (imported, play([COUNT])):
            writer.write(one)
    report = replay_run(tmp_path / "both")
    assert (report.identical, report.clean) == (1, False)
    assert "was imported" in report.damaged[0].reason


def test_a_run_is_scored_again(tmp_path: Path) -> None:
    """By its own rubric as recorded, by another otherwise."""
    with RunWriter(tmp_path, {}) as writer:
        for recorded in (play(RECORDED), play([COUNT])):
            writer.write(recorded)
    own = rescore_run(tmp_path)
    assert (own.episodes, own.equal) == (2, 2)
    assert own.recorded == own.rescored
    other = rescore_run(tmp_path, rewards="outcome")
    assert other.rescored["score"] == pytest.approx(other.rescored["answer"])


def test_equal_bytes_under_every_hash_seed() -> None:
    """R06: neither keys nor records depend on the order in which a process keeps its sets."""
    script = (
        "import sys; from tests.test_replay import *; from toolenvs.records import *\n"
        "t = play(RECORDED); sys.stdout.write(trajectory_hash(t))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


# -- through the environment ---------------------------------


def test_cached_and_uncached_episodes_are_the_same_record(tmp_path: Path) -> None:
    """Trajectories are equal bytes in every mode; only ``stats`` tell, and ``info['replay']``."""
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    plain = encode_trajectory(play(RECORDED))
    for mode, started in (("record", 1), ("auto", 0), ("verify", 1), ("replay", 0)):
        runtime = FakeRuntime()
        env = make_env(sandbox=runtime, replay=mode, cache=url)
        assert encode_trajectory(play(RECORDED, env=env)) == plain
        assert runtime.started == started
    assert env.stats["cache_hits"] == 4
    assert env.stats["cache_misses"] == 0


def test_a_miss_reaches_the_caller_of_every_environment(tmp_path: Path) -> None:
    """It is an error of its own type, never a step that looks like the agent's fault."""
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    play([COUNT], replay="record", cache=url)
    env = make_env(replay="replay", cache=url)
    _, info = env.reset(options={"task_id": "t", "sandbox_seed": 3, "sample": 2})
    assert info["replay"] == "replay"
    env.step(COUNT)
    with pytest.raises(CacheMissError, match="never recorded in this state"):
        env.step(RAISE)
    assert env.finish("missed")[3]
    env.close()
    vector = ToolVectorEnv(
        2, tasks=[TASK], tools=TOOLS, sandbox=FakeRuntime(), replay="replay", cache=url
    )
    vector.reset(options={"task_id": "t", "sandbox_seed": 3})
    with pytest.raises(CacheMissError):
        vector.step([COUNT, RAISE])
    vector.close()


def test_the_slots_of_a_vector_share_one_cache(tmp_path: Path) -> None:
    """A group that makes one pure call at the same time runs it once."""
    runtime = FakeRuntime()
    vector = ToolVectorEnv(
        8,
        tasks=[TASK],
        tools=TOOLS,
        sandbox=runtime,
        replay="auto",
        cache=f"sqlite:///{tmp_path / 'cache.db'}",
    )
    vector.reset(options={"task_id": "t", "sandbox_seed": 3, "sample": list(range(8))})
    vector.step([call("python", code="count")] * 8)
    assert sum(len(sandbox.calls) for sandbox in runtime.sandboxes) == 1
    assert sum(env.stats["cache_hits"] for env in vector.envs) == 7
    vector.close()


def test_a_fork_goes_on_from_what_was_served(tmp_path: Path) -> None:
    """A branch of a served episode catches up by itself when it leaves the recorded path."""
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    play([COUNT, COUNT], replay="auto", cache=url)
    runtime = FakeRuntime()
    env = make_env(sandbox=runtime, replay="auto", cache=url)
    env.reset(options={"task_id": "t", "sandbox_seed": 3, "sample": 2})
    env.step(COUNT)
    branches = env.fork(2)
    assert "1" in branches[0].step(COUNT)[0]
    assert runtime.sandboxes == []
    branches[1].step(RAISE)
    assert [sandbox.calls for sandbox in runtime.sandboxes] == [["count", "raise"]]
    assert branches[1].stats["caught_up"] == 1
    for one in (*branches, env):
        one.close()


class Web:
    """The outside world: it never answers twice alike."""

    name = "web"
    description = "asks"
    needs = ""
    kind = "external"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        query: str

    def __init__(self) -> None:
        self._counts = itertools.count()

    def fingerprint(self) -> str:
        """One web for all."""
        return "web"

    async def run(self, args: Any, context: Any) -> ToolResult:
        """Answer with a number."""
        return ToolResult(f"answer {next(self._counts)}")


def test_branches_replay_what_each_of_them_saw_of_the_outside_world(tmp_path: Path) -> None:
    """Two branches, the origin and a branch of a branch are four episodes to the cache."""
    ask = ToolCall("web", {"query": "x"})
    seen: dict[str, list[str]] = {}
    for mode in ("record", "replay"):
        tools: list[Any] = [Web(), "submit"]
        url = f"sqlite:///{tmp_path / 'cache.db'}"
        env = make_env(tools=tools, replay=mode, cache=url)
        env.reset(options={"task_id": "t", "sandbox_seed": 3})
        env.act([ask])
        branches = [*env.fork(1), *env.fork(1)]
        paths = [env, *branches, *branches[0].fork(1)]
        seen[mode] = [path.act([ask])[4]["results"][0]["text"] for path in paths for _ in range(2)]
        for path in paths:
            path.close()
    assert seen["record"] == [f"answer {number}" for number in range(1, 9)]
    assert seen["replay"] == seen["record"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"replay": "aut", "cache": "sqlite:///x.db"}, "Did you mean 'auto'"),
        ({"replay": "auto"}, "cache='sqlite"),
        ({"replay": "auto", "cache": "x.db"}, "sqlite:///FILE"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(options: dict[str, Any], told: str) -> None:
    """At construction, in one line that says what is allowed."""
    with pytest.raises(UsageError, match=told):
        make_env(**options)


def test_construction_opens_nothing(tmp_path: Path) -> None:
    """The cache's file appears with the first reset."""
    path = tmp_path / "cache.db"
    env = make_env(replay="auto", cache=f"sqlite:///{path}")
    assert not path.exists()
    env.close()
    assert not path.exists()


def test_a_cache_may_be_given_as_a_path(tmp_path: Path) -> None:
    """It is then a SQLite file; what is no cache is told as a mistake of the caller."""
    place = tmp_path / "cache.db"
    env = ToolEnv(tasks=[TASK], sandbox=FakeRuntime(), replay="record", cache=place)
    env.reset(seed=0)
    env.close()
    assert place.exists()
    with pytest.raises(UsageError, match="cache=5 is no cache"):
        ToolEnv(tasks=[TASK], replay="record", cache=5)  # type: ignore[arg-type]
