"""The math source: the layout of MATH-500."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sources.programs import outputs
from toolenvs.errors import DataError
from toolenvs.sources.math import Math

ROW = {
    "problem": "Find $\\sqrt{4}$.",
    "solution": "It is $\\boxed{2}$.",
    "answer": "\\frac{4}{2}",
    "subject": "Algebra",
    "level": 1,
    "unique_id": "test/algebra/1.json",
}


def test_a_row_becomes_a_task(tmp_path: Path) -> None:
    """The id is the row's own; subject and level are kept, the solution with the gold is not."""
    path = tmp_path / "rows.jsonl"
    bare = {"problem": "p", "answer": "1"}
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(bare) + "\n")
    source = Math(path)
    assert list(source.ids) == ["test/algebra/1.json", "rows-1"]
    assert source[0].answer == "\\frac{4}{2}"
    assert source[0].data == {"subject": "Algebra", "level": 1}


def test_h06_the_gold_call_runs_and_does_not_carry_the_gold(tmp_path: Path) -> None:
    """H06: no gold answer enters a sandbox by way of the gold policy's call."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROW, "answer": "31337"}) + "\n")
    (call,) = Math(path)[0].gold_calls
    assert "31337" not in json.dumps(call)
    assert outputs([call["arguments"]["code"]]) == ["ready\n"]


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    """The fields that are there and those that are needed are in the message."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"problem": "p", "level": 2}\n')
    with pytest.raises(DataError) as caught:
        Math(path)
    assert str(caught.value) == (
        f"{path}:1: field 'answer' is missing; each row needs problem, answer. "
        "This row has problem, level."
    )


def test_the_older_layout_has_its_answer_in_the_box(tmp_path: Path) -> None:
    """Without an answer field the last box of the solution counts; no box is no answer."""
    path = tmp_path / "rows.jsonl"
    boxed = {"problem": "p", "solution": "First $\\boxed{1}$, then $\\boxed{\\frac{1}{2}}$."}
    path.write_text(json.dumps(boxed) + '\n{"problem": "p", "solution": "none"}\n')
    source = Math(path)
    assert source[0].answer == "\\frac{1}{2}"
    assert list(source.rejected) == [f"{path}:2: the gold answer is empty"]


@pytest.mark.shared
def test_every_row_of_the_real_file_is_usable(shared: Path) -> None:
    """500 rows, and all 500 golds grade themselves as right."""
    source = Math(shared / "data" / "math" / "math500_test.jsonl")
    assert list(source.rejected) == []
    assert len(source) == 500
    assert source[0].id == "test/precalculus/807.json"
