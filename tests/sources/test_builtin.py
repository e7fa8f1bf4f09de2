"""The built-in tasks: right, described, and found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.sources.programs import outputs
from toolenvs.data import data_folder
from toolenvs.errors import UnknownNameError
from toolenvs.grading.math import MathPolicy, grade
from toolenvs.sources._databases import built_folder
from toolenvs.sources._sqlgold import examine
from toolenvs.sources._sqlsource import Databases
from toolenvs.sources.builtin import Builtin
from toolenvs.sources.sql_generated import SqlGenerated
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


@pytest.mark.parametrize(("part", "seed", "n"), [("train", 0, 208), ("test", 1, 104)])
def test_sql_tasks_are_those_of_the_generator(part: str, seed: int, n: int) -> None:
    """The files hold what ``sql_generated`` makes of two seeds, of which every gold is fit."""
    builtin, generated = Builtin(part, family="sql"), SqlGenerated(f"seed={seed},n={n}")
    assert len(builtin) == n
    assert tasks(builtin) == [generated[i] for i in range(n)]
    assert builtin.resources == generated.resources


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_sql_gold_is_worth_its_task(part: str) -> None:
    """It runs, returns rows or changes some, and no tie decides; databases are built when drawn."""
    source = Builtin(part, family="sql")
    databases = Databases(built_folder())
    for task in tasks(source):
        assert task.database is not None
        found = examine(task.answer, databases.file(task.database), grading=task.grading)
        assert (found.unusable, found.notes) == ("", ()), task.id
    described = tomllib.loads((data_folder("tasks") / "sql" / "task.toml").read_text())
    assert {"path": f"{part}.jsonl", "rows": len(source)} in described["files"]


def test_sql_databases_are_built_when_a_task_is_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Making the source writes no file, so that an environment is cheap to construct."""
    monkeypatch.setenv("TOOLENVS_DATABASES", str(tmp_path))
    source = Builtin(family="sql")
    assert not list(tmp_path.rglob("*.sqlite"))
    database = source[0].database
    assert database is not None
    built = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sqlite")}
    assert built >= {
        place.removeprefix("built/") for place in (database.place, *database.instances)
    }


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
