"""One episode's calls: the agent's faults are data, the machine's faults are mended or raised."""

from __future__ import annotations

import copy
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import CountingSandbox, FakePool, Forkable
from toolenvs import tools
from toolenvs.cache import ReplayCache
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure
from toolenvs.executor import MAX_ATTEMPTS, Executor, as_external, bound_tools, tool_spec
from toolenvs.playback import Playback
from toolenvs.protocols import ToolKind
from toolenvs.tools.python import Python
from toolenvs.types import Database, ExecResult, Task, ToolCall, ToolError, ToolResult

TASK = Task(id="t", prompt="p", answer="GOLD-7f3a", files={"a.txt": "x"}, data={"k": "GOLD-7f3a"})
FACTS = {"sandbox:python": {"fingerprint": "fake"}}
NAMES = ("python", "python_session", "submit")


def make_executor(pool: Any) -> Executor:
    """An executor over the Python tools whose sandboxes come from ``pool``."""
    made = {name: tools.make(name) for name in NAMES}
    return Executor(made, task=TASK, sandboxes={"sandbox:python": pool}, seed=5)


def call(executor: Executor, name: str, **arguments: Any) -> ToolResult:
    """Run one call to its end."""
    return run(executor.run(ToolCall(name, arguments)))


class LookableSandbox(CountingSandbox):
    """``look`` prints how many calls came before and is none itself."""

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        if code != "look":
            return await super().execute(code, timeout_s=timeout_s)
        if self.dies_at is not None and len(self.calls) >= self.dies_at:
            raise RuntimeFailure("sandbox_died", "the container is gone")
        return ExecResult(status="ok", stdout=f"{len(self.calls)}\n")


class Look(Python):
    """Reads the kept sandbox; for a task with a database it goes elsewhere."""

    name = "look"
    kind: ToolKind = "reads"

    def bound(self, task: Task) -> Look:
        """Elsewhere, or here."""
        there = copy.copy(self)
        there.needs = "service:postgres" if task.database is not None else self.needs
        assert task.answer == ""
        return there


def looking(pool: Any, cache: ReplayCache | None = None) -> Executor:
    """An executor with a tool that reads, over an optional cache."""
    made: dict[str, Any] = {"look": Look(), "python_session": tools.make("python_session")}
    playback = None if cache is None else Playback("auto", cache, runtimes=FACTS, counts={})
    return Executor(made, task=TASK, sandboxes={"sandbox:python": pool}, seed=5, playback=playback)


def test_a_tool_that_reads_uses_the_kept_sandbox_and_leaves_its_state(tmp_path: Path) -> None:
    """It sees what stateful calls did, is served in the same state only, and is never caught up."""
    with closing(ReplayCache(f"sqlite:///{tmp_path}/cache.db")) as cache:
        seen = []
        for _ in range(2):
            pool = FakePool(LookableSandbox)
            executor = looking(pool, cache)
            words = [("look", "look"), ("python_session", "count"), ("look", "look")]
            seen.append([call(executor, name, code=word).text for name, word in words])
            run(executor.close())
        assert seen == [["0", "0", "1"]] * 2
        assert pool.leased == []  # the second time all three were served
        executor = looking(pool, cache)
        assert call(executor, "look", code="look").text == "0"
        assert call(executor, "python_session", code="raise").error is not None
        assert call(executor, "look", code="look").text == "1"
        assert [sandbox.calls for sandbox in pool.leased] == [["raise"]]
        run(executor.close())


def test_a_reader_whose_sandbox_died_finds_the_state_rebuilt() -> None:
    """The stateful calls are played again in a fresh sandbox, and the read is repeated there."""
    pool = FakePool(LookableSandbox)
    executor = looking(pool)
    call(executor, "python_session", code="count")
    pool.leased[0].dies_at = 0
    assert call(executor, "look", code="look").text == "1"
    assert [sandbox.calls for sandbox in pool.leased] == [["count"], ["count"]]
    run(executor.close())


def test_a_tool_is_bound_to_its_task_without_the_gold() -> None:
    """``bound`` decides where it runs; it is told the task as tools are."""
    task = msgspec.structs.replace(TASK, database=Database(name="d", engine="postgres"))
    made: dict[str, Any] = {"look": Look(), "submit": tools.make("submit")}
    assert [tool.needs for tool in bound_tools(made, task).values()] == ["service:postgres", ""]
    assert [tool.needs for tool in bound_tools(made, TASK).values()] == ["sandbox:python", ""]
    assert as_external(made["look"]) is made["look"]
    assert as_external(tools.make("python")).kind == "external"


class Elsewhere(Python):
    """Runs where databases are."""

    name = "elsewhere"
    needs = "sandbox:sql"


