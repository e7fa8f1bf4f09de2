"""Trajectories of other programs: everything is mapped, kept beside, or named as a problem."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from toolenvs import importers
from toolenvs.cli import app
from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.importers import Imported, read_foreign
from toolenvs.records import decode_trajectory, encode_trajectory, read_trajectories
from toolenvs.rubric import make_rubric, rescore

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CHAT = {
    "id": "row-7",
    "reward": 0.5,
    "source": "somewhere",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add one."},
        {"role": "assistant", "content": "I add.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 2."}]},
    ],
}
RESPONSES = {
    "responses_create_params": {"input": [{"role": "user", "content": "Add one."}], "tools": []},
    "response": {
        "output": [
            {"type": "reasoning", "summary": [{"text": "I must add."}]},
            {"type": "function_call", "name": "add", "arguments": '{"a": 1}', "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
            {"type": "message", "role": "assistant", "content": [{"text": "It is 2."}]},
        ]
    },
    "reward": 0.5,
    "expected_answer": "2",
}
SHAREGPT = {
    "tools": "[]",
    "conversations": [
        {"from": "human", "value": "Add one."},
        {"from": "function_call", "value": '{"name": "add", "arguments": {"a": 1}}'},
        {"from": "observation", "value": "2"},
        {"from": "gpt", "value": "It is 2."},
    ],
}
TAU = {"task_id": 3, "reward": 0.5, "info": {}, "trial": 1, "traj": CHAT["messages"]}
SWE = {"history": CHAT["messages"], "info": {"exit_status": "submitted"}}
INSPECT = {
    "eval": {"task": "adding"},
    "samples": [
        {
            "id": "s1",
            "epoch": 2,
            "target": "2",
            "messages": CHAT["messages"],
            "scores": {"match": {"value": "C"}},
        }
    ],
}
ATIF = {
    "schema_version": "ATIF-v1.4",
    "session_id": "a1",
    "steps": [
        {"step_id": 1, "source": "user", "message": "Add one."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I add.",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "add", "arguments": {"a": 1}},
            ],
            "observation": {"results": [{"source_call_id": "c1", "content": "2"}]},
        },
        {"step_id": 3, "source": "agent", "message": "It is 2."},
    ],
}
REACT = """\
Question: Add one.
Thought 1: I must add.
Action 1: Add[1]
Observation 1: 2
over two lines
Thought 2: Done.
Action 2: Finish[2]
Observation 2: Answer is CORRECT

Question: Another.
Thought 1: No idea.
"""
SAMPLES: dict[str, Any] = {
    "openai_chat": CHAT,
    "nemo_gym": RESPONSES,
    "sharegpt": SHAREGPT,
    "tau_bench": TAU,
    "swe_agent": SWE,
    "inspect_log": INSPECT,
    "atif": ATIF,
    "react": REACT,
}


def imported(tmp_path: Path, record: Any, **options: Any) -> list[Imported]:
    """Write a record to a file and read it."""
    file = tmp_path / "some.file"
    file.write_text(record if isinstance(record, str) else json.dumps(record))
    return list(read_foreign(file, **options))


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
    assert chat.trajectory.task.data["source"] == "somewhere"
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


def test_a_file_in_no_layout_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Unknown content, a broken line, an empty file, an unknown layout."""
    with pytest.raises(UsageError, match="no layout"):
        imported(tmp_path, {"rows": []})
    with pytest.raises(DataError, match=":2: this is no JSON"):
        imported(tmp_path, '{"messages": []}\n{"mess\n')
    with pytest.raises(DataError, match="empty"):
        imported(tmp_path, " \n")
    with pytest.raises(UnknownNameError, match="sharegpt"):
        imported(tmp_path, CHAT, layout="sharegtp")
    with pytest.raises(DataError, match="conversations"):
        imported(tmp_path, CHAT, layout="sharegpt")


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


