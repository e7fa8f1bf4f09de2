"""Rows of questions whose fields hold what they should not, and files of other data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.test_questions import (
    FLAGGED,
    FLASHRAG,
    HUGGING_FACE,
    OFFICIAL,
    PLAIN,
    load,
    write,
)
from toolenvs.errors import DataError
from toolenvs.sources._jsonlines import Row
from toolenvs.sources._questions import LAYOUT, read_question

MANGLED: list[tuple[str, dict[str, Any]]] = [
    ("context", {**OFFICIAL, "context": 5}),
    ("context.title", {**OFFICIAL, "context": {"title": 5, "sentences": [["x"]]}}),
    ("context.sentences", {**OFFICIAL, "context": {"title": ["A"], "sentences": [5]}}),
    ("context.sentences", {**OFFICIAL, "context": [["A", 5]]}),
    ("context.sentences", {**OFFICIAL, "context": [["A", [True]]]}),
    ("context.title", {**OFFICIAL, "context": [[{"a": 1}, ["x"]]]}),
    ("context", {**OFFICIAL, "context": [5]}),
    ("supporting_facts", {**OFFICIAL, "supporting_facts": 5}),
    ("supporting_facts.title", {**OFFICIAL, "supporting_facts": {"title": 5}}),
    ("supporting_facts", {**OFFICIAL, "supporting_facts": [[{"a": 1}, 0]]}),
    ("answer_aliases", {**OFFICIAL, "answer_aliases": 5}),
    ("answer_aliases", {**OFFICIAL, "answer_aliases": {"a": 1}}),
    ("answer_aliases", {**OFFICIAL, "answer_aliases": [["a"]]}),
    ("supporting_titles", {**PLAIN, "supporting_titles": 5}),
    ("supporting_titles", {**PLAIN, "supporting_titles": [None]}),
    ("paragraphs", {**PLAIN, "paragraphs": 5}),
    ("paragraphs", {**PLAIN, "paragraphs": {"a": 1}}),
    ("paragraphs.title", {**PLAIN, "paragraphs": [{"title": ["x"], "text": "y"}]}),
    ("paragraphs.text", {**PLAIN, "paragraphs": [{"title": "x", "text": ["y"]}]}),
    ("answer.aliases", {**PLAIN, "answer": {"value": "x", "aliases": 5}}),
    ("Answer.aliases", {"question": "?x", "Answer": {"Value": "x", "Aliases": 5}}),
    ("prompt.content", {"prompt": [{"role": "user", "content": 5}], "golden_answers": ["x"]}),
    ("prompt.content", {"prompt": [{"role": "user", "content": [5]}], "golden_answers": ["x"]}),
]


@pytest.mark.parametrize(("field", "row"), MANGLED)
def test_a_field_of_another_type_is_named(tmp_path: Path, field: str, row: dict[str, Any]) -> None:
    """With the line, what it holds and what it must be, wherever in the row it stands."""
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / "a.jsonl", [{**OFFICIAL, "_id": "good"}, row]))
    assert f"a.jsonl:2: field {field!r} holds " in str(caught.value)


def test_as_many_titles_as_texts(tmp_path: Path) -> None:
    """No paragraph is left out in silence."""
    row = {**OFFICIAL, "context": {"title": ["A", "B"], "sentences": [["x"]]}}
    with pytest.raises(DataError, match="field 'context' holds 2 titles and 1 sent"):
        load(write(tmp_path / "a.jsonl", [row]))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.sampled_from([OFFICIAL, HUGGING_FACE, FLASHRAG, FLAGGED]), st.data())
def test_no_row_raises_anything_else(row: dict[str, Any], data: st.DataObject) -> None:
    """Whatever stands in a field, the row is read or is a DataError with its place."""
    name = data.draw(st.sampled_from([*row, *LAYOUT, "prompt"]))
    made = Row({**row, name: data.draw(junk)}, {}, "a.jsonl:7", "a", 6)
    failure: DataError | None = None
    try:
        read_question(made, source="hotpotqa")
    except DataError as error:
        failure = error
    assert failure is None or str(failure).startswith("a.jsonl:7: ")


@pytest.mark.parametrize(
    ("name", "row", "golds", "supporting"),
    [
        ("musique", {**FLAGGED, "answer_aliases": "Rhône"}, ["Rhone", "Rhône"], ["Lyon", "Rhone"]),
        ("nq", {**PLAIN, "answer": {"value": "a1", "aliases": "b2"}}, ["a1", "b2"], None),
        ("nq", {**PLAIN, "answer": {"value": None, "aliases": ["b2"]}}, ["b2"], None),
        ("nq", {**PLAIN, "answer_aliases": None}, ["Rhone"], None),
        (
            "musique",
            {**PLAIN, "supporting_titles": "AB", "paragraphs": [{"title": "AB", "text": "x"}]},
            ["Rhone"],
            ["AB"],
        ),
        (
            "hotpotqa",
            {**PLAIN, "supporting_facts": {"title": "AB"}, "context": [["AB", "x"]]},
            ["Rhone"],
            ["AB"],
        ),
    ],
)
def test_a_text_is_a_list_of_one(
    tmp_path: Path,
    name: str,
    row: dict[str, Any],
    golds: list[str],
    supporting: list[str] | None,
) -> None:
    """Where a list belongs, and never a list of its letters."""
    task = load(write(tmp_path / "a.jsonl", [row]), name)[0]
    assert [task.answer, *task.grading.get("aliases", [])] == golds
    assert task.grading.get("supporting") == supporting


def test_a_prompt_in_parts_is_its_texts(tmp_path: Path) -> None:
    """As chats with images have them."""
    content = [
        {"type": "text", "text": "Answer the given question. Question: who?"},
        {"type": "image"},
    ]
    row = {"prompt": [{"role": "user", "content": content}], "golden_answers": ["x"]}
    assert load(write(tmp_path / "a.jsonl", [row]), "searchr1")[0].prompt == "who?"


GSM8K = {"question": "How many?", "answer": "2 + 3 = <<2+3=5>>5\n#### 5"}


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki", "musique", "nq", "triviaqa", "searchr1"])
def test_a_file_of_another_data_set_is_refused(tmp_path: Path, name: str) -> None:
    """It has questions and answers too, but nothing else of any layout."""
    with pytest.raises(DataError, match="no row has anything of a layout that") as caught:
        load(write(tmp_path / "a.jsonl", [GSM8K, GSM8K]), name)
    assert "A row has question, answer." in str(caught.value)


def test_a_row_without_an_answer_names_its_fields(tmp_path: Path) -> None:
    """Those that were looked for, and those that are there; a file of such rows too."""
    dpr = {"question": "?x", "answers": ["Lyon", "Lugdunum"], "ctxs": []}
    source = load(write(tmp_path / "a.jsonl", [dpr, {"question": "?y", "type": "z", "reply": "x"}]))
    assert len(source) == 1
    assert (source[0].answer, source[0].grading["aliases"]) == ("Lyon", ["Lugdunum"])
    (rejection,) = source.rejected
    assert "none of golden_answers, answers, answer, Answer, reward_model" in str(rejection)
    assert "it has question, type, reply" in str(rejection)
    with pytest.raises(DataError, match="it has question, reply"):
        load(write(tmp_path / "b.jsonl", [{"question": "?y", "reply": "x"}]))


def test_simplified_files_are_read(tmp_path: Path) -> None:
    """Without passages, as the data sets are passed on too."""
    for name, row in (("hotpotqa", {**PLAIN, "type": "bridge"}), ("nq", PLAIN)):
        assert len(load(write(tmp_path / "a.jsonl", [row]), name)) == 1
