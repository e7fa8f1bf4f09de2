"""Policies that feign: gold, noisy, scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.drivers import run
from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.formats.hermes import Hermes
from toolenvs.policies import PLANS, Actor, Gold, Noisy, Scene, Scripted, gold_calls, make_policy
from toolenvs.types import Task, ToolCall, ToolSpec, Turn

PYTHON = ToolSpec("python", "", {"type": "object", "properties": {"code": {"type": "string"}}})
SESSION = ToolSpec("python_session", "", PYTHON.parameters)
SUBMIT = ToolSpec("submit", "", {"type": "object", "properties": {"answer": {}}})
TASK = Task(
    id="sum",
    prompt="1+1?",
    answer="2",
    gold_calls=(
        {"name": "python", "arguments": {"code": "print(1)"}},
        {"name": "python", "arguments": {"code": "print(1+1)"}},
    ),
)


def scene(*specs: ToolSpec, sample: int = 0) -> Scene:
    """A scene with the hermes format."""
    return Scene(format=Hermes(), specs=specs or (PYTHON, SUBMIT), sample=sample)


def played(actor: Actor, *, max_turns: int = 10) -> list[str]:
    """All that an actor says when nothing it says ends the episode."""
    said: list[str] = []
    for turn in range(max_turns):
        info: dict[str, Any] = {"left": {"turns": max_turns - turn}, "messages": []}
        message = run(_act(actor, info))
        if message is None:
            break
        said.append(message)
    return said


async def _act(actor: Actor, info: dict[str, Any]) -> Turn | None:
    return await actor.act("", info)


def calls_of(messages: Sequence[str]) -> list[ToolCall]:
    """The calls that the messages make, as the format reads them."""
    return [call for text in messages for call in Hermes().parse(text, ()).calls]


def test_gold_makes_its_calls_and_then_submits() -> None:
    """One call a turn, in order, and the gold answer last."""
    assert calls_of(played(Gold().start(TASK, scene()))) == [
        ToolCall("python", {"code": "print(1)"}),
        ToolCall("python", {"code": "print(1+1)"}),
        ToolCall("submit", {"answer": "2"}),
    ]


def test_gold_takes_the_tool_that_is_there() -> None:
    """A call of a tool that is not on offer goes to another that takes code, else is left out."""
    names = [call.name for call in gold_calls(TASK, (SUBMIT, SESSION))]
    assert names == ["python_session", "python_session"]
    assert gold_calls(TASK, (SUBMIT,)) == []


@pytest.mark.parametrize("max_turns", [1, 2])
def test_gold_submits_in_the_last_turn_at_the_latest(max_turns: int) -> None:
    """However few turns there are, the answer is handed in."""
    said = played(Gold().start(TASK, scene()), max_turns=max_turns)
    assert calls_of(said)[-1] == ToolCall("submit", {"answer": "2"})
    assert len(said) == max_turns


@given(st.integers(0, 2**40), st.text(min_size=1, max_size=20), st.integers(0, 9))
def test_noisy_depends_on_seed_task_and_sample_alone(seed: int, task_id: str, sample: int) -> None:
    """Two policies of one seed say the same, in whatever order episodes are played."""
    task = Task(id=task_id, prompt="?", answer="7", gold_calls=TASK.gold_calls)
    one, two = Noisy(seed), Noisy(seed)
    two.start(TASK, scene())  # an episode before does not matter
    assert played(one.start(task, scene(sample=sample))) == played(
        two.start(task, scene(sample=sample))
    )


def test_noisy_is_equal_in_another_process() -> None:
    """No hash of this process is in it: a new interpreter says the same."""
    program = (
        "from tests.test_policies import TASK, played, scene; from toolenvs.policies import Noisy;"
        "import json; print(json.dumps([played(Noisy(0).start(TASK, scene(sample=i)))"
        " for i in range(20)]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "77", "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    here = [played(Noisy(0).start(TASK, scene(sample=i))) for i in range(20)]
    assert json.loads(there.stdout) == here


def test_noisy_keeps_its_shares() -> None:
    """Over 2000 samples the share of right submissions is what PLANS says, within 4 %."""
    assert sum(plan.share for plan in PLANS.values()) == pytest.approx(1.0)
    wanted = sum(plan.share for plan in PLANS.values() if plan.answer == "right")
    endings: Counter[bool] = Counter()
    for sample in range(2000):
        said = played(Noisy(0).start(TASK, scene(sample=sample)))
        submitted = [c.arguments["answer"] for c in calls_of(said) if c.name == "submit"]
        endings[submitted == ["2"]] += 1
    assert endings[True] / 2000 == pytest.approx(wanted, abs=0.04)


def test_noisy_shows_every_behaviour() -> None:
    """Malformed messages, cut ones, giving up and wrong answers all occur within 200 samples."""
    seen = set()
    for sample in range(200):
        said = played(Noisy(1).start(TASK, scene(sample=sample)))
        parsed = [Hermes().parse(text, ()) for text in said]
        seen |= {"malformed" for p in parsed if p.error is not None}
        seen |= {"cut" for p in parsed if p.cut}
        calls = calls_of(said)
        submitted = [c.arguments["answer"] for c in calls if c.name == "submit"]
        seen |= {"given up"} if not submitted else set()
        seen |= {"wrong"} if submitted not in ([], ["2"]) else set()
        seen |= {"no call"} if submitted and len(calls) == 1 else set()
    assert seen == {"malformed", "cut", "given up", "wrong", "no call"}


def write(path: Path, *lines: object) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_script_says_what_its_file_says(tmp_path: Path) -> None:
    """Texts come back to the character, separators of lines within them included."""
    text = "left\u2028right\u0085 \U0001f600"
    path = write(tmp_path / "s.jsonl", {"task_id": "sum", "turns": [text, "b"]})
    assert played(Scripted(path).start(TASK, scene())) == [text, "b"]
    raw = json.dumps({"task_id": "sum", "turns": [text]}, ensure_ascii=False)
    path.write_text(raw, encoding="utf-8")
    assert played(make_policy(str(path)).start(TASK, scene())) == [text]


def test_a_script_may_tell_samples_apart(tmp_path: Path) -> None:
    """A line with a sample is for that one; a line without is for all others."""
    path = write(
        tmp_path / "s.jsonl",
        {"task_id": "sum", "turns": ["any"]},
        {"task_id": "sum", "turns": ["third"], "sample": 2},
    )
    script = Scripted(path)
    assert played(script.start(TASK, scene(sample=2))) == ["third"]
    assert played(script.start(TASK, scene(sample=1))) == ["any"]


def test_a_task_without_turns_is_a_clear_error(tmp_path: Path) -> None:
    """The message names the file and the nearest task."""
    script = Scripted(write(tmp_path / "s.jsonl", {"task_id": "sums", "turns": []}))
    with pytest.raises(UnknownNameError, match=r"s\.jsonl.*Did you mean 'sums'"):
        script.start(TASK, scene())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"task_id": "a"}\n', "s.jsonl:1: .*turns"),
        ('{"task_id": "a", "turns": "x"}\n', "s.jsonl:1"),
        ('{"task_id": "a", "turns": [], "turn": 1}\n', "s.jsonl:1"),
        ('\n{"task_id": \n', "s.jsonl:2"),
        ("", "no line"),
        ('{"task_id":"a","turns":[]}\n{"task_id":"a","turns":[]}\n', "s.jsonl:2.*already"),
    ],
)
def test_a_bad_script_names_the_line(tmp_path: Path, lines: str, message: str) -> None:
    """What is wrong, where, and what a line must be."""
    (tmp_path / "s.jsonl").write_text(lines)
    with pytest.raises(DataError, match=message):
        Scripted(tmp_path / "s.jsonl")


def test_an_unknown_policy_is_a_clear_error(tmp_path: Path) -> None:
    """A misspelt name gets the nearest; a missing file is named."""
    with pytest.raises(UnknownNameError, match="Did you mean 'noisy'"):
        make_policy("noise")
    with pytest.raises(DataError, match=r"nope\.jsonl"):
        make_policy(str(tmp_path / "nope.jsonl"))
    with pytest.raises(DataError, match="folder"):
        make_policy(f"{tmp_path}/")


@pytest.mark.parametrize(
    "gold",
    [ToolCall("python", {"code": "1"}), "python", {}, {"name": 3}, {"name": "a", "arguments": 1}],
)
def test_a_gold_call_that_is_none_is_named(gold: Any) -> None:
    """With the task, its number, and how it is to look."""
    task = Task(id="t", prompt="", answer="1", gold_calls=(*TASK.gold_calls, gold))
    with pytest.raises(UsageError, match=r"task 't': gold_calls\[2\] is .*each is a mapping"):
        gold_calls(task, (PYTHON,))
    with pytest.raises(UsageError, match=r"gold_calls\[2\]"):
        Gold().start(task, scene())