def test_content_of_any_kind_is_read_or_told(tmp_path: Path) -> None:
    """What is no text of a message is a problem of its episode."""
    messages = [{"role": "assistant", "content": [1, None, "x"], "tool_calls": 7}]
    (found,) = imported(tmp_path, {"messages": messages}, layout="openai_chat")
    assert found.trajectory.steps[0].action == "x"
    assert len(found.problems) == 3


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 300 + "]" * 300],
    ids=["lists", "objects", "closed"],
)
def test_json_without_a_bottom_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    """As a record, behind a good one, and within a call, where it is kept as a text."""
    path = tmp_path / "deep.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"deep\.jsonl"):
        list(read_foreign(path))
    path.write_text(json.dumps(CHAT) + "\n" + text)
    with pytest.raises(DataError, match=r"deep\.jsonl:2"):
        list(read_foreign(path))
    call = {"function": {"name": "add", "arguments": text}}
    chat = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    (found,) = imported(tmp_path, chat, layout="openai_chat")
    assert found.trajectory.steps[0].calls[0].arguments == {"arguments": text}


def test_a_file_without_an_episode_is_an_error(tmp_path: Path) -> None:
    """And no run is written."""
    path, out = tmp_path / "none.json", tmp_path / "out"
    path.write_text("[]")
    printed = CliRunner().invoke(app, ["import", str(path), "--out", str(out)])
    assert printed.exit_code != 0
    assert "there is no episode in it" in printed.output
    assert not out.exists()


FIELDS = (
    *("messages", "role", "content", "tool_calls", "function", "name", "arguments", "id", "info"),
    *("tool_call_id", "function_call", "type", "text", "value", "reasoning_content", "reward"),
    *("score", "responses_create_params", "input", "instructions", "response", "output", "target"),
    *("call_id", "summary", "conversations", "from", "tools", "system", "traj", "task_id", "trial"),
    *("messages_display", "history", "trajectory", "action", "thought", "observation", "results"),
    *("message_type", "is_demo", "scores", "epoch", "source", "message", "source_call_id"),
)
WORDS = (
    *("assistant", "user", "tool", "system", "function_call", "function_call_output", "reasoning"),
    *("message", "tool_use", "tool_call", "gpt", "human", "observation", "agent", "[1]", "{"),
    *('{"a": 1}', "[" * 300, "assistant: None\ntool: x", "\ud800"),
)
any_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.just(10**400)
    | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=25,
)
any_record = st.dictionaries(st.sampled_from(FIELDS), any_value, max_size=6)
HEADS: dict[str, Any] = {
    "openai_chat": {"messages": []},
    "nemo_gym": {"responses_create_params": {}},
    "sharegpt": {"conversations": []},
    "tau_bench": {"traj": []},
    "swe_agent": {"history": []},
    "atif": {"steps": [], "schema_version": "ATIF-v1"},
    "inspect_log": {"samples": [], "eval": {}},
}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layout=st.sampled_from(sorted(HEADS)),
    record=any_record,
    items=st.lists(any_record | any_value, max_size=4),
)
def test_whatever_a_record_holds_it_is_read_or_told(
    tmp_path: Path, layout: str, record: Any, items: Any
) -> None:
    """An episode that a run can hold, or an error with its place."""
    filled = {key: items if kind == [] else kind for key, kind in HEADS[layout].items()}
    if layout == "nemo_gym":
        filled = {"responses_create_params": record}
    path = tmp_path / "any.json"
    path.write_text(json.dumps({**record, **filled}))
    try:
        for found in read_foreign(path, layout=layout):
            encode_trajectory(found.trajectory)
    except DataError as error:
        told = str(error)
    else:
        told = str(path)
    assert told.startswith(str(path))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text() | st.sampled_from(WORDS) | any_value.map(json.dumps))
def test_whatever_a_file_holds_it_is_read_or_told(tmp_path: Path, text: str) -> None:
    """Whichever layout it looks like."""
    path = tmp_path / "any.txt"
    path.write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(UsageError):  # DataError is one
        list(read_foreign(path))
