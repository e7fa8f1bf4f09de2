"""``toolenvs replay``, ``rescore`` and ``cache`` from the words to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder
from toolenvs import runtimes


@pytest.fixture
def run(toolenvs: Toolenvs, adder: Adder, tmp_path: Path) -> Path:
    """A recorded run."""
    words = ("--policy", "noisy", "--sandbox", "adder", "--episodes", "12")
    place = ("--replay", "auto", "--cache", f"sqlite:///{tmp_path / 'cache.db'}")
    out = tmp_path / "run"
    result = toolenvs("rollout", "math_tir", *words, *place, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["replay"] == "auto"
    return out


def test_a_run_replays_without_its_sandbox(run: Path, toolenvs: Toolenvs) -> None:
    """Every step is identical, and the sandbox that it was recorded in is not even known."""
    del runtimes.registry._registered["adder"]
    result = toolenvs("replay", str(run), "--json")
    runtimes.register("adder", Adder)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["episodes"], report["identical"], report["identical_share"]) == (12, 12, 1.0)
    assert report["differences"] == []
    assert "12 of 12 episodes identical" in toolenvs("replay", str(run)).stdout


def test_a_difference_is_shown_and_fails(run: Path, toolenvs: Toolenvs) -> None:
    """The first one as a diff that a person can read; exit code 1."""
    file = run / "trajectories.jsonl"
    lines = file.read_text().split("\n")
    lines[3] = lines[3].replace('"terminated":true', '"terminated":false')
    file.write_text("\n".join(lines))
    result = toolenvs("replay", str(run))
    assert result.exit_code == 1
    assert "first difference: episode 3 " in result.stdout
    assert "-false\n+true" in result.stdout
    assert "11 of 12 episodes identical" in result.stdout
    assert toolenvs("replay", str(run / "nothing")).exit_code == 2


def test_live_runs_again(run: Path, toolenvs: Toolenvs, adder: Adder) -> None:
    """The tools run again, in the sandbox that is named."""
    before = adder.executed
    result = toolenvs("replay", str(run), "--live", "--sandbox", "adder", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["live"]
    assert report["identical_steps"] == report["steps"] > 12
    assert adder.executed > before


def test_a_rollout_is_served_from_the_cache(
    run: Path, toolenvs: Toolenvs, adder: Adder, tmp_path: Path
) -> None:
    """The same episodes again start nothing and write the same bytes; others are a clear miss."""
    before = adder.executed
    words = ["rollout", "math_tir", "--policy", "noisy", "--sandbox", "adder", "--episodes", "12"]
    words += ["--cache", f"sqlite:///{tmp_path / 'cache.db'}", "--replay", "replay"]
    result = toolenvs(*words, "--out", str(tmp_path / "again"), "--json")
    assert result.exit_code == 0, result.output
    assert adder.executed == before
    one, two = (
        (folder / "trajectories.jsonl").read_bytes() for folder in (run, tmp_path / "again")
    )
    assert one == two
    result = toolenvs(*words, "--seed", "4")
    assert result.exit_code == 1
    assert "nearest recording: python" in result.stderr
    result = toolenvs("rollout", "math_tir", "--policy", "gold", "--replay", "auto")
    assert result.exit_code == 2
    assert "cache='sqlite" in result.stderr


def test_a_run_is_scored_again(run: Path, toolenvs: Toolenvs) -> None:
    """By its own rubric equal to the byte, by another side by side."""
    report = json.loads(toolenvs("rescore", str(run), "--json").stdout)
    assert (report["episodes"], report["equal"]) == (12, 12)
    result = toolenvs("rescore", str(run), "--rewards", "outcome")
    assert result.exit_code == 0
    assert "answer" in result.stdout
    assert toolenvs("rescore", str(run), "--rewards", "outcom").exit_code == 2


def test_a_cache_is_looked_after(run: Path, toolenvs: Toolenvs, tmp_path: Path) -> None:
    """stats, export, import and prune, each as one JSON object."""
    url, two = (f"sqlite:///{tmp_path / name}" for name in ("cache.db", "two.db"))
    stats = json.loads(toolenvs("cache", "stats", url, "--json").stdout)
    entries = stats["entries"]
    assert stats["tools"] == {"python": entries}
    file = str(tmp_path / "out.jsonl")
    assert json.loads(toolenvs("cache", "export", url, file, "--json").stdout)["entries"] == entries
    found = json.loads(toolenvs("cache", "import", two, file, "--json").stdout)
    assert found == {"read": entries, "entries": entries}
    pruned = toolenvs("cache", "prune", two, "--max-age", "30d", "--max-size", "1K", "--json")
    left = json.loads(pruned.stdout)
    assert left["deleted"] + left["entries"] == entries
    assert left["deleted"] > 0
    assert "entries" in toolenvs("cache", "stats", url).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "sqlite:///nowhere.db"),
        ("stats", "nowhere.db"),
        ("prune", "sqlite:///nowhere.db", "--max-age", "1d"),
        ("import", "sqlite:///nowhere.db", "nowhere.jsonl"),
    ],
)
def test_a_cache_that_is_not_there_is_a_usage_error(
    words: tuple[str, ...], toolenvs: Toolenvs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2, and no file is made."""
    monkeypatch.chdir(tmp_path)
    result = toolenvs("cache", *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    if words[0] != "import":
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("bound", "told"), [("--max-age=x", "'x' is no amount"), ("", "say what")])
def test_pruning_says_what_an_amount_is(
    bound: str, told: str, run: Path, toolenvs: Toolenvs, tmp_path: Path
) -> None:
    """A bound without a meaning deletes nothing."""
    words = ["cache", "prune", f"sqlite:///{tmp_path / 'cache.db'}"]
    result = toolenvs(*words, *([bound] if bound else []))
    assert result.exit_code == 2
    assert told in result.stderr
