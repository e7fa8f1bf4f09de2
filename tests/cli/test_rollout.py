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
from toolenvs.records import read_run, read_trajectories

__all__ = ["stub"]  # a fixture

TIMED = ("ms_per_step", "steps_per_s", "wall_s", "out")


def numbers(toolenvs: Toolenvs, *words: str) -> dict[str, Any]:
    """The JSON object of a rollout in the fake sandbox."""
    result = toolenvs("rollout", "math_tir", "--sandbox", "adder", "--json", *words)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_is_one_object_with_the_promised_keys(toolenvs: Toolenvs, adder: Adder) -> None:
    """Nothing but the object is on stdout; stderr, no terminal, has one line before and after."""
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", "--json")
    assert result.exit_code == 0
    first, last = result.stderr.splitlines()
    assert first.startswith("math_tir gold: playing ")
    assert last.startswith("played ")
    found = json.loads(result.stdout)
    promised = "episodes success score terms failed turns ms_per_step sandbox replay"
    promised += " failures steps_per_s interrupted continued"
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
    assert "other settings (episodes 5, now None)" in again.stderr
    assert "another folder" in again.stderr
    assert len(list(read_trajectories(out))) == 5


def test_an_interrupted_run_is_gone_on_with(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """Ctrl-C: a part is written, shown and said; the same words then play the rest, once each."""
    words = ["rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", "--envs", "2"]
    words += ["--episodes", "12", "--out", str(tmp_path / "run")]
    adder.interrupt_at = 9
    stopped = toolenvs(*words)
    assert stopped.exit_code == 130
    assert "PARTIAL: interrupted after" in stopped.stdout
    last = stopped.stderr.splitlines()[-1]
    assert last.startswith("toolenvs: interrupted: ")
    there = len(list(read_trajectories(tmp_path / "run")))
    assert 0 < there < 12
    assert f" {there} of 12 episodes" in last
    adder.interrupt_at = 0
    found = json.loads(toolenvs(*words, "--json").stdout)
    assert (found["episodes"], found["continued"], found["interrupted"]) == (12, there, False)
    assert found["ms_per_step"] > 0.0
    played = [(t.task.id, t.sample) for t in read_trajectories(tmp_path / "run")]
    assert len(played) == len(set(played)) == 12
    before = adder.executed
    again = json.loads(toolenvs(*words, "--json").stdout)
    assert (again["episodes"], again["continued"], again["score"]) == (12, 12, found["score"])
    assert adder.executed == before


def test_a_run_that_never_played_does_not_block_its_folder(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """Started with a sandbox that is not there, then with other settings."""
    out = str(tmp_path / "run")
    adder.starts = False
    words = ("rollout", "math_tir", "--sandbox", "adder", "--policy", "gold", "--out", out)
    assert toolenvs(*words).exit_code == 1
    adder.starts = True
    assert numbers(toolenvs, "--policy", "noisy", "--episodes", "3", "--out", out)["episodes"] == 3
    assert read_run(out).settings["policy"] == "noisy"


def test_episodes_that_failed_are_played_again(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """What broke the machine is mended by the same words."""
    words = ("--policy", "gold", "--episodes", "6", "--envs", "1", "--out", str(tmp_path / "run"))
    adder.dies_at = set(range(4, 7))  # all attempts of one call
    assert numbers(toolenvs, *words)["failed"] == 1
    found = numbers(toolenvs, *words)
    assert (found["episodes"], found["failed"], found["continued"]) == (6, 0, 5)


def test_a_rubric_is_a_name_an_object_or_a_file(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """All three score alike; the run records the rubric itself."""
    rubric = {"terms": [{"reward": "answer", "weight": 1.0}]}
    (tmp_path / "r.json").write_text(json.dumps(rubric))
    scores: list[tuple[float, dict[str, float]]] = []
    for given in ("outcome", json.dumps(rubric), str(tmp_path / "r.json")):
        out = tmp_path / str(len(scores))
        found = numbers(
            toolenvs, "--policy", "noisy", "--episodes", "9", "--rewards", given, "--out", str(out)
        )
        scores.append((found["score"], found["terms"]))
    assert scores[0] == scores[1] == scores[2]
    assert read_run(out).settings["rewards"] == rubric
    report = toolenvs("rescore", str(out), "--rewards", str(tmp_path / "r.json"), "--json")
    assert json.loads(report.stdout)["equal"] == 9


def test_a_group_is_played_whole_and_says_so(toolenvs: Toolenvs, adder: Adder) -> None:
    """Ten episodes in groups of three are twelve."""
    words = ("--policy", "gold", "--group", "3", "--episodes", "10")
    result = toolenvs("rollout", "math_tir", "--sandbox", "adder", *words)
    assert "12 episodes, not 10" in result.stderr


def test_a_long_source_does_not_break_the_heading(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """Its middle is left out; the heading is one line."""
    path = tmp_path / ("deep" * 30) / "train.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps({"question": "1+1?", "answer": "#### 2"}) + "\n")
    words = ("--policy", "gold", "--tasks", f"gsm8k:{path}", "--sandbox", "adder")
    heading = toolenvs("rollout", "math_tir", *words).stdout.splitlines()[0]
    assert heading.startswith("math_tir gsm8k:")
    assert "train.jsonl, format hermes, rewards gated" in heading


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
    assert "every episode failed (1 times model: status 401)" in result.stderr


def test_a_dead_endpoint_is_given_up(toolenvs: Toolenvs, adder: Adder, stub: Stub) -> None:
    """Exit code 1 after as many episodes as slots; the reason is counted, and told once."""
    for _ in range(12):
        stub.reply(404, {"error": "no such model"})
    words = ("--model", f"{stub.url}#tiny", "--episodes", "500", "--envs", "4", "--json")
    result = toolenvs("rollout", "math_tir", "--sandbox", "adder", *words)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert 4 <= found["episodes"] <= 8
    assert found["failures"] == {"model: status 404": found["episodes"]}
    assert f"given up after {found['episodes']} of 500 episodes" in result.stderr
    assert result.stderr.count("no such model") == 2  # when it began, and why it ended
    assert len(result.stderr.splitlines()) == 4


@pytest.mark.local
def test_noisy_is_the_same_in_two_processes_and_a_real_sandbox(tmp_path: Path) -> None:
    """Two programs with different hash seeds write the same trajectories."""
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
