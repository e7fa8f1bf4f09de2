"""The bird source: evidence, difficulty, and three layouts of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import make_database, write_json
from toolenvs.errors import DataError
from toolenvs.sources.bird import Bird

ROW = {
    "question_id": 17,
    "db_id": "emp",
    "question": "Who earns most?",
    "evidence": "earns most refers to max(pay)",
    "SQL": "SELECT name FROM emp WHERE pay = (SELECT max(pay) FROM emp)",
    "difficulty": "simple",
}
PROMPT = (
    "Write one query for the SQLite database 'emp'.\n\nWho earns most?\n\n"
    "Hint: earns most refers to max(pay)"
)


def folder(tmp_path: Path, row: dict[str, Any], name: str = "dev.json") -> Path:
    """A BIRD folder with one row."""
    make_database(tmp_path / "dev_databases" / "emp" / "emp.sqlite")
    write_json(tmp_path / name, [row])
    return tmp_path


def test_a_row_becomes_a_task_with_its_evidence(tmp_path: Path) -> None:
    """The evidence is a hint in the prompt, the difficulty is data."""
    source = Bird(folder(tmp_path, ROW))
    task = source[0]
    assert (task.id, task.prompt, task.answer) == ("bird-17", PROMPT, ROW["SQL"])
    assert task.data == {"difficulty": "simple"}
    assert task.database is not None
    assert task.database.place == "bird/emp/emp.sqlite"


def test_intercodes_layout_is_the_same_task(tmp_path: Path) -> None:
    """There ``query`` is the question and ``db`` the database."""
    row = {key: ROW[key] for key in ("question_id", "evidence", "SQL", "difficulty")}
    row |= {"query": ROW["question"], "db": "emp", "gold": ROW["SQL"]}
    other = folder(tmp_path, row, "ic_bird.json")
    write_json(other / "dev.json", [ROW])
    assert Bird(other / "ic_bird.json")[0] == Bird(other)[0]


def test_rows_of_nemo_gym_are_read(tmp_path: Path) -> None:
    """One object a line, with ``gt_sql`` and ``id``."""
    row = {"question": "q", "gt_sql": ROW["SQL"], "db_id": "emp", "id": 3, "difficulty": "simple"}
    folder(tmp_path, ROW)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    task = Bird(tmp_path / "rows.jsonl")[0]
    assert (task.id, task.answer) == ("bird-3", ROW["SQL"])
    assert "Hint" not in task.prompt


def test_training_rows_have_no_id_of_their_own(tmp_path: Path) -> None:
    """Then it is the file's stem and the row's number."""
    row = {key: ROW[key] for key in ("db_id", "question", "evidence", "SQL")}
    make_database(tmp_path / "train_databases" / "emp" / "emp.sqlite")
    write_json(tmp_path / "train.json", [row])
    task = Bird(tmp_path)[0]
    assert (task.id, task.data) == ("bird-train-0", {})
    assert task.database is not None
    assert task.database.place == "bird-train_databases/emp/emp.sqlite"


def test_a_row_without_a_gold_names_what_is_needed(tmp_path: Path) -> None:
    """With its place."""
    row = {key: ROW[key] for key in ("db_id", "question")}
    with pytest.raises(DataError, match=r"dev\.json\[0\]: field 'SQL' is missing; each row needs"):
        Bird(folder(tmp_path, row))


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "rows", "first"), [("mini_dev.json", 500, 1471), ("intercode_bird.json", 338, 195)]
)
def test_real_rows_are_read(shared: Path, tmp_path: Path, name: str, rows: int, first: int) -> None:
    """Every row is read; without BIRD's databases each is rejected for that reason alone."""
    path = shared / "data" / "sql" / "bird" / name
    with pytest.raises(DataError) as caught:
        Bird(f"{path},databases={tmp_path}")
    assert f"The first of {rows}: " in str(caught.value)
    databases = {row.get("db_id") or row["db"] for row in json.loads(path.read_text())}
    for database in databases:
        make_database(tmp_path / database / f"{database}.sqlite")
    with pytest.raises(DataError) as caught:
        Bird(f"{path},databases={tmp_path}")
    assert f"The first of {rows}: " in str(caught.value)
    assert "the gold does not run: no such table" in str(caught.value)
