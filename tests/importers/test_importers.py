"""Trajectories of other programs: everything is mapped, kept beside, or named as a problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.importers.layouts import (
    CALL,
    CHAT,
    INSPECT,
    REACT,
    RESPONSES,
    SAMPLES,
    imported,
)
from toolenvs import importers
from toolenvs.cli import app
from toolenvs.errors import UsageError
from toolenvs.importers import chat_messages, read_foreign
from toolenvs.records import decode_trajectory, encode_trajectory, read_trajectories
from toolenvs.rescoring import rescore_run
from toolenvs.rubric import Rubric, make_rubric, rescore


def test_every_layout_has_a_sample_here() -> None:
    """A new layout needs a sample."""
    assert set(SAMPLES) == set(importers.names())


@pytest.mark.parametrize("layout", sorted(SAMPLES))
def test_a_layout_is_known_by_its_content_and_read_whole(tmp_path: Path, layout: str) -> None:
    """The call, its result and the last words come out, whoever wrote them; nothing is missed."""
    found = imported(tmp_path, SAMPLES[layout])
    assert found == imported(tmp_path, SAMPLES[layout], layout=layout)
    assert [problem for one in found for problem in one.problems] == []
    trajectory = found[0].trajectory
    assert trajectory.task.data["layout"] == layout
    assert "Add one." in trajectory.task.prompt
    first, last = trajectory.steps[0], trajectory.steps[-1]
    assert first.calls[0].name == "add"
    assert str(first.calls[0].arguments.get("a", first.calls[0].arguments.get("input"))) == "1"
    assert first.results[0].text.startswith("2")
    assert "2" in last.action
    assert (last.terminated, last.end_reason) == (True, "imported")
    assert decode_trajectory(encode_trajectory(trajectory)) == trajectory


def test_reward_gold_and_other_fields_are_kept(tmp_path: Path) -> None:
    """The reward is the last step's; what is not a message stays in the task's data."""
    (chat,) = imported(tmp_path, CHAT)
    assert (chat.trajectory.task.id, chat.trajectory.score) == ("row-7", 0.5)
    assert chat.trajectory.task.data["tools"] == CHAT["tools"]
    assert [message.action for message in chat.trajectory.steps][1] == "It is 2."
    (rollout,) = imported(tmp_path, RESPONSES)
    assert (rollout.trajectory.task.answer, rollout.trajectory.score) == ("2", 0.5)
    assert rollout.trajectory.steps[0].parsed is not None
    assert rollout.trajectory.steps[0].parsed.thought == "I must add."
    first, second = imported(tmp_path, REACT)
    assert (first.trajectory.score, len(second.trajectory.steps)) == (1.0, 1)
    assert first.trajectory.steps[0].observation == "2\nover two lines"
    (sample,) = imported(tmp_path, INSPECT)
    assert (sample.trajectory.task.id, sample.trajectory.score) == ("s1-epoch-2", 1.0)


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "user", "content": "x"}], "says nothing"),
        ([{"role": "assistant", "content": "", "tool_calls": [CALL]}], "no result of 'add'"),
        (
            [{"role": "assistant", "content": "x"}, {"role": "tool", "content": "2"}],
            "answers no call",
        ),
        (
            [{"role": "critic", "content": "x"}, {"role": "assistant", "content": "y"}],
            "'critic' is not known",
        ),
        (
            [
                {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
                {"role": "assistant", "content": "y"},
            ],
            "'image_url' is no text",
        ),
        (
            [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{oh"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": ""},
            ],
            "no JSON",
        ),
    ],
)
def test_what_cannot_be_mapped_is_named(tmp_path: Path, messages: Any, told: str) -> None:
    """Never dropped in silence, and never an end of the import."""
    (one,) = imported(tmp_path, {"messages": messages})
    assert any(told in problem for problem in one.problems)
    assert all(problem.startswith(one.place) for problem in one.problems)


def test_the_command_writes_a_run(tmp_path: Path) -> None:
    """The run reads like any other, and a second import does not touch it."""
    file, out = tmp_path / "chat.jsonl", tmp_path / "run"
    file.write_text(json.dumps(CHAT) + "\n" + json.dumps({**CHAT, "id": "row-8"}) + "\n")
    asked = ["import", str(file), "--out", str(out), "--json"]
    printed = CliRunner().invoke(app, asked)
    assert printed.exit_code == 0
    assert json.loads(printed.stdout)["episodes"] == 2
    assert [one.task.id for one in read_trajectories(out)] == ["row-7", "row-8"]
    assert CliRunner().invoke(app, asked).exit_code != 0


def test_an_imported_episode_can_be_scored(tmp_path: Path) -> None:
    """By a rubric that reads only calls and results."""
    (one,) = imported(tmp_path, CHAT)
    terms = [{"reward": "tool_success"}]
    rubric = make_rubric({"terms": terms, "known_hacks": ["idle calls"]})
    settled = rescore(one.trajectory, rubric)
    assert [step.masked["tool_success"] for step in settled] == [False, False]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "episodes", "steps"),
    [
        ("llamafactory_reason_tool_use.jsonl", 50, 112),
        ("nemo_gym/example_multi_step_example_rollouts.jsonl", 5, 21),
        ("nemo_gym/math_with_code_example.jsonl", 5, 0),
        ("nemo_gym/math_with_code_example_rollouts.jsonl", 5, 36),
        ("nemo_gym/text_to_sql_example_rollouts.jsonl", 5, 5),
        ("nemo_gym/workplace_assistant_example_rollouts.jsonl", 5, 13),
        ("nemo_gym/xlam_fc_example_rollouts.jsonl", 5, 10),
        ("react/hotpot_base_react_thought_log.txt", 67, 236),
        ("sharegpt_glaive_toolcall.json", 300, 957),
        ("swe_agent/function_calling_simple.traj", 1, 5),
        ("swe_agent/swe-agent__test-repo-i1.traj", 1, 5),
        ("tau/airline_few_shot.jsonl", 19, 222),
        ("tau/gpt-4o-airline_first10.json", 10, 141),
    ],
)
def test_real_files_are_read_whole(shared: Path, name: str, episodes: int, steps: int) -> None:
    """Every episode, every message of the agent."""
    found = list(read_foreign(shared / "data" / "traj" / name))
    assert len(found) == episodes
    assert sum(len(one.trajectory.steps) for one in found) == steps
    assert len({one.trajectory.task.id for one in found}) == episodes
    assert not any("<think>" in step.action for one in found for step in one.trajectory.steps)
    assert all(chat_messages(one.trajectory) for one in found)


def test_nothing_is_made_up(tmp_path: Path) -> None:
    """A call without a name or arguments has none; content that is data is no Python text."""
    call = {"id": "c", "function": {}}
    (found,) = imported(tmp_path, {"messages": [{"role": "assistant", "tool_calls": [call]}]})
    (made,) = found.trajectory.steps[0].calls
    assert (made.name, made.arguments) == ("", {})
    parts = [{"type": "text", "text": "Look."}]
    history = [{"role": "user", "content": parts}, {"role": "assistant", "content": "ls"}]
    steps = [{"response": "ls", "action": "ls", "observation": parts}]
    (found,) = imported(tmp_path, {"history": history, "trajectory": steps})
    assert found.trajectory.prompt == "Look."
    assert found.trajectory.steps[0].results[0].text == "Look."


def test_every_message_of_swe_agent_is_a_step_once(tmp_path: Path) -> None:
    """Whichever account tells more is read, the other kept; a demonstration is the prompt's."""
    said = {"role": "assistant", "content": "I list.", "action": "ls", "thought": "I list."}
    history = [
        {"role": "assistant", "content": "as an example", "is_demo": True},
        *(said, {"role": "user", "content": "a b"}, said),
    ]
    (found,) = imported(tmp_path, {"history": history, "trajectory": [{"response": "only one"}]})
    assert [step.action for step in found.trajectory.steps] == ["I list.", "I list."]
    assert found.trajectory.steps[0].results[0].text == "a b"
    assert found.trajectory.prompt == "as an example"
    assert found.trajectory.task.data["trajectory"] == [{"response": "only one"}]
    assert any("'trajectory' tells the same again" in problem for problem in found.problems)


