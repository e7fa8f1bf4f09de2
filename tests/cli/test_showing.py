"""``toolenvs show`` and ``export``: what a run holds, for people and for trainers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder
from toolenvs.records import RunWriter, read_trajectories
from toolenvs.types import Step, Task, ToolCall, ToolResult, Trajectory


@pytest.fixture
def run(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> Path:
    """A recorded run of right and wrong episodes."""
    out = tmp_path / "run"
    words = ("--policy", "noisy", "--sandbox", "adder", "--episodes", "12")
    assert toolenvs("rollout", "math_tir", *words, "--out", str(out)).exit_code == 0
    return out


def test_a_run_is_listed(run: Path, toolenvs: Toolenvs) -> None:
    """Every episode with its task, end and score."""
    result = toolenvs("show", str(run), "--json")
    found = json.loads(result.stdout)["episodes"]
    recorded = list(read_trajectories(run))
    assert [one["task"] for one in found] == [one.task.id for one in recorded]
    assert [one["score"] for one in found] == [one.score for one in recorded]
    table = toolenvs("show", str(run)).stdout
    assert all(one["end"] in table for one in found)


def test_one_episode_is_shown_turn_by_turn(run: Path, toolenvs: Toolenvs) -> None:
    """The task, each turn and the ending; a number that is not there is refused."""
    recorded = list(read_trajectories(run))[2]
    shown = toolenvs("show", str(run), "--episode", "2").stdout
    assert f"task {recorded.task.id}" in shown
    assert f"turn {len(recorded.steps)}: agent" in shown
    assert f"ended by {recorded.steps[-1].end_reason}" in shown
    beyond = toolenvs("show", str(run), "--episode", "12")
    assert beyond.exit_code == 2
    assert "has no episode 12" in beyond.output


def test_exported_episodes_are_chats(run: Path, toolenvs: Toolenvs, tmp_path: Path) -> None:
    """The texts are those of the record; a score filters; nothing is written over."""
    file = tmp_path / "good.jsonl"
    result = toolenvs("export", str(run), str(file), "--min-score", "0.9")
    assert result.exit_code == 0, result.output
    good = [one for one in read_trajectories(run) if one.score >= 0.9]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert 0 < len(lines) == len(good) < 12
    for line, one in zip(lines, good, strict=True):
        said = [m["content"] for m in line["messages"] if m["role"] == "assistant"]
        assert said == [step.action for step in one.steps]
        assert line["messages"][0] == {"role": "user", "content": one.prompt}
        assert line["score"] == pytest.approx(sum(line["reward_terms"].values()))
    assert toolenvs("export", str(run), str(file)).exit_code == 2


def test_an_imported_run_is_shown_and_exported(toolenvs: Toolenvs, tmp_path: Path) -> None:
    """Its messages come out as they went in."""
    messages = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "It is 4."},
    ]
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    run, file = str(tmp_path / "run"), tmp_path / "out.jsonl"
    assert toolenvs("import", str(tmp_path / "chat.jsonl"), "--out", run).exit_code == 0
    assert "It is 4." in toolenvs("show", run, "--episode", "0").stdout
    assert toolenvs("export", run, str(file)).exit_code == 0
    assert json.loads(file.read_text())["messages"] == messages


def test_what_a_run_holds_is_shown_and_never_obeyed(toolenvs: Toolenvs, tmp_path: Path) -> None:
    """Markup and control characters in ids, names and texts are text."""
    step = Step(
        action="x",
        calls=(ToolCall("[/q]", {}),),
        results=(ToolResult("\x1b[2J[/b]"),),
        end_reason="[/e]\x1b[2J",
        terminated=True,
    )
    with RunWriter(tmp_path / "run", {}) as run:
        run.write(Trajectory(task=Task(id="[/b]", prompt="[bold"), steps=(step,)))
    for words in (
        ("show", str(tmp_path / "run")),
        ("show", str(tmp_path / "run"), "--episode", "0"),
    ):
        result = toolenvs(*words)
        assert result.exit_code == 0, result.output
        assert "[/b]" in result.stdout
        assert "[/e]" in result.stdout
        assert "\x1b[2J" not in result.stdout


def test_a_damaged_line_ends_with_code_1(run: Path, toolenvs: Toolenvs, tmp_path: Path) -> None:
    """The others are shown and exported; the line is named."""
    file = run / "trajectories.jsonl"
    file.write_text("{}\n" + file.read_text())
    shown = toolenvs("show", str(run), "--json")
    assert shown.exit_code == 1
    assert "trajectories.jsonl" in shown.stderr
    assert len(json.loads(shown.stdout)["episodes"]) == 12
    assert toolenvs("export", str(run), str(tmp_path / "all.jsonl")).exit_code == 1
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 12
    assert toolenvs("export", str(run), str(tmp_path / "x"), "--min-score", "nan").exit_code == 2
