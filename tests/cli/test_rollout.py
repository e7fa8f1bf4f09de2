"""``toolenvs rollout`` from the words to the numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_endpoint import Stub, stub
from tests.test_rollout import Adder
from toolenvs.cli.sandboxes import try_sandbox
from toolenvs.records import read_run, read_trajectories

__all__ = ["stub"]  # a fixture

TIMED = ("ms_per_step", "wall_s", "out")


def numbers(toolenvs: Toolenvs, *words: str) -> dict[str, Any]:
    """The JSON object of a rollout in the fake sandbox."""
    result = toolenvs("rollout", "math_tir", "--sandbox", "adder", "--json", *words)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_is_one_object_with_the_promised_keys(toolenvs: Toolenvs, adder: Adder) -> None:
    """Nothing but the object is on stdout, and stderr is quiet."""
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    found = json.loads(result.stdout)
    promised = "episodes success score terms failed turns ms_per_step sandbox replay"
    assert set(promised.split()) <= set(found)
    assert (found["success"], found["failed"], found["sandbox"]) == (1.0, 0, "adder")
    assert found["score"] == pytest.approx(sum(found["terms"].values()))


def test_every_task_once_by_default(toolenvs: Toolenvs, adder: Adder) -> None:
    """As many episodes as there are tasks."""
    from toolenvs.tasks import load_tasks

    assert numbers(toolenvs, "--policy", "gold")["episodes"] == len(
        load_tasks("", family="math_tir")
    )


def test_noisy_is_the_same_in_two_runs(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> None:
    """Apart from times the output is equal; so are the trajectories, to the byte."""
    words = ("--policy", "noisy", "--seed", "0", "--episodes", "60")
    runs = []
    for name in ("one", "two"):
        adder.executed = 0  # the fake's state, which a real sandbox does not have
        found = numbers(toolenvs, *words, "--out", str(tmp_path / name))
        runs.append({key: value for key, value in found.items() if key not in TIMED})
    assert runs[0] == runs[1]
    assert 0.0 < runs[0]["success"] < 1.0
    one, two = ((tmp_path / name / "trajectories.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    assert 0.0 < numbers(toolenvs, *words, "--seed", "1")["success"] < 1.0


def test_the_table_is_for_people(toolenvs: Toolenvs, adder: Adder) -> None:
    """Success, terms, behaviour and the sandbox are there to read."""
    result = toolenvs("rollout", "math_tir", "--policy", "noisy", "--sandbox", "adder")
    assert result.exit_code == 0
    for word in ("success", "answer", "ms per step", "adder", "tool calls", "errors repaired"):
        assert word in result.stdout


def test_eval_gives_four_metrics_with_intervals(toolenvs: Toolenvs, adder: Adder) -> None:
    """Whole groups of k samples; every metric has its interval."""
    found = numbers(toolenvs, "--policy", "noisy", "--eval", "--samples", "4", "--episodes", "30")
    assert found["episodes"] == 32  # rounded up to whole groups
    assert found["replay"] == "off"
    assert list(found["evaluation"]) == ["avg@4", "pass@4", "pass^4", "maj@4"]
    for metric in found["evaluation"].values():
        assert metric["low"] <= metric["value"] <= metric["high"]
        assert metric["tasks"] == 8
    assert found["evaluation"]["avg@4"]["value"] == pytest.approx(found["success"])
    table = toolenvs(
        "rollout", "math_tir", "--policy", "noisy", "--sandbox", "adder", "--eval", "--samples", "2"
    )
    assert "pass^2" in table.stdout


def test_out_is_a_run_that_can_be_read(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> None:
    """Settings and one trajectory for each episode; a second run does not mix into it."""
    out = str(tmp_path / "run")
    numbers(toolenvs, "--policy", "gold", "--episodes", "5", "--out", out)
    assert read_run(out).settings["policy"] == "gold"
    assert read_run(out).settings["format"] == "hermes"
    assert len(list(read_trajectories(out))) == 5
    again = toolenvs("rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", "--out", out)
    assert again.exit_code == 2
    assert "another folder" in again.stderr
    assert len(list(read_trajectories(out))) == 5


def script(path: Path, *lines: dict[str, Any]) -> str:
    """A script file."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_a_script_plays_its_own_tasks(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> None:
    """Without --episodes only what the file has turns for is played."""
    submit = '<tool_call>{"name": "submit", "arguments": {"answer": "190528"}}</tool_call>'
    path = script(tmp_path / "s.jsonl", {"task_id": "multiples-of-3-or-7", "turns": [submit]})
    found = numbers(toolenvs, "--policy", path)
    assert (found["episodes"], found["success"], found["without_call"]) == (1, 1.0, 1.0)