@pytest.mark.parametrize(("private", "places"), [(False, ("d/a",)), (True, ("d/a", "d/b"))])
def test_places_of_databases_go_where_databases_are(private: bool, places: tuple[str, ...]) -> None:
    """Not to a sandbox beside; what the task is only judged on is the referee's alone."""
    database = Database(name="d", place="d/a", instances=("d/b",))
    pools = {"sandbox:python": FakePool(), "sandbox:sql": FakePool()}
    made: dict[str, Any] = {"elsewhere": Elsewhere(), "python": Python()}
    executor = Executor(
        made,
        task=msgspec.structs.replace(TASK, database=database),
        sandboxes=pools,  # type: ignore[arg-type]
        seed=5,
        private=private,
    )
    for name in made:
        call(executor, name, code="count")
    assert [pool.data for pool in pools.values()] == [[()], [places]]


def test_the_tasks_moment_goes_to_what_runs_python() -> None:
    """And nowhere else: a server's clock is its own."""
    python, server = FakePool(), FakePool()
    elsewhere = Look()
    elsewhere.needs = "sandbox:sql"
    sandboxes: Any = {"sandbox:python": python, "sandbox:sql": server}
    made: dict[str, Any] = {"python": tools.make("python"), "look": elsewhere}
    executor = Executor(
        made,
        task=msgspec.structs.replace(TASK, now="2024-06-15"),
        sandboxes=sandboxes,
        seed=5,
    )
    for name in ("python", "look"):
        call(executor, name, code="count")
    run(executor.close())
    assert (python.clocks, server.clocks) == (["2024-06-15"], [""])


def test_a_private_call_that_cannot_be_made_is_a_failure() -> None:
    """It is the reward's fault, and no result that a score could rest on."""
    made: dict[str, Any] = {"python": Python()}
    executor = Executor(
        made,
        task=TASK,
        sandboxes={"sandbox:python": FakePool()},  # type: ignore[dict-item]
        seed=5,
        private=True,
    )
    for name, arguments in (("pythn", {"code": "1"}), ("python", {"cod": "1"})):
        with pytest.raises(RuntimeFailure) as failure:
            call(executor, name, **arguments)
        assert failure.value.kind == "referee"


def test_T05_an_unknown_tool_is_the_agents_error() -> None:
    """T05: an invented name is answered with the real names, and nothing starts."""
    pool = FakePool()
    result = call(make_executor(pool), "pythn", code="1")
    assert result.error is not None
    assert result.error.kind == "unknown_tool"
    assert "python_session" in result.text
    assert "Did you mean 'python'" in result.text
    assert pool.leased == []


@pytest.mark.parametrize(
    "arguments",
    [{}, {"code": 3}, {"code": None}, {"cod": "1"}, {"code": "1", "timeout": 99}, {"code": ["1"]}],
)
def test_bad_arguments_name_the_problem_and_what_is_wanted(arguments: dict[str, Any]) -> None:
    """Missing, mistyped and invented arguments are answered, never run."""
    pool = FakePool()
    result = call(make_executor(pool), "python", **arguments)
    assert result.error is not None
    assert result.error.kind == "bad_arguments"
    assert "code" in result.text
    assert pool.leased == []


def test_a_pure_tool_gets_a_new_sandbox_each_call_and_a_stateful_one_keeps_it() -> None:
    """``python`` starts from nothing each time, ``python_session`` goes on."""
    pool = FakePool()
    executor = make_executor(pool)
    assert [call(executor, "python", code="count").text for _ in range(2)] == ["0", "0"]
    assert [call(executor, "python_session", code="count").text for _ in range(3)] == [
        "0",
        "1",
        "2",
    ]
    assert len(pool.open) == 1
    run(executor.close())
    run(executor.close())
    assert pool.open == []
    assert pool.seeds == [5, 5, 5]
    assert pool.files == [{"a.txt": "x"}] * 3


def test_a_dead_sandbox_is_replaced_and_the_state_rebuilt() -> None:
    """An episode survives the death of its sandbox: the agent sees the same results."""
    pool = FakePool()
    executor = make_executor(pool)
    for expected in ("0", "1"):
        assert call(executor, "python_session", code="count").text == expected
    pool.leased[0].dies_at = 0
    assert call(executor, "python_session", code="count").text == "2"
    assert pool.leased[1].calls == ["count"] * 3
    assert executor.restarts == 1


def test_a_rebuilt_state_that_differs_is_a_failure() -> None:
    """A catch-up that gives another result ends the episode as a failure, never goes on."""
    pool = FakePool()
    executor = make_executor(pool)
    call(executor, "python_session", code="count")
    pool.leased[0].dies_at = 0

    class Forgetful(CountingSandbox):
        async def execute(self, code: str, *, timeout_s: float | None = None) -> Any:
            self.calls.append("before")
            return await super().execute(code, timeout_s=timeout_s)

    pool.make = Forgetful
    with pytest.raises(RuntimeFailure) as raised:
        call(executor, "python_session", code="count")
    assert raised.value.kind == "diverged"
    assert len(pool.leased) == 2


