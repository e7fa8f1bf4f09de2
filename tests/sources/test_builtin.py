"""The built-in tasks: right, described, and found."""

from __future__ import annotations

import tomllib

import pytest

from tests.sources.programs import outputs
from toolenvs.data import data_folder
from toolenvs.errors import UnknownNameError
from toolenvs.grading.math import MathPolicy, grade
from toolenvs.sources.builtin import Builtin
from toolenvs.types import Task


def tasks(source: Builtin) -> list[Task]:
    """All tasks of a source."""
    return [source[i] for i in range(len(source))]


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_gold_call_computes_its_answer(part: str) -> None:
    """What the program prints grades as the answer, for plain and for written-out forms."""
    source = Builtin(part)
    assert not source.rejected
    for task in tasks(source):
        (call,) = task.gold_calls
        (printed,) = outputs([call["arguments"]["code"]], task.files)
        assert grade(task.answer, printed, policy=MathPolicy(**task.grading)).correct, task.id


def test_the_description_matches_the_files() -> None:
    """task.toml names family, licence, provenance and the number of rows of each file."""
    described = tomllib.loads((data_folder("tasks") / "math_tir" / "task.toml").read_text())
    assert described["family"] == "math_tir"
    assert described["licence"]
    assert described["provenance"]
    for file in described["files"]:
        assert len(Builtin(file["path"].removesuffix(".jsonl"))) == file["rows"]


def test_train_is_the_default_and_shares_no_task_with_test() -> None:
    """The two files are disjoint by id and by prompt."""
    train, test = Builtin(), Builtin("test")
    assert train.ids == Builtin("train").ids
    assert not set(train.ids) & set(test.ids)
    assert not {task.prompt for task in tasks(train)} & {task.prompt for task in tasks(test)}


def test_an_unknown_part_or_family_names_the_nearest() -> None:
    """Both messages list what there is."""
    with pytest.raises(UnknownNameError, match="Did you mean 'train'\\?"):
        Builtin("trian")
    with pytest.raises(UnknownNameError, match="Did you mean 'math_tir'\\?"):
        Builtin(family="math_tri")