def test_a_script_without_the_task_is_a_usage_error(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """Said before anything is played, both ways round."""
    path = script(tmp_path / "s.jsonl", {"task_id": "multiples-of-3-or-7", "turns": []})
    more = toolenvs(
        "rollout", "math_tir", "--policy", path, "--sandbox", "adder", "--episodes", "2"
    )
    assert more.exit_code == 2
    assert "s.jsonl" in more.stderr
    path = script(tmp_path / "t.jsonl", {"task_id": "multiple-of-3-or-7", "turns": []})
    unknown = toolenvs("rollout", "math_tir", "--policy", path, "--sandbox", "adder")
    assert unknown.exit_code == 2
    assert "Did you mean 'multiples-of-3-or-7'" in unknown.stderr
    assert adder.executed == 0


def test_a_model_plays(toolenvs: Toolenvs, adder: Adder, stub: Stub) -> None:
    """An endpoint's messages reach the environment; its name is in the report, no key is."""
    submit = '<tool_call>{"name": "submit", "arguments": {"answer": "190528"}}</tool_call>'
    stub.say('<tool_call>{"name": "python", "arguments": {"code": "print(1+1)"}}</tool_call>')
    stub.say(submit)
    found = numbers(
        toolenvs, "--model", f"{stub.url}#tiny", "--episodes", "1", "--temperature", "0.5"
    )
    assert (found["success"], found["turns"], found["calls_per_episode"]) == (1.0, 2.0, 1.0)
    assert found["model"] == f"{stub.url}#tiny"
    assert stub.bodies[0]["temperature"] == 0.5
    assert "<tool_response>" in stub.bodies[1]["messages"][-1]["content"]


def test_a_model_that_is_gone_is_no_score(toolenvs: Toolenvs, adder: Adder, stub: Stub) -> None:
    """Every episode failed: exit code 1, score null, and a line that says so."""
    stub.reply(401, "no key")
    result = toolenvs(
        "rollout",
        "math_tir",
        "--model",
        f"{stub.url}#tiny",
        "--episodes",
        "1",
        "--sandbox",
        "adder",
        "--json",
    )
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["failed"], found["success"], found["score"]) == (1, None, None)
    assert "every episode failed (model 1)" in result.stderr


@pytest.mark.local
def test_noisy_is_the_same_in_two_processes_and_a_real_sandbox(tmp_path: Path) -> None:
    """Two programs with different hash seeds write the same trajectories."""
    if not (trial := try_sandbox("local")).works:
        pytest.skip(f"no local sandbox here: {trial.detail}")
    written = []
    for number in (1, 2):
        out = tmp_path / str(number)
        subprocess.run(
            [
                *(sys.executable, "-m", "toolenvs.cli", "rollout", "math_tir"),
                *("--policy", "noisy", "--seed", "0", "--episodes", "24", "--sandbox", "local"),
                *("--envs", str(3 * number), "--out", str(out), "--json"),
            ],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": str(number)},
        )
        written.append((out / "trajectories.jsonl").read_bytes())
    assert written[0] == written[1]
