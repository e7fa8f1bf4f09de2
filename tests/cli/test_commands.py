"""``list``, ``demo``, ``doctor``: what a newcomer sees first."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder
from toolenvs import backends, formats, sources, tools
from toolenvs import rewards as components
from toolenvs.cli.demo import command
from toolenvs.cli.sandboxes import choose_sandbox, try_sandbox
from toolenvs.cli.transcript import transcript
from toolenvs.engine import EngineReport
from toolenvs.types import Step, Task, Trajectory


def test_list_names_everything(toolenvs: Toolenvs) -> None:
    """Every plugin that can be made by name is listed with a sentence."""
    result = toolenvs("list", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    for kind, registry in (
        ("formats", formats),
        ("rewards", components),
        ("backends", backends),
        ("sources", sources),
    ):
        assert list(found[kind]) == registry.names()
    assert set(tools.names()) - set(found["tools"]) == {"sql_rows", "sql_after"}  # the referee's
    assert all(sentence for plugins in found.values() for sentence in plugins.values())
    assert not [s for plugins in found.values() for s in plugins.values() if "not usable" in s]
    table = toolenvs("list").stdout
    assert all(name in table for plugins in found.values() for name in plugins)


def test_list_of_one_kind(toolenvs: Toolenvs) -> None:
    """A kind lists its own alone; one that is none is refused with the nearest."""
    assert list(json.loads(toolenvs("list", "formats", "--json").stdout)) == ["formats"]
    wrong = toolenvs("list", "format")
    assert wrong.exit_code == 2
    assert "Did you mean 'formats'?" in wrong.output


def test_demo_ends_with_a_table_over_real_episodes(toolenvs: Toolenvs, adder: Adder) -> None:
    """Sandbox first, then one episode turn by turn, then the table."""
    result = toolenvs("demo", "--sandbox", "adder", "--episodes", "24")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("sandbox: adder")
    for word in ("turn 1: agent", "reward +0", "success", "gold", "noisy", "ms per step"):
        assert word in result.stdout


def test_demo_as_json(toolenvs: Toolenvs, adder: Adder) -> None:
    """One object with a summary of each policy; gold is right everywhere."""
    result = toolenvs("demo", "--sandbox", "adder", "--episodes", "24", "--json")
    found = json.loads(result.stdout)
    assert found["sandbox"] == "adder"
    assert found["policies"]["gold"]["success"] == 1.0
    assert 0.0 < found["policies"]["noisy"]["success"] < 1.0


@pytest.mark.parametrize(("at", "shown"), [(5, ["gold"]), (60, ["gold", "noisy"])])
def test_an_interrupted_demo_stops(
    toolenvs: Toolenvs, adder: Adder, at: int, shown: list[str]
) -> None:
    """In gold nothing else is played; in either the table says that it is a part."""
    adder.interrupt_at = at
    result = toolenvs("demo", "--sandbox", "adder", "--episodes", "48")
    assert result.exit_code == 130
    assert adder.executed == at
    assert result.stderr.splitlines()[-1].startswith(f"toolenvs: interrupted: {shown[-1]} played ")
    table = result.stdout.partition("PARTIAL")[2]
    assert [name for name in ("gold", "noisy") if f" {name} " in table] == shown
    assert "Next:" not in result.stdout
    again = toolenvs("demo", "--sandbox", "adder", "--episodes", "48", "--json")
    assert not json.loads(again.stdout)["interrupted"]


def test_a_demo_that_is_interrupted_before_its_first_episode(
    toolenvs: Toolenvs, adder: Adder
) -> None:
    """There is no table then, and no error either."""
    adder.interrupt_at = 1
    result = toolenvs("demo", "--sandbox", "adder")
    assert result.exit_code == 130
    assert "toolenvs: interrupted: gold played 0 of 48 episodes" in result.stderr
    assert "success" not in result.stdout


@pytest.mark.parametrize("words", [("doctor",), ("bench", "step"), ("demo",), ("replay", "run")])
def test_ctrl_c_is_one_line_and_130_everywhere(
    toolenvs: Toolenvs, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it strikes."""

    def strike(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for place in ("engine.probe", "bench.step.bench_step", "replay.replay_run"):
        monkeypatch.setattr(f"toolenvs.{place}", strike)
    result = toolenvs(*words)
    assert result.exit_code == 130
    assert result.stderr.strip() == "toolenvs: interrupted."


@pytest.mark.parametrize("module", ["toolenvs", "toolenvs.cli"])
def test_the_version_and_the_module(module: str) -> None:
    """``python -m toolenvs --version`` names the release."""
    ended = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == f"toolenvs {version('toolenvs')}"


def test_the_demo_names_a_command_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name where it is found, else the path from here, else the module."""
    program = tmp_path / ".venv" / "bin" / "toolenvs"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command() == ".venv/bin/toolenvs"
    monkeypatch.setattr("sys.argv", ["/x/toolenvs/__main__.py"])
    assert command().endswith(" -m toolenvs")
    monkeypatch.setenv("PATH", str(program.parent))
    assert command() == "toolenvs"


@pytest.mark.parametrize("host", ["", "tcp://127.0.0.1:1"])
def test_without_an_engine_the_choice_says_where_it_was_sought(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether DOCKER_HOST was set is what a person can change."""
    monkeypatch.setattr("toolenvs.engine.probe", lambda **_: EngineReport(found=False))
    monkeypatch.setenv("DOCKER_HOST", host)
    choice = choose_sandbox("auto", say=print)
    assert choice.name == "local"
    assert (f"DOCKER_HOST={host}" if host else "DOCKER_HOST is not set") in choice.why


def test_doctor_tells_what_works(toolenvs: Toolenvs) -> None:
    """The exit code says whether any sandbox works; the object says which."""
    result = toolenvs("doctor", "--json")
    found = json.loads(result.stdout)
    works = found["local"]["works"] or bool(found["docker"] and found["docker"]["works"])
    assert result.exit_code == (0 if works else 1)
    assert {"engine", "image", "leftovers", "reaped"} <= set(found)


def test_a_sandbox_is_tried_by_running_in_it(adder: Adder) -> None:
    """It works when 1+1 is 2 there; what does not start says why, and nothing is raised."""
    assert try_sandbox("adder").works
    assert adder.open == 0
    adder.starts = False
    assert try_sandbox("adder").detail == "nothing answers"
    assert "not the name of a sandbox" in try_sandbox("nothing").detail


@pytest.mark.local
def test_the_local_sandbox_is_tried() -> None:
    """Where namespaces are allowed it computes 1+1."""
    trial = try_sandbox("local")
    assert trial.works, trial.detail
    assert trial.call_ms > 0


def test_a_transcript_reads_nothing_as_markup() -> None:
    """A hostile task or message is shown as it is, however it looks."""
    from rich.console import Console

    hostile = "[bold red]x[/bold red] [/nope] :smile:"
    step = Step(action=hostile, observation=hostile, end_reason="max_turns")
    trajectory = Trajectory(task=Task(id="t", prompt=hostile, answer="1"), steps=(step,))
    screen = Console(width=100, file=io.StringIO())
    with screen.capture() as shown:
        for part in transcript(trajectory):
            screen.print(part)
    assert shown.get().count(hostile) == 3


def test_golds_are_checked(toolenvs: Toolenvs, tmp_path: Path) -> None:
    """Each that cannot be graded is listed with its place and reason; then the exit code is 1."""
    golds = ["SELECT count(*) FROM book", "SELECT nope FROM book"]
    rows = [{"prompt": "?", "answer": gold, "database": {"generated": "library"}} for gold in golds]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("check", "golds", "sql", "--tasks", f"jsonl:{tmp_path / 't.jsonl'}")
    shown = toolenvs(*words)
    assert shown.exit_code == 1
    assert f"{tmp_path / 't.jsonl'}:2: the gold does not run: no such column: nope" in shown.stdout
    assert "1 of 2 golds can be graded" in shown.stdout
    found = json.loads(toolenvs(*words, "--json").stdout)
    assert (found["examined"], len(found["unusable"]), found["notes"]) == (2, 1, [])
    assert toolenvs("check", "golds", "math_tir").exit_code == 2
    assert toolenvs("check", "golds", "sql", "--tasks", "sql_generated:n=2").exit_code == 0
