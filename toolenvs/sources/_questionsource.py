"""A file of questions about a corpus as a sequence of tasks."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.corpora import load_corpus
from toolenvs.errors import DataError
from toolenvs.protocols import Corpus
from toolenvs.sources._evidence import Evidence, GivenCorpus, NoCorpus, OwnParagraphs
from toolenvs.sources._jsonlines import Row, check_file, decode
from toolenvs.sources._location import split_location
from toolenvs.sources._parquet import ParquetRows
from toolenvs.sources._questions import ANSWERS, LAYOUT, is_laid_out, read_question
from toolenvs.sources._rowfiles import JsonArray, JsonLines, RowFile, stem_of
from toolenvs.sources._rowsource import RowSource, path_of
from toolenvs.sources._searchtask import search_task
from toolenvs.types import Task

_HEAD = 4096
_SHOWN_FIELDS = 20


class QuestionSource(RowSource):
    """The rows of one file; ``read_question`` tells in which layouts.

    The file is JSON Lines, a JSON array, TriviaQA's JSON object or Parquet, told apart by how it
    begins. The corpus is the one that the location names (``PATH,corpus=FILE``), else the file
    beside it that is called so (``sample_corpus.json`` for ``sample.json``), else the paragraphs
    that came with the questions, else there is none.

    Args:
        name: the source's name.
        location: path of the file, with ``,corpus=FILE`` if need be.
        bare: a question and one answer of one line make the data set's layout.

    Attributes:
        corpus: what is to be searched, None if that is left to the environment
            (``runtimes={"index": {"corpus": ...}}``).
        resources: the same as an option of the runtime.
        rejected: also rows whose data set says that they have no answer, and rows that need a
            document that is not in the corpus.

    Raises:
        DataError: As ``RowSource``; or the corpus cannot be read; or no row has what makes a layout
            (``is_laid_out``), as in a file of GSM8K.
        UsageError: The file is Parquet and pyarrow is not installed.
    """

    def __init__(self, name: str, location: str | Path, *, bare: bool = False) -> None:
        text, options = split_location(str(location), ("corpus",), source=name)
        path = path_of(text, source=name)
        rows = open_rows(path)
        self._whys: dict[str, str] = {}
        self._bare, self._laid_out = bare, False
        self._fields: Sequence[str] = ()
        self._evidence = _evidence(name, path, rows, options.get("corpus", ""))
        super().__init__(name, path, layout=lambda _path: rows)
        if not self._laid_out:
            raise DataError(
                f"{path}: no row has anything of a layout that {name} reads: a list of answers, "
                f"{', '.join(LAYOUT)}. A row has {', '.join(self._fields) or 'no fields'}. Name "
                "the source of this file's data set instead."
            )
        self.corpus: Corpus | None = self._evidence.corpus
        self.resources: Mapping[str, Mapping[str, Any]] = (
            {} if self.corpus is None else {"index": {"corpus": self.corpus}}
        )
        self._whys = {}

    def _task(self, row: Row) -> Task:
        question = read_question(row, source=self.name)
        self._laid_out = self._laid_out or is_laid_out(row, bare=self._bare)
        self._fields = self._fields or list(row.fields)[:_SHOWN_FIELDS]
        supporting, missing = self._evidence.supporting(question, row.number)
        if not question.answerable:
            self._whys[question.id] = "the data set says that its documents do not answer it"
        elif missing:
            self._whys[question.id] = f"the document {missing[0]!r} that it needs is not there"
        elif not question.golds:
            self._whys[question.id] = _without_answer(row)
        return search_task(
            task_id=question.id,
            prompt=question.text,
            golds=question.golds,
            supporting=supporting,
            data=question.data,
        )

    def _why_unusable(self, task: Task) -> str:
        return self._whys.get(task.id, "") or super()._why_unusable(task)


def _without_answer(row: Row) -> str:
    if any(name in row.fields for name in (*ANSWERS, "reward_model")):
        return "the row has no answer"
    there = ", ".join(list(row.fields)[:_SHOWN_FIELDS])
    return f"the row has none of {', '.join(ANSWERS)}, reward_model; it has {there}"


def open_rows(path: Path) -> RowFile:
    """The rows of a file, whichever of the layouts it has.

    Raises:
        DataError: There is no such file, or it cannot be read.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"PAR1"):
        return ParquetRows(path)
    if begin.startswith(b"["):
        return JsonArray(path)
    # Rows of JSON Lines end where the line does; an object over many lines is TriviaQA's.
    first = begin.split(b"\n", 1)[0].rstrip()
    if first == b"{" or b'"Data": [' in head.split(b'"Question"', 1)[0]:
        return DataObject(path)
    return JsonLines(path)


class DataObject:
    """The objects in the array ``Data`` of one JSON object, TriviaQA's layout.

    Args:
        path: the file.

    Raises:
        DataError: When it is read: it is no such object.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends = array("q")  # in bytes: where each row begins and ends

    def __iter__(self) -> Iterator[Row]:
        check_file(self._path)
        try:
            with (
                self._path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                self._ends = _ends_of_rows(content)
                for number in range(len(self._ends) // 2):
                    yield self._row(number, content[slice(*self._ends[2 * number :][:2])])
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{self._path}: the file is no JSON object with an array 'Data': {error}."
            ) from error

    def __getitem__(self, number: int) -> Row:
        start, end = self._ends[2 * number], self._ends[2 * number + 1]
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                return self._row(number, file.read(end - start))
        except OSError as error:
            raise DataError(f"{self._path}: the file cannot be read: {error.strerror}.") from error

    def _row(self, number: int, text: bytes) -> Row:
        place = f"{self._path}[{number}]"
        return Row(*decode(text, place), place, stem_of(self._path), number)


class _Wrapped(msgspec.Struct):
    rows: list[msgspec.Raw] = msgspec.field(name="Data")


def _ends_of_rows(content: mmap.mmap) -> array[int]:
    """Where each object begins and ends; they stand in the order in which they are decoded."""
    ends = array("q")
    at = max(content.find(b'"Data"'), 0)
    for raw in msgspec.json.decode(content, type=_Wrapped).rows:
        row = bytes(raw)
        at = content.find(row, at)
        ends.extend((at, at + len(row)))
        at += len(row)
    return ends


def _evidence(name: str, path: Path, rows: RowFile, given: str) -> Evidence:
    """Where the documents of a file's questions are."""
    beside = [path.with_name(f"{stem_of(path)}_corpus{end}") for end in (".jsonl", ".json")]
    file = path_of(given, source=name) if given else next(filter(Path.is_file, beside), None)
    if file is not None:
        return GivenCorpus(load_corpus(file), (read_question(row, source=name) for row in rows))
    own = OwnParagraphs(stem_of(path), rows, source=name)
    return own if any(read_question(row, source=name).paragraphs for row in rows) else NoCorpus()