@pytest.mark.parametrize("name", ["python", "python_session"])
def test_retries_are_bounded(name: str) -> None:
    """A machine that always fails raises after the last attempt and leaves nothing open."""
    pool = FakePool(lambda: CountingSandbox(dies_at=0))
    with pytest.raises(RuntimeFailure) as raised:
        call(make_executor(pool), name, code="count")
    assert raised.value.kind == "sandbox_died"
    assert len(pool.leased) == MAX_ATTEMPTS
    assert pool.open == []


def test_C07_a_session_that_the_agent_killed_is_new_and_says_so() -> None:
    """C07 a, b: the loss is told at once and again with the next call; then it is over."""
    pool = FakePool()
    executor = make_executor(pool)
    call(executor, "python_session", code="count")
    lost = call(executor, "python_session", code="lose")
    assert lost.error is not None
    assert lost.error.kind == "killed"
    after = call(executor, "python_session", code="count")
    assert after.data["stdout"] == "0\n"
    later = call(executor, "python_session", code="count")
    assert [bool(r.note) for r in (lost, after, later)] == [True, True, False]
    assert "restarted" in after.text
    assert executor.restarts == 0


def test_H06_the_gold_answer_is_not_in_reach_of_a_tool() -> None:
    """H06: what a tool is given of the task holds neither the answer nor the source's row."""
    seen = []

    class Spy:
        name = "spy"
        description = "looks"
        Args = tools.get("submit").Args  # type: ignore[attr-defined]
        needs = ""
        kind = "pure"
        version = "1"

        async def run(self, args: Any, context: Any) -> ToolResult:
            seen.append(repr(context))
            return ToolResult(text="")

    executor = Executor({"spy": Spy()}, task=TASK, sandboxes={}, seed=0)  # type: ignore[dict-item]
    call(executor, "spy", answer="x")
    assert len(seen) == 1
    assert "GOLD" not in seen[0]


@given(st.text())
def test_control_bytes_never_reach_the_text(text: str) -> None:
    """For all outputs: the text encodes to UTF-8 and holds no raw control character (C06 d)."""

    class Echo:
        name = "echo"
        description = "says it back"
        Args = tools.get("submit").Args  # type: ignore[attr-defined]
        needs = ""
        kind = "pure"
        version = "1"

        async def run(self, args: Any, context: Any) -> ToolResult:
            return ToolResult(text=text)

    executor = Executor({"echo": Echo()}, task=TASK, sandboxes={}, seed=0)  # type: ignore[dict-item]
    shown = call(executor, "echo", answer="x").text
    shown.encode("utf-8")
    assert not [c for c in shown if ord(c) < 32 and c not in "\n\t"]


def test_a_spec_is_the_schema_of_the_arguments() -> None:
    """What the agent is told is what is validated."""
    spec = tool_spec(tools.make("python"))
    assert spec.name == "python"
    assert spec.parameters["type"] == "object"
    assert spec.parameters["required"] == ["code"]
    assert spec.parameters["properties"]["code"]["type"] == "string"


def test_a_failing_pure_call_leaves_the_session_alone() -> None:
    """The kept sandbox lives on when another one dies."""
    pool = FakePool()
    executor = make_executor(pool)
    call(executor, "python_session", code="count")
    with pytest.raises(RuntimeFailure):
        call(executor, "python", code="die")
    assert call(executor, "python_session", code="count").text == "1"
    assert pool.leased[0].calls == ["count"] * 2


def test_a_bug_of_a_tool_is_the_machines_fault_and_not_tried_again() -> None:
    """An exception of the tool's own code is never scored, cached or shown to the agent."""
    ran = []

    class Broken:
        name = "broken"
        description = "raises"
        Args = tools.get("submit").Args  # type: ignore[attr-defined]
        needs = ""
        kind = "pure"
        version = "1"

        async def run(self, args: Any, context: Any) -> ToolResult:
            ran.append(1)
            raise ZeroDivisionError

    executor = Executor({"broken": Broken()}, task=TASK, sandboxes={}, seed=0)  # type: ignore[dict-item]
    with pytest.raises(RuntimeFailure, match="ZeroDivisionError") as raised:
        call(executor, "broken", answer="x")
    assert (raised.value.kind, ran) == ("tool", [1])


