"""Files of any kind: a bad row never costs the others, and is told with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.layouts import (
    CHAT,
    RESPONSES,
    SHAREGPT,
    TAU,
    imported,
    read_bytes,
)
from tests.importers.test_kept import WORDS, any_value
from toolenvs.errors import DataError, UnknownNameError
from toolenvs.importers import Problem, read_foreign
from toolenvs.records import encode_trajectory


def test_a_file_without_an_episode_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Unknown content, nothing but broken lines, an empty file, no text, an unknown layout."""
    with pytest.raises(DataError, match="no layout"):
        imported(tmp_path, {"rows": []})
    with pytest.raises(DataError, match=r"some\.file:1: this is no JSON"):
        imported(tmp_path, '{"mess')
    with pytest.raises(DataError, match="there is no episode in it"):
        imported(tmp_path, "[]")
    with pytest.raises(DataError, match="empty"):
        imported(tmp_path, " \n")
    (tmp_path / "binary").write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(DataError, match=r"binary: this is no UTF-8 text: byte 4 is zero"):
        list(read_foreign(tmp_path / "binary"))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_foreign(tmp_path / "absent"))
    with pytest.raises(UnknownNameError, match="sharegpt"):
        imported(tmp_path, CHAT, layout="sharegtp")
    with pytest.raises(DataError, match="conversations"):
        imported(tmp_path, CHAT, layout="sharegpt")


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
    path.write_text(json.dumps(CHAT) + "\n" + text + "\n" + json.dumps(CHAT))
    refused: list[Problem] = []
    assert len(list(read_foreign(path, refused=refused.append))) == 2
    assert [problem.place for problem in refused] == [f"{path}:2"]
    call = {"function": {"name": "add", "arguments": text}}
    chat = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    (found,) = imported(tmp_path, chat, layout="openai_chat")
    assert found.trajectory.steps[0].calls[0].arguments == {"arguments": text}


def test_a_bad_row_never_costs_the_others(tmp_path: Path) -> None:
    """Lines of JSON Lines and items of a list; told with place, value and reason."""
    good = json.dumps(CHAT)
    bad = ['{"messages": [', "7", '{"rows": 1}', '{"messages": "x"}', "nonsense"]
    found, refused = read_bytes(tmp_path, "\n".join([good, *bad, good]).encode())
    assert len(found) == 2
    assert [problem.place.rpartition(":")[2] for problem in refused] == ["2", "3", "4", "5", "6"]
    assert all(reason in str(refused[4]) for reason in ("no JSON", "'nonsense'"))
    assert "{'rows': 1}" in refused[2]
    found, refused = read_bytes(tmp_path, f"[{good},\n{{oh}}, {good}, 7]".encode())
    assert len(found) == 2
    assert [problem.place.rpartition("[")[2] for problem in refused] == ["1]", "3]"]
    found, refused = read_bytes(tmp_path, f"[{good}, {good}, {good[:90]}".encode())
    assert (len(found), len(refused)) == (2, 1)


def test_a_file_may_mix_layouts(tmp_path: Path) -> None:
    """Each row is read in its own; a layout that was named is that of every row."""
    rows = [CHAT, SHAREGPT, TAU, CHAT, RESPONSES]
    found, refused = read_bytes(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert not refused
    assert [one.layout for one in found] == [
        *("openai_chat", "sharegpt", "tau_bench", "openai_chat", "nemo_gym")
    ]
    path = tmp_path / "rows.jsonl"
    named = list(read_foreign(path, layout="openai_chat", refused=refused.append))
    assert (len(named), len(refused)) == (2, 3)


def test_bytes_that_are_odd_are_kept_and_told(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, keys that stand twice, a byte order mark, CRLF."""
    chat = b'{"messages": [{"role": "assistant", "content": "caf\xe9"}]}'
    twice = b'{"messages": [], "messages": [{"role": "assistant", "content": "x"}]}'
    (first, second), _ = read_bytes(tmp_path, b"\xef\xbb\xbf" + chat + b"\r\n" + twice)
    assert first.trajectory.steps[0].action == "caf\udce9"
    assert "byte 0xe9 is no UTF-8" in first.problems[0]
    assert "'messages' stands twice" in second.problems[0]
    (first, second), _ = read_bytes(tmp_path, b"[" + chat + b"," + twice + b"]")
    assert "byte 0xe9" in first.problems[0]
    assert "stands twice" in second.problems[0]


def test_a_huge_line_is_read(tmp_path: Path) -> None:
    """Whatever its length."""
    chat = {"messages": [{"role": "assistant", "content": "x" * 5_000_000}]}
    (found,), _ = read_bytes(tmp_path, json.dumps(chat).encode())
    assert len(found.trajectory.steps[0].action) == 5_000_000


def test_a_bad_message_never_costs_the_others(tmp_path: Path) -> None:
    """It is kept by its place and told with its value."""
    messages = [{"role": "assistant", "content": "a"}, 7, {"content": "b"}, {"role": ["x"]}]
    messages.append({"role": "assistant", "content": "c"})
    (found,) = imported(tmp_path, {"messages": messages})
    assert [step.action for step in found.trajectory.steps] == ["a", "c"]
    assert found.trajectory.task.data["unmapped"] == {
        "messages[1]": 7,
        "messages[2]": {"content": "b"},
        "messages[3]": {"role": ["x"]},
    }
    assert ["7" in found.problems[0], "'b'" in found.problems[1]] == [True, True]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text() | st.sampled_from(WORDS) | any_value.map(json.dumps))
def test_whatever_a_file_holds_it_is_read_or_told(tmp_path: Path, text: str) -> None:
    """Whichever layout it looks like."""
    path = tmp_path / "any.txt"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        for found in read_foreign(path):
            encode_trajectory(found.trajectory)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either way is right