def test_sampled_tokens_are_the_steps(tmp_path: Path) -> None:
    """Where ids and log-probabilities come together; a response ends behind them."""
    sampled = {"generation_token_ids": [5, 6], "generation_log_probs": [-0.5, -1]}
    call = {"type": "function_call", "name": "add", "arguments": "{}", "call_id": "c"}
    record = {
        "responses_create_params": {"input": "Add one."},
        "response": {"output": [{**call, **sampled}, call]},
    }
    (found,) = imported(tmp_path, record)
    first, second = found.trajectory.steps
    assert (first.token_ids, first.logprobs, second.token_ids) == ((5, 6), (-0.5, -1.0), ())
    metrics = {"completion_token_ids": [5], "logprobs": [-0.5]}
    steps = [{"source": "agent", "message": "x", "metrics": metrics}]
    (found,) = imported(tmp_path, {"schema_version": "ATIF-v1.4", "steps": steps})
    assert (found.trajectory.steps[0].token_ids, found.problems) == ((5,), ())


def test_the_command_tells_rows_without_an_episode(tmp_path: Path) -> None:
    """Exit code 1, the others written; 0 with problems alone; 2 and no run without an episode."""
    path, out = tmp_path / "rows.jsonl", tmp_path / "run"
    path.write_text(json.dumps({**CHAT, "odd": 1}) + '\n{"mess\n')
    printed = CliRunner().invoke(app, ["import", str(path), "--out", str(out), "--json"])
    told = json.loads(printed.stdout)
    assert (printed.exit_code, told["episodes"]) == (1, 1)
    assert [f"{path}:2: this is no JSON" in row for row in told["refused"]] == [True]
    assert [one.task.id for one in read_trajectories(out)] == ["row-7"]
    path.write_text(json.dumps({**CHAT, "odd": 1}))
    printed = CliRunner().invoke(app, ["import", str(path), "--out", str(tmp_path / "other")])
    assert (printed.exit_code, "the key 'odd'" in printed.output) == (0, True)


def test_an_imported_run_is_rescored_by_a_rubric_that_is_named(tmp_path: Path) -> None:
    """It holds none of its own, and its layout tells no gold answer."""
    path, out = tmp_path / "chat.json", tmp_path / "run"
    path.write_text(json.dumps(CHAT))
    assert CliRunner().invoke(app, ["import", str(path), "--out", str(out)]).exit_code == 0
    rubric = Rubric.from_dict({"terms": [{"reward": "length"}], "known_hacks": ["say little"]})
    assert rescore_run(out, rewards=rubric).episodes == 1
    with pytest.raises(UsageError, match="no gold answer"):
        rescore_run(out, rewards="outcome")
    with pytest.raises(UsageError, match="name one"):
        rescore_run(out)


def test_a_file_without_an_episode_writes_no_run(tmp_path: Path) -> None:
    """The command fails."""
    path, out = tmp_path / "none.json", tmp_path / "out"
    path.write_text("[]")
    printed = CliRunner().invoke(app, ["import", str(path), "--out", str(out)])
    assert printed.exit_code != 0
    assert "there is no episode in it" in printed.output
    assert not out.exists()
