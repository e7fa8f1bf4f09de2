"""Describing a database: everything that a query needs, within a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.database.ground import Ground
from toolenvs.database import description

SETUP = """
    CREATE TABLE "order"(id INTEGER PRIMARY KEY, "the day" DATE NOT NULL, note varchar(20));
    CREATE TABLE item(
        number INT, place INT, made INT GENERATED ALWAYS AS (number * 2),
        "order" REFERENCES "order",
        other_number INT, other_place INT, plain,
        PRIMARY KEY (place, number),
        FOREIGN KEY (other_number, other_place) REFERENCES item(number, place)
    );
    CREATE VIEW late AS SELECT id, "the day" FROM "order";
    CREATE VIEW broken AS SELECT * FROM gone;
    INSERT INTO "order" VALUES (1, '2024-01-01', NULL), (2, '2024-01-02', 'x'), (3, 'd', x'00ff');
    INSERT INTO item(number, place, plain) VALUES (1, 2, '{long}');
"""


@pytest.fixture
def shop(tmp_path: Path) -> Ground:
    """Tables with keys of every kind, a view, and a view of what is gone."""
    return Ground(tmp_path, SETUP.replace("{long}", "y" * 200))


def told(shop: Ground, **fields: Any) -> dict[str, dict[str, Any]]:
    """What is told of each table, by name."""
    return {table["name"]: table for table in shop.ask("schema", **fields)["tables"]}


def test_tables_come_in_the_order_of_their_creation(shop: Ground) -> None:
    """Views among them; SQLite's own tables are left out."""
    assert list(told(shop)) == ["order", "item", "late", "broken"]
    assert shop.ask("schema")["cut"] is False


def test_columns_are_told_as_they_were_declared(shop: Ground) -> None:
    """Type, NOT NULL, place in the primary key; generated columns too."""
    tables = told(shop)
    assert tables["order"]["columns"] == [
        {"name": "id", "type": "INTEGER", "primary_key": 1},
        {"name": "the day", "type": "DATE", "not_null": True},
        {"name": "note", "type": "varchar(20)"},
    ]
    columns = tables["item"]["columns"]
    keys = {c["name"]: c["primary_key"] for c in columns if "primary_key" in c}
    assert keys == {"number": 2, "place": 1}
    names = [column["name"] for column in columns]
    assert names == ["number", "place", "made", "order", "other_number", "other_place", "plain"]
    assert [column["name"] for column in tables["late"]["columns"]] == ["id", "the day"]


def test_foreign_keys_are_told_whole(shop: Ground) -> None:
    """In the order of their declaration, of several columns, to a primary key that is not named."""
    assert told(shop)["item"]["foreign_keys"] == [
        {"columns": ["order"], "table": "order", "to": []},
        {
            "columns": ["other_number", "other_place"],
            "table": "item",
            "to": ["number", "place"],
        },
    ]


def test_rows_are_counted_and_sampled(shop: Ground) -> None:
    """Of tables only; long texts and blobs are shortened."""
    tables = told(shop, sample_rows=2)
    assert tables["order"]["row_count"] == 3
    assert tables["order"]["sample"] == [[1, "2024-01-01", None], [2, "2024-01-02", "x"]]
    assert tables["item"]["sample"][0][-1] == "y" * 80 + "…"
    assert told(shop, sample_rows=3)["order"]["sample"][2][2] == "<2 bytes>"
    assert "row_count" not in tables["late"]
    assert "sample" not in told(shop, sample_rows=0)["order"]


def test_what_cannot_be_read_says_why(shop: Ground) -> None:
    """A view of a table that is gone does not spoil the rest."""
    broken = told(shop)["broken"]
    assert broken["columns"] == []
    assert "gone" in broken["problem"]


def test_counting_stops_where_it_is_no_longer_cheap(
    shop: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same on each machine: by number, not by time."""
    monkeypatch.setattr(description, "COUNTED", 2)
    table = told(shop)["order"]
    assert (table["row_count"], table["more_rows"]) == (2, True)
    assert "more_rows" not in told(shop)["item"]


def test_some_tables_can_be_asked_for(shop: Ground) -> None:
    """By any case, quoted or not, in the order of asking."""
    assert list(told(shop, tables=["ITEM", '"order"', "[late]"])) == ["item", "order", "late"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("items", "There is no table 'items'. Did you mean item?"),
        ("ordre", "There is no table 'ordre'. Did you mean order?"),
        ("x" * 5000, "There is no table"),
        ("a\nb\ud800", "There is no table"),
    ],
)
def test_an_unknown_table_is_an_error_with_the_nearest(
    shop: Ground, name: str, message: str
) -> None:
    """The agent's fault, of the kind ``bad_arguments``."""
    error = shop.ask("schema", tables=[name])["error"]
    assert error["kind"] == "bad_arguments"
    assert error["message"].startswith(message)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(max_bytes=st.integers(0, 4000), sample_rows=st.integers(0, 4))
def test_a_description_keeps_within_its_limit(
    shop: Ground, max_bytes: int, sample_rows: int
) -> None:
    """For all limits: no larger, every table is told or named, and ``cut`` says so."""
    answer = shop.ask("schema", max_bytes=max_bytes, sample_rows=sample_rows)
    assert len(json.dumps(answer, ensure_ascii=False).encode()) <= max(max_bytes, 300)
    named = [table["name"] for table in answer["tables"]] + answer["left_out"]
    assert sorted(named) == ["broken", "item", "late", "order"]
    assert answer["left_out_count"] == len(answer["left_out"])
    assert answer["cut"] or not answer["left_out"]
    assert answer["cut"] or "foreign_keys" in answer["tables"][1]


def test_a_table_of_many_columns_is_told_in_part(tmp_path: Path) -> None:
    """As many as there is room for, and how many are missing."""
    columns = ", ".join(f"column_{number}" for number in range(500))
    ground = Ground(tmp_path, f"CREATE TABLE wide({columns}); CREATE TABLE next(a);")
    answer = ground.ask("schema", max_bytes=2000)
    (wide,) = answer["tables"]
    assert wide["columns"][0]["name"] == "column_0"
    assert len(wide["columns"]) + wide["columns_left_out"] == 500
    assert answer["left_out"] == ["next"]
    assert answer["cut"]


def test_names_of_any_characters_are_told(tmp_path: Path) -> None:
    """Quotes, line ends, semicolons and what is no UTF-8 do no harm."""
    setup = """
        CREATE TABLE "a""b'c;d"("x
        y" INT, "ä" TEXT); INSERT INTO "a""b'c;d" VALUES (1, 'z');
    """
    (table,) = Ground(tmp_path, setup).ask("schema", sample_rows=1)["tables"]
    assert table["name"] == "a\"b'c;d"
    assert (table["row_count"], table["sample"]) == (1, [[1, "z"]])


def test_an_empty_database_has_no_tables(tmp_path: Path) -> None:
    """That is no error."""
    assert Ground(tmp_path, "").ask("schema")["tables"] == []
