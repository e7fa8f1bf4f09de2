"""The gsm8k source: answers, ids and the programs made of calculator annotations."""

from __future__ import annotations

import ast
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.programs import outputs
from toolenvs.errors import DataError
from toolenvs.sources._arithmetic import read_arithmetic
from toolenvs.sources.gsm8k import Gsm8k
from toolenvs.types import Task

SOLUTION = (
    "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\n"
    "Natalia sold 48+24 = <<48+24=72>>72 clips altogether in April and May.\n#### 72"
)


def load(tmp_path: Path, *answers: str, name: str = "test.jsonl") -> Gsm8k:
    """A source with one row for each answer field."""
    path = tmp_path / name
    path.write_text("".join(json.dumps({"question": "q", "answer": a}) + "\n" for a in answers))
    return Gsm8k(path)


def program(task: Task) -> str:
    """The code of the task's one gold call, for the tool ``python``."""
    (call,) = task.gold_calls
    assert call["name"] == "python"
    code = call["arguments"]["code"]
    assert isinstance(code, str)
    return code


def test_the_answer_follows_the_last_marker(tmp_path: Path) -> None:
    """The final answer is taken as it is written; the solution with the gold is not kept."""
    source = load(tmp_path, SOLUTION, "#### not this\n####  -1,450,000 ")
    assert [source[0].answer, source[1].answer] == ["72", "-1,450,000"]
    assert source[0].data == {}
    assert source[0].family == "math_tir"


@pytest.mark.parametrize(
    ("name", "task_id"),
    [
        ("test.jsonl", "gsm8k-test-0"),
        ("gsm8k_test.jsonl", "gsm8k-test-0"),
        ("train.v1.jsonl", "gsm8k-train-0"),
    ],
)
def test_ids_are_made_of_the_stem_and_the_row(tmp_path: Path, name: str, task_id: str) -> None:
    """Ids do not depend on the folder."""
    assert load(tmp_path, SOLUTION, name=name).ids == [task_id]


def test_the_gold_call_computes_the_annotations(tmp_path: Path) -> None:
    """Left sides become a program that prints each value; right sides are not in it."""
    task = load(tmp_path, SOLUTION)[0]
    assert "48 / F(2)" in program(task)
    assert "72" not in program(task)
    assert outputs([program(task)]) == ["24\n72\n"]


@pytest.mark.parametrize(
    ("annotations", "printed"),
    [
        ("<<.5*10=5>> <<2,000+50%=1>> <<007*2=14>>", "5\n2000.5\n14\n"),
        ("<<(3-5)*-2=4>> <<10/4=2.5>> <<1/3=0.33>>", "4\n2.5\n0.3333333333333333\n"),
        ("<<3×4=12>> <<6÷4=1.5>> <<5−7=-2>>", "12\n1.5\n-2\n"),
        ("<<x*2=4>> <<2*3=6>> <<2**3=8>> <<1/0=0>> <<2*(3=6>> <<>>", "6\n"),
        ("<<9**9**9=1>> <<__import__('os')=1>> <<12=12>> <<=3>>", "ready\n"),
        ("no annotation at all", "ready\n"),
    ],
)
def test_broken_annotations_are_left_out(tmp_path: Path, annotations: str, printed: str) -> None:
    """The call runs whatever the row holds, and only checked arithmetic gets into it."""
    task = load(tmp_path, f"{annotations}\n#### 5")[0]
    assert outputs([program(task)]) == [printed]


def test_an_answer_without_its_marker_is_an_error(tmp_path: Path) -> None:
    """The message says what the field needs."""
    with pytest.raises(DataError) as caught:
        load(tmp_path, SOLUTION, "72")
    assert str(caught.value) == (
        f"{tmp_path}/test.jsonl:2: field 'answer' holds no '####'; each row needs a solution that "
        "ends with '#### NUMBER'."
    )


def test_a_row_of_another_layout_names_what_is_needed(tmp_path: Path) -> None:
    """The fields of the layout and those of the row are named."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "p", "answer": "#### 1"}\n')
    with pytest.raises(DataError) as caught:
        Gsm8k(path)
    assert str(caught.value) == (
        f"{path}:1: field 'question' is missing; each row needs question, answer. "
        "This row has prompt, answer."
    )


@pytest.mark.shared
def test_every_row_of_the_real_test_file_is_usable(shared: Path) -> None:
    """1319 rows, none rejected; the programs run, and nine in ten end with the gold answer."""
    source = Gsm8k(shared / "data" / "math" / "gsm8k_test.jsonl")
    assert len(source) == 1319
    assert list(source.rejected) == []
    tasks = [source[i] for i in range(len(source))]
    assert tasks[17].id == "gsm8k-test-17"
    printed = outputs([program(task) for task in tasks])
    right = sum(
        last(text) == Fraction(task.answer.replace(",", ""))
        for text, task in zip(printed, tasks, strict=True)
    )
    assert right > 1150


def last(text: str) -> Fraction | None:
    """The number on the last line, if it is one."""
    try:
        return Fraction(text.splitlines()[-1])
    except ValueError:
        return None


sums = st.recursive(
    st.one_of(
        st.integers(0, 10**6).map(str),
        st.decimals(0, 1000, places=2, allow_nan=False).map(str),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", " / ", "+-"]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-({})".format),
        inner.map("({})%".format),
    ),
    max_leaves=8,
)


@given(sums)
def test_arithmetic_comes_out_as_python_of_the_same_value(text: str) -> None:
    """What the grammar reads is what Python computes from its translation, exactly."""
    read = read_arithmetic(text)
    if read is not None:
        code = compile(ast.parse(read.python, mode="eval"), "arithmetic", "eval")
        assert eval(code, {"F": Fraction, "__builtins__": {}}) == read.value


@given(st.text(st.sampled_from("0123456789.,+-*/()%= xF_'\"^\n")))
def test_nothing_but_arithmetic_gets_through(text: str) -> None:
    """Whatever the text, the translation holds only numbers, signs and ``F(...)``."""
    read = read_arithmetic(text)
    if read is not None:
        tree = ast.parse(read.python, mode="eval")
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert all(isinstance(node.func, ast.Name) and node.func.id == "F" for node in calls)
        assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= {"F"}
        assert not any(isinstance(node, ast.Pow | ast.Attribute) for node in ast.walk(tree))
