"""Generated SQL tasks: reproducible, fit on every database, and hard to hit by a near miss."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.grading.sql import Trial, grade_instances, read_outline, read_policy
from toolenvs.sources._databases import built_folder
from toolenvs.sources._sql_kinds import KINDS
from toolenvs.sources._sql_near import near_misses
from toolenvs.sources._sql_schema import Dice, literal
from toolenvs.sources._sql_schemas import SCHEMAS
from toolenvs.sources._sql_world import world
from toolenvs.sources._sqlgold import examine, rows_of
from toolenvs.sources._sqlsource import Databases
from toolenvs.sources.sql_generated import SqlGenerated
from toolenvs.types import Database, Task

_DIGEST = """
import hashlib, msgspec
from toolenvs.sources.sql_generated import SqlGenerated
source = SqlGenerated("seed=3,n=52")
told = [(t.id, t.prompt, t.answer, t.grading, t.database.place, t.database.digest) for t in
        (source[i] for i in range(52))]
print(hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16])
"""


def database_of(task: Task) -> Database:
    """The task's database."""
    assert task.database is not None
    return task.database


def verdict(task: Task, sql: str, *, instances: bool = True) -> bool:
    """Whether a query passes for the task, on all its databases or on the first alone."""
    database = database_of(task)
    folder = Databases(built_folder())
    places = (database.place, *database.instances) if instances else (database.place,)
    probe = read_outline(task.answer).probe
    trials = []
    for place in places:
        file = folder.file(database, place)
        gold, given = rows_of(task.answer, file), rows_of(sql, file)
        trials.append(
            Trial(gold=gold, submitted=given, probe=rows_of(probe, file) if probe else None)
        )
    return grade_instances(task.answer, trials, policy=read_policy(task.grading)).correct


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_task_of_a_kind_is_fit(kind: str) -> None:
    """Its gold runs, returns rows or changes some, is decided by no tie, and passes for itself."""
    source = SqlGenerated(f"seed=11,n=12,kinds={kind}")
    folder = Databases(built_folder())
    for index in range(len(source)):
        task = source[index]
        found = examine(task.answer, folder.file(database_of(task)), grading=task.grading)
        assert found.unusable == "", task.answer
        assert not any("tie" in note for note in found.notes)
        if not database_of(task).writable:
            assert verdict(task, task.answer)
    assert len({source[i].prompt for i in range(len(source))}) >= 10


def test_kinds_and_schemas_take_turns() -> None:
    """Every pair of them comes, and the id names it."""
    source = SqlGenerated(f"n={len(KINDS) * len(SCHEMAS)}")
    assert source[0].id == source.ids[0] == "library-listing-0-0"
    tasks = [source[i] for i in range(len(source))]
    assert [task.id for task in tasks] == list(source.ids)
    pairs = Counter((database_of(task).name, task.data["kind"]) for task in tasks)
    assert set(pairs.values()) == {1}
    assert {task.data["difficulty"] for task in tasks} == {"easy", "medium", "hard", "extra"}
    assert sum(database_of(task).writable for task in tasks) == 24


def test_databases_have_instances_and_changes_have_none() -> None:
    """What a query must be right on, besides the agent's own database."""
    source = SqlGenerated("n=104")
    found = {
        (database_of(task).name, database_of(task).writable): len(database_of(task).instances)
        for task in (source[i] for i in range(104))
    }
    assert found == {
        (name, writable): 0 if writable else 3 for name in SCHEMAS for writable in (False, True)
    }


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_no_rows_that_are_written_out_are_right_everywhere(seed: int) -> None:
    """The gold's own rows as VALUES fail on an instance, of every task that asks for rows."""
    source = SqlGenerated(f"seed={seed},n=104")
    for task in (source[i] for i in range(len(source))):
        if database_of(task).writable:
            continue
        file = Databases(built_folder()).file(database_of(task))
        rows = rows_of(task.answer, file)["rows"]
        written = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        assert verdict(task, f"VALUES {written}", instances=False) or "ORDER BY" in task.answer
        assert not verdict(task, f"VALUES {written}"), task.id


@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_equal_seeds_give_equal_tasks_in_any_process(hash_seed: str) -> None:
    """Tasks, places and digests do not depend on the process or its hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # A change of this digest means that every published seed now gives other tasks.
    assert done.stdout.strip() == "e54cb15ab6122d75"


def test_instances_kill_near_misses() -> None:
    """No query with one slip of the pen passes; on the agent's own database alone some do."""
    source = SqlGenerated("seed=5,n=80,schemas=library+shop")
    tried = alone = together = 0
    for task in (source[i] for i in range(len(source))):
        if database_of(task).writable:
            continue
        for sql in near_misses(task.answer):
            tried += 1
            alone += verdict(task, sql, instances=False)
            together += verdict(task, sql)
    assert tried > 60
    assert alone > 0
    assert together == 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**63 - 1), row=st.integers(0, 10**6))
def test_any_row_of_any_seed_is_a_task(seed: int, row: int) -> None:
    """Databases are made for it and its gold is fit."""
    source = SqlGenerated(f"seed={seed},n={row + 1}")
    task = source[row]
    assert task == SqlGenerated(f"seed={seed},n={row + 1}")[row]
    assert (task.id, task.family) == (source._id(row), "sql")
    assert built_folder().file(database_of(task).place).is_file()


def test_a_question_does_not_change_the_database() -> None:
    """Trying golds that change something leaves the world as it is."""
    made = world("library", 0)
    before = made.rows("SELECT count(*), sum(fee) FROM loan")
    assert made.is_change("DELETE FROM loan WHERE id = 1")
    assert not made.is_change("DELETE FROM loan WHERE id = 0")
    assert not made.is_change("UPDATE loan SET days = days WHERE id = 1")
    assert made.rows("SELECT count(*), sum(fee) FROM loan") == before


def test_dice_are_those_of_their_seed() -> None:
    """The same draws in any release of Python: only ``random()`` is used."""
    dice = Dice("a", 1)
    drawn = [dice.below(1000) for _ in range(4)]
    assert drawn == [Dice("a", 1).below(1000), *drawn[1:]]
    assert drawn == [331, 885, 783, 140]
    assert Dice("b").some([1, 2], 5) in ([1, 2], [2, 1])


def test_a_source_can_be_pickled_and_is_made_without_files() -> None:
    """Databases are built when a task is drawn."""
    source = SqlGenerated("seed=99,n=8")
    assert pickle.loads(pickle.dumps(source))[3] == source[3]
    assert source.resources == {"sandbox:sql": {"data": {"built": str(built_folder().path)}}}


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("sed=1", UnknownNameError, "Did you mean 'seed'"),
        ("n=0", UsageError, "n='0' must be a whole number from 1"),
        ("schemas=libary", UnknownNameError, "Did you mean 'library'"),
        ("kinds=listing+listing", UsageError, "names a kind of SQL question twice"),
    ],
)
def test_a_wrong_option_is_named(location: str, error: type[Exception], message: str) -> None:
    """The message says which options and values there are."""
    with pytest.raises(error, match=message):
        SqlGenerated(location)
