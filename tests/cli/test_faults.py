"""Bad input: exit code 2, one clear line on stderr, nothing on stdout, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder

USAGE = [
    (["rolout"], "Did you mean 'rollout'"),
    (["rollout"], "family"),
    (["rollout", "math_tir"], "--policy gold|noisy|FILE or --model"),
    (["rollout", "math_tir", "--policy", "gold", "--model", "http://x#m"], "either"),
    (["rollout", "maths", "--policy", "gold"], "Did you mean 'math_tir'"),
    (["rollout", "math_tir", "--policy", "god"], "Did you mean 'gold'"),
    (["rollout", "math_tir", "--policy", "nope/x.jsonl"], "nope/x.jsonl"),
    (["rollout", "math_tir", "--policy", "gold", "--sandbox", "dokcer"], "Did you mean 'docker'"),
    (["rollout", "math_tir", "--policy", "gold", "--episodes", "0"], "--episodes"),
    (["rollout", "math_tir", "--policy", "gold", "--episodes", "many"], "--episodes"),
    (["rollout", "math_tir", "--policy", "gold", "--tasks", "gsm8k:/nope.jsonl"], "/nope.jsonl"),
    (["rollout", "math_tir", "--policy", "gold", "--tasks", "gsm8:x"], "Did you mean 'gsm8k'"),
    (["rollout", "math_tir", "--policy", "gold", "--format", "herms"], "Did you mean 'hermes'"),
    (["rollout", "math_tir", "--policy", "gold", "--rewards", "gate"], "Did you mean 'gated'"),
    (["rollout", "math_tir", "--policy", "gold", "--samples", "4"], "--eval"),
    (["rollout", "math_tir", "--policy", "gold", "--temperature", "1"], "--model"),
    (["rollout", "math_tir", "--model", "localhost"], "URL#NAME"),
    (["rollout", "math_tir", "--model", "ftp://h#m"], "http"),
    (
        ["rollout", "math_tir", "--policy", "gold", "--eval", "--samples", "4", "--group", "3"],
        "differ",
    ),
    (["rollout", "math_tir", "--policy", "gold", "--group", "1000000000"], "at most 1000000"),
    (
        ["rollout", "math_tir", "--policy", "gold", "--eval", "--samples", "100000000"],
        "at most 1000000",
    ),
    (["rollout", "math_tir", "--policy", "gold", "--envs", "1000000"], "--envs"),
    (
        ["rollout", "math_tir", "--policy", "nofile.jsonl"],
        "nofile.jsonl: the script does not exist",
    ),
    (["rollout", "math_tir", "--model", "http://[::1#x"], "Invalid IPv6 URL"),
    (["rollout", "math_tir", "--policy", "gold", "--rewards", "[1]"], "not a list"),
    (["rollout", "math_tir", "--policy", "gold", "--rewards", "{"], "no JSON"),
    (["rollout", "math_tir", "--policy", "gold", "--rewards", '{"terms": 3}'], "terms"),
    (["rollout", "math_tir", "--policy", "gold", "--rewards", "nope.json"], "nope.json"),
    (["rollout", "math_tir", "--policy", "gold", "--out", "/etc/passwd"], "is a file"),
    (["build", "pyhton"], "Did you mean 'python'"),
    (["demo", "--sandbox", "lokal"], "Did you mean 'local'"),
    (["doctor", "--rep"], "--rep"),
]


@pytest.mark.parametrize(("words", "hint"), USAGE, ids=lambda value: " ".join(value)[:40])
def test_a_usage_error_is_one_line(toolenvs: Toolenvs, words: list[str], hint: str) -> None:
    """Exit code 2; the line names what is wrong; stdout stays empty."""
    result = toolenvs(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert hint in lines[0]
    assert lines[0].startswith("toolenvs: ")


@pytest.mark.parametrize("words", [["rollout", "maths", "--policy", "gold"], ["rolout"]])
def test_a_process_ends_without_a_traceback(words: list[str]) -> None:
    """The installed program does what the functions promise."""
    ended = subprocess.run(
        [sys.executable, "-m", "toolenvs.cli", *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert ended.stdout == ""


def test_the_traceback_is_there_for_who_asks() -> None:
    """TOOLENVS_TRACEBACK=1 shows where the error came from."""
    ended = subprocess.run(
        [sys.executable, "-m", "toolenvs.cli", "rollout", "maths", "--policy", "gold"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TOOLENVS_TRACEBACK": "1"},
    )
    assert ended.returncode == 2
    assert "Traceback" in ended.stderr


def test_a_failure_of_the_machine_is_exit_code_1(toolenvs: Toolenvs, adder: Adder) -> None:
    """The check could not be made; one line says why."""
    adder.starts = False
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--sandbox", "adder")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == ["toolenvs: nothing answers"]


def test_a_folder_that_cannot_be_written_is_a_usage_error(
    toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """Named, with the system's own word for it."""
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "run"
    result = toolenvs(
        "rollout", "math_tir", "--policy", "gold", "--sandbox", "adder", "--out", str(out)
    )
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "command", [[], ["rollout"], ["demo"], ["list"], ["build"], ["doctor"], ["bench"]]
)
def test_every_command_has_help(toolenvs: Toolenvs, command: list[str]) -> None:
    """--help works everywhere and is exit code 0."""
    result = toolenvs(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
