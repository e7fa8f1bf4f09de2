"""Files of rows: JSON arrays, CSV and Parquet give the same rows in order and by number."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import DataError
from toolenvs.sources._parquet import ParquetRows, read_parquet_rows
from toolenvs.sources._rowfiles import CsvRows, JsonArray, JsonLines, RowFile

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
objects = st.dictionaries(texts, st.one_of(texts, st.integers(), st.lists(texts)), max_size=4)


def read_twice(file: RowFile) -> list[dict[str, Any]]:
    """All rows; each is read again by its number, last first, and must be the same."""
    rows = list(file)
    for row in reversed(rows):
        again = file[row.number]
        assert again == row
    return [row.fields for row in rows]


@given(rows=st.lists(objects, max_size=6), indent=st.sampled_from([None, 1]), bom=st.booleans())
def test_an_array_gives_its_objects(
    rows: list[Any], indent: int | None, bom: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever they hold, on one line or on many, with a byte order mark or without."""
    path = tmp_path_factory.mktemp("array") / "rows.json"
    text = json.dumps(rows, indent=indent, ensure_ascii=False)
    path.write_text(("\ufeff" if bom else "") + text, encoding="utf-8", newline="")
    assert read_twice(JsonArray(path)) == rows


@given(rows=st.lists(objects, min_size=1, max_size=6))
def test_lines_give_their_objects(
    rows: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same for one object a line."""
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_twice(JsonLines(path)) == rows


@given(cells=st.lists(st.tuples(texts, texts), max_size=6))
def test_csv_gives_its_cells(
    cells: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cells with commas, quotes and line ends come back as they were."""
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("one", "two"), *cells])
    found = read_twice(CsvRows(path))
    assert found == [{"one": one, "two": two} for one, two in cells]


def test_parquet_gives_its_rows_over_several_groups(tmp_path: Path) -> None:
    """Structs and lists too; a pickled copy reads on."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"n": n, "chat": [{"role": "user", "content": f"q{n}"}]} for n in range(10)]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
    file = ParquetRows(path)
    assert read_twice(file) == rows
    assert pickle.loads(pickle.dumps(file))[7].fields == rows[7]
    assert [row.place for row in read_parquet_rows(path)][9] == f"{path}[9]"


@pytest.mark.parametrize(
    ("make", "text", "says"),
    [
        (JsonArray, '{"a": 1}', "rows:1: the file is no JSON array of objects: it is no array"),
        (JsonArray, '[\n{"a": 1},\n2]', "rows:3: .*an element is a number, not an object"),
        (JsonArray, '[\n{"a": 1}\n{"a": 2}]', "rows:3: .*',' or '\\]' is missing"),
        (JsonArray, '[{"a": 1},', "rows:1: .*Expecting value"),
        (JsonArray, '[{"a": 1}] x', "something follows the array"),
        (JsonArray, "", "it is no array"),
        (JsonArray, "[" + '{"a":' * 100_000, "nested too deeply|Expecting value"),
        (CsvRows, "a,b\n1,2\n3\n", "rows:3: the row has 1 fields; the head has 2"),
        (CsvRows, 'a,b\n"1,2\n', "rows:2: no CSV"),
        (ParquetRows, "PAR1", "the Parquet file cannot be read"),
    ],
)
def test_broken_files_are_named_with_their_line(
    tmp_path: Path, make: Callable[[Path], RowFile], text: str, says: str
) -> None:
    """The message tells where and what."""
    if make is ParquetRows:
        pytest.importorskip("pyarrow")
    path = tmp_path / "rows"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        list(make(path))


def test_a_file_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """It is not read as something else."""
    path = tmp_path / "rows.json"
    path.write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(DataError, match=r"rows\.json: the file is no UTF-8"):
        list(JsonArray(path))
