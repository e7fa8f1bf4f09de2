"""A small record of each layout, and how tests read one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolenvs.importers import Imported, Problem, read_foreign

CALL: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1}'},
}


CHAT: dict[str, Any] = {
    "id": "row-7",
    "reward": 0.5,
    "tools": [{"type": "function", "function": {"name": "add"}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add one."},
        {"role": "assistant", "content": "I add.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 2."}]},
    ],
}


RESPONSES: dict[str, Any] = {
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


SHAREGPT: dict[str, Any] = {
    "tools": "[]",
    "conversations": [
        {"from": "human", "value": "Add one."},
        {"from": "function_call", "value": '{"name": "add", "arguments": {"a": 1}}'},
        {"from": "observation", "value": "2"},
        {"from": "gpt", "value": "It is 2."},
    ],
}


TAU: dict[str, Any] = {
    "task_id": 3,
    "reward": 0.5,
    "info": {},
    "trial": 1,
    "traj": CHAT["messages"],
}


SWE: dict[str, Any] = {"history": CHAT["messages"], "info": {"exit_status": "submitted"}}


INSPECT: dict[str, Any] = {
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


ATIF: dict[str, Any] = {
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


def read_bytes(tmp_path: Path, content: bytes) -> tuple[list[Imported], list[Problem]]:
    """The episodes of a file and the rows that are none."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    refused: list[Problem] = []
    return list(read_foreign(path, refused=refused.append)), refused
