"""Builders and Hypothesis strategies of trajectories, for tests of rewards and records."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolenvs.types import (
    ParsedTurn,
    Score,
    Step,
    Task,
    ToolCall,
    ToolError,
    ToolResult,
    Trajectory,
)

TASK = Task(id="t", prompt="What is 3 + 4?", answer="7")


def python(code: str = "print(7)", *, failed: bool = False, text: str = "") -> Step:
    """A clean message with one call."""
    call = ToolCall("python", {"code": code})
    error = ToolError("raised", "ValueError") if failed else None
    return Step(
        action=text or f"<call>{code}</call>",
        parsed=ParsedTurn(calls=(call,)),
        calls=(call,),
        results=(ToolResult("7", error=error),),
    )


def submit(answer: str = "7", *, problems: tuple[str, ...] = (), text: str = "") -> Step:
    """The message that hands in an answer, which ends the episode."""
    call = ToolCall("submit", {"answer": answer})
    return Step(
        action=text or f"<answer>{answer}</answer>",
        parsed=ParsedTurn(calls=(call,), problems=problems),
        calls=(call,),
        results=(ToolResult("", data={"answer": answer}, terminal=True),),
        terminated=True,
        end_reason="submit",
    )


def unreadable(why: str = "the tag is never closed") -> Step:
    """A message that no call could be read from."""
    error = ToolError("format", why)
    parsed = ParsedTurn(error=error, problems=(why,))
    return Step(action="<call>", parsed=parsed, results=(ToolResult(why, error=error),))


def cut() -> Step:
    """A message that the token limit cut."""
    return Step(action="<think>and so", parsed=ParsedTurn(cut=True), finish_reason="length")


def stopped(reason: str = "max_turns") -> Step:
    """A step of ``finish``: no message, the episode ends."""
    return Step(action="", truncated=True, end_reason=reason)


def failed(kind: str = "sandbox_died") -> Step:
    """A step on which the machine failed."""
    return Step(action="x", parsed=ParsedTurn(), truncated=True, failure=kind, end_reason="failure")


def episode(*steps: Step, task: Task = TASK) -> Trajectory:
    """A trajectory of these steps."""
    return Trajectory(task=task, steps=steps)


def episodes() -> st.SearchStrategy[Trajectory]:
    """Episodes of any course: several turns of any kind, then any end or none."""
    turns = st.sampled_from([python(), python(failed=True), unreadable(), cut()])
    ends = st.sampled_from(
        [submit(), submit("8"), submit(problems=("two answers",)), stopped(), failed()]
    )
    return st.builds(
        lambda body, end: episode(*body, *end),
        st.lists(turns, max_size=6),
        st.lists(ends, max_size=1),
    )


def texts(max_size: int = 8) -> st.SearchStrategy[str]:
    """Any texts with the characters that break lines and encoders; no surrogate *pairs*."""
    characters = st.one_of(
        st.characters(), st.sampled_from("\n\r\u2028\u2029\u0085\0\ufeff\ud800\ud83d\U0001f600")
    )
    return st.text(characters, max_size=max_size)


def json_values() -> st.SearchStrategy[Any]:
    """What JSON holds, infinities included and mappings that look like the escape of those."""
    keys = texts(4) | st.sampled_from(["$float", "$$float", "float"])
    scalars = (
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts()
    ) | st.sampled_from([float("inf"), -float("inf"), "inf", -0.0, 10**4299])
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    )


def recorded() -> st.SearchStrategy[Trajectory]:
    """Trajectories with anything in every field."""
    objects = st.dictionaries(texts(4), json_values(), max_size=2)
    calls = st.builds(ToolCall, name=texts(), arguments=objects, id=texts(3))
    errors = st.none() | st.builds(ToolError, st.sampled_from(["raised", "timeout"]), texts())
    results = st.builds(
        ToolResult, text=texts(), data=objects, error=errors, terminal=st.booleans(), note=texts(2)
    )
    numbers = st.floats(allow_nan=False)
    parsed = st.none() | st.builds(
        ParsedTurn,
        calls=st.lists(calls, max_size=1).map(tuple),
        error=errors,
        problems=st.lists(texts(), max_size=2).map(tuple),
        cut=st.booleans(),
    )
    steps = st.builds(
        Step,
        action=texts(),
        token_ids=st.lists(st.integers(0, 200_000), max_size=3).map(tuple),
        logprobs=st.lists(numbers, max_size=3).map(tuple),
        policy_version=st.integers(-(1 << 63), (1 << 63) - 1) | texts(4),
        parsed=parsed,
        calls=st.lists(calls, max_size=2).map(tuple),
        results=st.lists(results, max_size=2).map(tuple),
        evidence=st.lists(st.tuples(calls, results), max_size=1).map(tuple),
        observation=texts(),
        scores=st.dictionaries(texts(4), st.builds(Score, numbers, texts(), st.booleans())),
        terms=st.dictionaries(texts(4), numbers, max_size=2),
        reward=numbers,
        terminated=st.booleans(),
        end_reason=texts(3),
    )
    tasks = st.builds(Task, id=texts(), prompt=texts(), answer=texts(), data=objects)
    return st.builds(
        Trajectory,
        task=tasks,
        prompt=texts(),
        settings=objects,
        seed=st.integers(0, 2**64),
        steps=st.lists(steps, max_size=2).map(tuple),
    )
