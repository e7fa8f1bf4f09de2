"""Parquet files as rows: what verl, SkyRL and Search-R1 train on. Needs pyarrow.

``read_parquet_rows`` is the way in for other sources: ``row.fields["prompt"]``, ``row.place``.
"""

from __future__ import annotations

import importlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolenvs.errors import DataError, UsageError
from toolenvs.sources._jsonlines import Row, check_file
from toolenvs.sources._rowfiles import stem_of

_BATCH = 256


def read_parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file one by one; structs are dicts, lists are lists.

    Raises:
        UsageError: pyarrow is not installed.
        DataError: The file is missing or no Parquet file.
    """
    yield from ParquetRows(path)


class ParquetRows:
    """The rows of a Parquet file, whose place is ``path[17]``.

    One row group is kept in memory, in Arrow's compact form: the one that a row was last read from.

    Args:
        path: the file.

    Raises:
        UsageError: pyarrow is not installed.
        DataError: When it is read: the file is missing or no Parquet file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = array("q")
        self._kept: tuple[int, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def __iter__(self) -> Iterator[Row]:
        file = self._opened()
        sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        self._starts = array("q", (sum(sizes[:n]) for n in range(len(sizes))))
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                for fields in batch.to_pylist():
                    yield self._row(number, fields)
                    number += 1
        except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
            raise self._unreadable(error) from error

    def __getitem__(self, number: int) -> Row:
        group = bisect_right(self._starts, number) - 1
        if self._kept is None or self._kept[0] != group:
            try:
                self._kept = group, self._opened().read_row_group(group)
            except (OSError, ValueError) as error:
                raise self._unreadable(error) from error
        found = self._kept[1].slice(number - self._starts[group], 1).to_pylist()
        if not found:
            raise self._unreadable("it has fewer rows than before")
        return self._row(number, found[0])

    def _row(self, number: int, fields: dict[str, Any]) -> Row:
        numbers = {
            name: repr(value)
            for name, value in fields.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return Row(fields, numbers, f"{self._path}[{number}]", stem_of(self._path), number)

    def _opened(self) -> Any:
        check_file(self._path)
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError(
                f"{self._path}: Parquet files are read by pyarrow, which is not installed: "
                "pip install pyarrow."
            ) from None
        try:
            return parquet.ParquetFile(self._path)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: object) -> DataError:
        return DataError(f"{self._path}: the Parquet file cannot be read: {error}.")
