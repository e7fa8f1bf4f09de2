"""``list``, ``demo``, ``doctor``: what a newcomer sees first."""

from __future__ import annotations

import io
import json

import pytest

from tests.cli.conftest import Toolenvs
from tests.test_rollout import Adder
from toolenvs import formats, sources, tools
from toolenvs import rewards as components
from toolenvs.cli.sandboxes import try_sandbox
from toolenvs.cli.transcript import transcript
from toolenvs.types import Step, Task, Trajectory


def test_list_names_everything(toolenvs: Toolenvs) -> None:
    """Every plugin that can be made by name is listed with a sentence."""
    result = toolenvs("list", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    for kind, registry in (
        ("tools", tools),
        ("formats", formats),
        ("rewards", components),
        ("sources", sources),
    ):
        assert list(found[kind]) == registry.names()
    assert all(sentence for plugins in found.values() for sentence in plugins.values())
    assert not [s for plugins in found.values() for s in plugins.values() if "not usable" in s]
    table = toolenvs("list").stdout
    assert all(name in table for plugins in found.values() for name in plugins)


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
    if not trial.works:
        pytest.skip(f"no local sandbox here: {trial.detail}")
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
