"""The agentbench source: tables built from rows, labels as golds, and changes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import rows_of
from toolenvs.errors import DataError
from toolenvs.sources._databases import built_folder
from toolenvs.sources.agentbench import Agentbench
from toolenvs.types import Task

TABLE = {
    "table_name": 'Cup "A" / 2',
    "table_info": {
        "columns": [{"name": "Team's name", "type": "TEXT"}, {"name": "Goals", "type": "INT"}],
        "rows": [["Ann's", "3"], ["Bob", "1,204"], ["Cid", "7"]],
    },
}


def row(**fields: Any) -> dict[str, Any]:
    """A row that is fine, with other fields."""
    return {
        "description": "How many goals has Cid?",
        "label": ["7.0"],
        "table": TABLE,
        "type": ["other"],
        "add_description": "The table is Cup.",
        "sql": {"query": 'SELECT Goals FROM `Cup "A" / 2` WHERE `Team\'s name` = "Cid";'},
        "source": "wikisql",
        **fields,
    }


def load(tmp_path: Path, *rows: dict[str, Any]) -> Agentbench:
    """A source of these rows."""
    path = tmp_path / "dbbench_dev.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return Agentbench(path)


def test_a_table_becomes_a_database(tmp_path: Path) -> None:
    """Names and values with quotes survive; numbers are numbers where the column says so."""
    task = load(tmp_path, row())[0]
    assert task.id == "agentbench-dev-0"
    assert task.database is not None
    assert task.database.name == "Cup-A-2"
    found = rows_of(built_folder().file(task.database.place), 'SELECT * FROM "Cup ""A"" / 2"')
    assert found == [("Ann's", 3), ("Bob", "1,204"), ("Cid", 7)]
    assert task.prompt.endswith("How many goals has Cid?\n\nHint: The table is Cup.")


def test_the_rows_query_is_the_gold_where_it_returns_the_label(tmp_path: Path) -> None:
    """Numbers that are written otherwise are the same; texts are in single quotes."""
    task = load(tmp_path, row())[0]
    assert task.answer == "SELECT Goals FROM `Cup \"A\" / 2` WHERE `Team's name` = 'Cid';"
    assert task.grading["text_numbers"] is True
    assert task.data == {"type": "other", "source": "wikisql"}


@pytest.mark.parametrize(
    "query", ["SELECT 8", "SELECT Goals FROM Cup", "", 'SELECT "Goals" FROM', "DROP TABLE x"]
)
def test_another_query_gives_way_to_the_label(tmp_path: Path, query: str) -> None:
    """What the data set says is right is right, however its query fails."""
    source = load(tmp_path, row(sql={"query": query}, label=["O'Hara", "2"]))
    assert source[0].answer == "VALUES ('O''Hara'), ('2')"
    assert load(tmp_path, row(sql=None))[0].answer == "VALUES ('7.0')"


def test_a_gold_that_is_written_out_is_noted(tmp_path: Path) -> None:
    """Such a task pays a guess as well as a query; who trains on it is told."""
    source = load(tmp_path, row(), row(sql=None))
    assert source.notes == [
        "agentbench-dev-1: the gold reads no table, so an answer that is written out is paid, too"
    ]


def test_a_label_for_nothing_is_rejected(tmp_path: Path) -> None:
    """An empty result must never pay."""
    source = load(tmp_path, row(), row(label=["none"], sql=None))
    assert len(source) == 1
    assert source.rejected[0].endswith(":2: the gold returns no rows")


def test_a_change_is_scored_by_the_state(tmp_path: Path) -> None:
    """The label holds the statement; a copy of the database is the episode's own."""
    gold = "UPDATE `Cup \"A\" / 2` SET Goals = 4 WHERE Goals = '3'"
    task = load(tmp_path, row(type=["UPDATE"], label=[gold]))[0]
    assert task.answer == gold
    assert task.grading == {"mode": "state"}
    assert task.database is not None
    assert task.database.writable
    assert task.prompt.startswith("Change the SQLite database 'Cup-A-2' as asked.")
    nothing = row(type=["DELETE"], label=['DELETE FROM `Cup "A" / 2` WHERE Goals = 99'])
    with pytest.raises(DataError, match="the gold changes nothing"):
        load(tmp_path, nothing)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"label": []}, "field 'label' is a list; it must be a list that is not empty"),
        ({"label": "7"}, "field 'label' is a text"),
        ({"table": {"table_name": "t"}}, "field 'table' must hold table_name and table_info"),
        (
            {"table": {"table_name": "t", "table_info": {"columns": [], "rows": []}}},
            ".*has not one value for each column",
        ),
    ],
)
def test_rows_of_another_layout_are_named(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    """With the line."""
    with pytest.raises(DataError, match=rf"dbbench_dev\.jsonl:1: {says}"):
        load(tmp_path, row(**fields))


@pytest.mark.shared
def test_the_real_file_is_loaded(shared: Path) -> None:
    """57 of 60: the labels of three questions are ``none``."""
    source = Agentbench(shared / "data" / "sql" / "agentbench" / "dbbench_dev.jsonl")
    assert (len(source), len(source.rejected)) == (57, 3)
    assert all(text.endswith("the gold returns no rows") for text in source.rejected)
    tasks: list[Task] = [source[i] for i in range(len(source))]
    assert Counter(task.grading.get("mode", "rows") for task in tasks) == {"state": 40, "rows": 17}
    assert sum(task.answer.startswith("SELECT") for task in tasks) == 3
    assert sum("the gold reads no table" in note for note in source.notes) == 14
