"""The spider source: questions, places, golds that are judged, and what is left out."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest

from tests.sources.databases import make_database, spider_folder, write_json
from toolenvs.errors import DataError
from toolenvs.sources.spider import Spider
from toolenvs.tasks import load_tasks, resources_of


def test_a_row_becomes_a_task(tmp_path: Path) -> None:
    """With its database by place and content, and gold calls that use the tools."""
    source = Spider(spider_folder(tmp_path, 'SELECT name FROM emp WHERE city = "Oslo"'))
    task = source[0]
    gold = "SELECT name FROM emp WHERE city = 'Oslo'"
    assert (task.id, task.family, task.answer) == ("spider-dev-0", "sql", gold)
    assert task.prompt == "Write one query for the SQLite database 'emp'.\n\nq?"
    assert task.database is not None
    assert task.database.place == "spider/emp/emp.sqlite"
    assert len(task.database.digest) == 64
    assert not task.database.writable
    assert [call["name"] for call in task.gold_calls] == ["sql_schema", "sql_query", "submit_sql"]
    assert task.gold_calls[2]["arguments"] == {"sql": gold}
    assert str(tmp_path) not in repr(task)


def test_resources_name_the_folder(tmp_path: Path) -> None:
    """It is what runtimes must show; mixtures pass it on."""
    spider_folder(tmp_path, "SELECT 1 FROM emp")
    expected = {"sandbox:sql": {"data": {"spider": str(tmp_path / "database")}}}
    assert Spider(tmp_path).resources == expected
    assert resources_of(load_tasks(f"spider:{tmp_path}", family="sql")) == expected


def test_rows_whose_gold_decides_nothing_are_rejected(tmp_path: Path) -> None:
    """Each with its place and the reason; the others keep their ids."""
    source = Spider(
        spider_folder(
            tmp_path,
            "SELECT name FROM emp WHERE pay > 999",
            "SELECT name FROM emp",
            "SELECT name FROM emp WHERE id > random()",
            "SELECT nme FROM emp",
            "SELECT name FROM emp ORDER BY pay DESC LIMIT 1",
        )
    )
    assert source.ids == ["spider-dev-1", "spider-dev-4"]
    expected = [
        "[0]: the gold returns no rows",
        "[2]: the gold depends on the clock or on chance: random",
        "[3]: the gold does not run: no such column: nme",
    ]
    for text, start in zip(source.rejected, expected, strict=True):
        assert text.startswith(f"{tmp_path / 'dev.json'}{start}")
    assert source.notes == ["spider-dev-4: 2 rows tie at the LIMIT for 1; any of them is right"]


def test_a_file_and_its_databases_can_be_named(tmp_path: Path) -> None:
    """A location is a folder, or a file; the databases may be elsewhere."""
    make_database(tmp_path / "elsewhere" / "emp" / "emp.sqlite")
    rows = [{"db_id": "emp", "question": "q", "query": "SELECT count(*) FROM emp"}]
    write_json(tmp_path / "train_spider.json", rows)
    with pytest.raises(DataError, match="write spider:PATH,databases=FOLDER"):
        Spider(tmp_path)
    source = Spider(f"{tmp_path},databases={tmp_path / 'elsewhere'}")
    assert source.ids == ["spider-train-0"]
    same = Spider(f"{tmp_path / 'train_spider.json'},databases={tmp_path / 'elsewhere'}")
    assert same[0] == source[0]
    with pytest.raises(DataError, match=r"holds none of dev\.json"):
        Spider(tmp_path / "elsewhere")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """A field, a database, a name that leads out of the folder."""
    spider_folder(tmp_path, "SELECT 1 FROM emp")
    write_json(tmp_path / "dev.json", [{"db_id": "emp", "question": "q"}])
    with pytest.raises(DataError, match=r"dev\.json\[0\]: field 'query' is missing"):
        Spider(tmp_path)
    row = {"question": "q", "query": "SELECT 1 FROM emp"}
    write_json(tmp_path / "dev.json", [{"db_id": "gone", **row}, {"db_id": "emp", **row}])
    assert "there is no database gone.sqlite in" in Spider(tmp_path).rejected[0]
    write_json(tmp_path / "dev.json", [{"db_id": "../emp", **row}])
    with pytest.raises(DataError, match=r"dev\.json\[0\]: .*names no file inside"):
        Spider(tmp_path)


def test_a_pickled_source_reads_on(tmp_path: Path) -> None:
    """Environments are sent to worker processes with their tasks."""
    source = Spider(spider_folder(tmp_path, "SELECT name FROM emp"))
    assert pickle.loads(pickle.dumps(source))[0] == source[0]


@pytest.mark.shared
def test_every_usable_row_of_the_real_file_is_loaded(shared: Path) -> None:
    """482 of 564; the golds of the others return nothing, 44 of them since ``wta_1`` is empty."""
    source = Spider(shared / "data" / "sql" / "spider")
    assert (len(source), len(source.rejected)) == (482, 82)
    assert Counter(text.partition(": ")[2] for text in source.rejected) == {
        "the gold returns no rows": 82
    }
    assert len(source.notes) == 22
    tasks = [source[i] for i in range(len(source))]
    assert not any('"' in task.answer for task in tasks)
    assert len({task.database.digest for task in tasks if task.database}) == 13