class Statement:
    """A stateful tool whose calls are words; ``slow`` meets its limit, undone or not."""

    name = "statement"
    description = "runs"
    needs = "sandbox:python"
    kind = "stateful"
    version = "1"

    class Args(msgspec.Struct):
        """Arguments of a call."""

        code: str

    def __init__(self, *, undoes: bool) -> None:
        self.undoes = undoes

    async def run(self, args: Any, context: Any) -> ToolResult:
        """Run a word."""
        if args.code == "slow":
            kept = {"state_kept": True} if self.undoes else {}
            return ToolResult("stopped", data=kept, error=ToolError("timeout", "stopped"))
        return ToolResult((await context.sandbox.execute(args.code)).stdout)


@pytest.mark.parametrize("undoes", [True, False])
def test_a_call_that_was_stopped_and_undone_leaves_a_state_that_can_be_rebuilt(
    undoes: bool,
) -> None:
    """A branch skips it and goes on; where it was not undone the state is not known."""
    pool = FakePool()
    sandboxes: Any = {"sandbox:python": pool}
    made: Any = {"statement": Statement(undoes=undoes)}
    executor = Executor(made, task=TASK, sandboxes=sandboxes, seed=5)
    for word in ("count", "slow", "count"):
        call(executor, "statement", code=word)
    branch = Executor(made, task=TASK, sandboxes=sandboxes, seed=5, like=executor)
    if undoes:
        assert call(branch, "statement", code="count").text == "2\n"
        assert pool.leased[-1].calls == ["count"] * 3
    else:
        with pytest.raises(RuntimeFailure, match="interrupted"):
            call(branch, "statement", code="count")


def branched(executor: Executor, pool: Any) -> Executor:
    """A branch of an episode, which has what could be forked."""
    made = {name: tools.make(name) for name in NAMES}
    twin = Executor(made, task=TASK, sandboxes={"sandbox:python": pool}, seed=5, like=executor)
    run(twin.fork_from(executor))
    return twin


def test_a_branch_takes_a_fork_of_the_sandbox_and_runs_nothing_again() -> None:
    """It goes on from the state at the fork, whatever the origin does afterwards."""
    pool = FakePool(Forkable)
    executor = make_executor(pool)
    call(executor, "python_session", code="a")
    twin = branched(executor, pool)
    call(executor, "python_session", code="b")
    assert call(twin, "python_session", code="c").text == "1"
    assert [sandbox.calls for sandbox in pool.leased] == [["a", "b"], ["a", "c"]]
    run(twin.close())
    run(executor.close())
    assert not pool.open


@pytest.mark.parametrize("kind", [CountingSandbox, Forkable])
def test_a_branch_without_a_fork_catches_up(kind: type[CountingSandbox]) -> None:
    """So does one of a session that has run nothing yet, and of a sandbox that cannot be forked."""
    pool = FakePool(kind)
    executor = make_executor(pool)
    early = branched(executor, pool)
    call(executor, "python_session", code="a")
    twin = branched(executor, pool)
    assert call(early, "python_session", code="b").text == "0"
    assert call(twin, "python_session", code="c").text == "1"
    assert ["a", "c"] in [sandbox.calls for sandbox in pool.leased]


def test_what_a_branch_cannot_do_is_done_in_a_sandbox_of_its_own() -> None:
    """The state is rebuilt there; that is no restart, nothing has failed."""
    pool = FakePool(Forkable)
    executor = make_executor(pool)
    call(executor, "python_session", code="a")
    twin = branched(executor, pool)
    for one in (twin, executor):
        assert call(one, "python_session", code="apart").text == "1"
        assert one.restarts == 0
    assert [sandbox.calls for sandbox in pool.open] == [["a", "apart"], ["a", "apart"]]
    assert len(pool.leased) == 3


def test_a_fork_of_a_sandbox_that_is_behind_catches_up_from_there(tmp_path: Path) -> None:
    """Served calls have run in neither; the branch runs only those."""
    with closing(ReplayCache(f"sqlite:///{tmp_path}/cache.db")) as cache:
        made = {name: tools.make(name) for name in NAMES}

        def over(pool: Any, like: Executor | None = None) -> Executor:
            playback = Playback("auto", cache, runtimes=FACTS, counts={})
            return Executor(
                made,
                task=TASK,
                sandboxes={"sandbox:python": pool},
                seed=5,
                playback=playback,
                like=like,
            )

        first = over(FakePool(Forkable))
        for code in ("a", "b"):
            call(first, "python_session", code=code)
        pool = FakePool(Forkable)
        second = over(pool)
        for code in ("a", "x", "y"):
            call(second, "python_session", code=code)
        third = over(pool, like=second)
        run(third.fork_from(second))
        assert call(third, "python_session", code="z").text == "3"
        assert pool.leased[-1].calls == ["a", "x", "y", "z"]
