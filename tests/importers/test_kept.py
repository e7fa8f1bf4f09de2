"""Whatever a record holds: it is mapped, or kept and told, or the row is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.layouts import (
    CHAT,
    SAMPLES,
    imported,
    read_bytes,
)
from toolenvs.errors import DataError
from toolenvs.importers import Problem, chat_messages, read_foreign, summed
from toolenvs.records import encode_trajectory


def places(data: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to everything in JSON data."""
    pairs: Iterable[tuple[str | int, Any]] = ()
    if isinstance(data, dict):
        pairs = data.items()
    elif isinstance(data, list):
        pairs = enumerate(data)
    for key, value in pairs:
        yield (*at, key)
        yield from places(value, (*at, key))


def at_place(data: Any, place: tuple[str | int, ...]) -> Any:
    """What stands there."""
    for key in place:
        data = data[key]
    return data


def changed(data: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """The data with another value there."""
    made = copy.deepcopy(data)
    at_place(made, place[:-1])[place[-1]] = value
    return made


KEPT_WHOLE = {"arguments", "info", "scores", "eval", "responses_create_params", "response"}
"""Where any key may stand: what belongs to the environment, the request or a call's tool."""

JSON_LAYOUTS = sorted(set(SAMPLES) - {"react"})


@pytest.mark.parametrize("layout", JSON_LAYOUTS)
def test_an_unknown_key_anywhere_is_kept_and_told(tmp_path: Path, layout: str) -> None:
    """Of a row, a message, a part, a call, a result or a step."""
    sample = SAMPLES[layout]
    objects = [place for place in places(sample) if isinstance(at_place(sample, place), dict)]
    for place in [(), *objects]:
        (found,) = imported(tmp_path, changed(sample, (*place, "odd"), "v91"), layout=layout)
        assert b'"v91"' in encode_trajectory(found.trajectory)
        told = [problem for problem in found.problems if "'odd'" in problem]
        whole = "tools" in place or not KEPT_WHOLE.isdisjoint(place[-2:])
        assert len(told) == (0 if whole else 1), place


@pytest.mark.parametrize("layout", JSON_LAYOUTS)
@pytest.mark.parametrize("value", [{"v": 9137}, [9137], 9137, "9137", [[9137]], None, True, {}])
def test_a_value_of_any_kind_anywhere_is_kept_or_the_row_refused(
    tmp_path: Path, layout: str, value: Any
) -> None:
    """And a key that is missing is no end either."""
    for place in places(SAMPLES[layout]):
        refused: list[Problem] = []
        record = changed(SAMPLES[layout], place, value)
        try:
            found = imported(tmp_path, record, layout=layout, refused=refused.append)
        except DataError:
            continue
        lines = b"".join(encode_trajectory(one.trajectory) for one in found)
        assert b"9137" in lines or "9137" not in json.dumps(value) or refused, place


@pytest.mark.parametrize("layout", JSON_LAYOUTS)
def test_a_field_that_is_missing_is_no_fault_of_the_others(tmp_path: Path, layout: str) -> None:
    """The row is read without it, or refused."""
    for place in places(SAMPLES[layout]):
        record = copy.deepcopy(SAMPLES[layout])
        del at_place(record, place[:-1])[place[-1]]
        try:
            found = imported(tmp_path, record, layout=layout)
        except DataError as error:
            assert str(error).startswith(str(tmp_path))  # noqa: PT017 - either way is right
        else:
            assert all(encode_trajectory(one.trajectory) for one in found)


def test_a_kind_of_problem_is_told_once(tmp_path: Path) -> None:
    """With its first place and the number of times."""
    rows = [{**CHAT, "messages": [{**m, "weight": 1} for m in CHAT["messages"]]}] * 2
    found, _ = read_bytes(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    (line,) = summed(problem for one in found for problem in one.problems)
    assert ":1: messages[0]: the key 'weight' of a message" in line
    assert line.endswith("(10 times)")


def test_a_rows_own_layout_key_is_set_aside(tmp_path: Path) -> None:
    """The importer's words are its own."""
    (found,) = imported(tmp_path, {**CHAT, "layout": 7, "heard": 8, "unmapped": 9})
    assert found.trajectory.task.data["layout"] == "openai_chat"
    kept = found.trajectory.task.data["unmapped"]["row"]
    assert kept == {"layout": 7, "heard": 8, "unmapped": 9}


def test_content_of_any_kind_is_read_or_told(tmp_path: Path) -> None:
    """What is no text of a message is a problem of its episode."""
    messages = [{"role": "assistant", "content": [1, None, "x"], "tool_calls": 7}]
    (found,) = imported(tmp_path, {"messages": messages}, layout="openai_chat")
    assert found.trajectory.steps[0].action == "x"
    assert len(found.problems) == 3


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
            chat_messages(found.trajectory)
    except DataError as error:
        told = str(error)
    else:
        told = str(path)
    assert told.startswith(str(path))
