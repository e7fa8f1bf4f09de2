"""BEIR: queries whose relevant documents are known; the answer is a list of documents.

Layout: Thakur et al. 2021, arXiv:2104.08663; https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolenvs.corpora import CorpusFile, load_corpus
from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.protocols import Corpus
from toolenvs.sources._gold import why_unusable
from toolenvs.sources._jsonlines import Row, check_file
from toolenvs.sources._location import split_location
from toolenvs.sources._questionsource import open_rows
from toolenvs.sources._rowfiles import RowFile
from toolenvs.sources._rowsource import path_of
from toolenvs.sources._searchtask import search_task
from toolenvs.types import Task

_PROMPT = (
    "{query}\n\nWhich documents are relevant to this? Submit the ids of all of them, separated by "
    "spaces, and cite them."
)


class _Query(NamedTuple):
    """A query that can be played: its id, its row, and its relevant documents, the best first."""

    id: str
    number: int
    relevant: tuple[str, ...]


class Beir:
    """The judged queries of a folder such as ``beir:data/scifact`` or ``beir:data/fiqa,split=dev``.

    The folder holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``; or else the
    location is a file of queries that names the relevant documents itself
    (``relevant_document_ids``), with ``,corpus=FILE``: the layout of Vespa's samples.

    A task asks for the ids of the relevant documents, those with a relevance above 0. The answer is
    the set of them: ``answer_em`` wants all and no other, ``answer_f1`` is the F1 of the two sets,
    ``retrieval_recall`` the share that was found.

    Args:
        location: the folder, or the file.
        family: taken by every source; these tasks are always ``search``.

    Attributes:
        ids: ``FOLDER-QUERY_ID`` of each task, in the order of the queries.
        rejected: one ``path:line: why`` for each judged query that has no relevant document, or one
            that is not in the corpus or whose id has spaces, and one for each that has no text.
        corpus: the documents.
        resources: the same as an option of the runtime.

    Raises:
        DataError: A file is missing, a row cannot be read, or no query is usable.
        UsageError: An option is not one of these, or a file of queries comes without a corpus.
    """

    name = "beir"

    def __init__(self, location: str | Path, *, family: str = "search") -> None:
        text, options = split_location(str(location), ("split", "corpus"), source="beir")
        self.path = path_of(text, source="beir")
        judged: Mapping[str, Sequence[str]] | None = None
        if self.path.is_dir():
            judged = _read_judged(_qrels(self.path, options.get("split", "test")))
            queries, self._stem = self.path / "queries.jsonl", self.path.resolve().name
            corpus: object = options.get("corpus") or CorpusFile(self.path, name=self._stem)
        else:
            queries, self._stem = self.path, self.path.name.split(".")[0]
            corpus = options.get("corpus")
        if not corpus:
            raise UsageError(f"beir: {self.path} is no folder; add ,corpus=FILE for its documents.")
        self.corpus: Corpus = load_corpus(corpus)
        self.resources: Mapping[str, Mapping[str, Any]] = {"index": {"corpus": self.corpus}}
        self._rows: RowFile = open_rows(queries)
        self.rejected: Sequence[str] = []
        self._queries: Sequence[_Query] = []
        self._load(judged)
        self.ids: Sequence[str] = [query.id for query in self._queries]

    def __len__(self) -> int:
        return len(self._queries)

    def __getitem__(self, index: int) -> Task:
        query = self._queries[operator.index(index)]
        return self._task(self._rows[query.number], query)

    def _load(self, judged: Mapping[str, Sequence[str]] | None) -> None:
        if judged is None:
            judged = {_query_id(row): _relevant(row) for row in self._rows}
        wanted = {each for relevant in judged.values() for each in relevant}
        there = {passage.id for passage in self.corpus if passage.id in wanted}
        rejected: list[str] = []
        queries: dict[str, _Query] = {}
        for row in self._rows:
            relevant = judged.get(_query_id(row))
            if relevant is None:
                continue
            query = _Query(f"{self._stem}-{_query_id(row)}", row.number, tuple(relevant))
            if query.id in queries:
                raise DataError(f"{row.place}: a query before it has the id {_query_id(row)!r}.")
            if why := _why_none(query, there) or why_unusable(self._task(row, query)):
                rejected.append(f"{row.place}: {why}")
            else:
                queries[query.id] = query
        if not queries:
            first = f" The first of {len(rejected)}: {rejected[0]}" if rejected else ""
            raise DataError(f"{self.path}: no query of it is usable.{first}")
        self.rejected, self._queries = rejected, list(queries.values())

    def _task(self, row: Row, query: _Query) -> Task:
        text = _text(row)
        return search_task(
            task_id=query.id,
            prompt=_PROMPT.format(query=text) if text else "",
            query=text,
            golds=[" ".join(query.relevant)],
            supporting=query.relevant,
            grading={"mode": "ids"},
            data={"query": text},
        )


def _query_id(row: Row) -> str:
    name = next((name for name in ("_id", "id", "query_id") if name in row.fields), "_id")
    row.require(name)
    return row.text(name)


def _text(row: Row) -> str:
    name = next((name for name in ("text", "query_text", "query") if name in row.fields), "text")
    row.require(name)
    return row.text(name).strip()


def _relevant(row: Row) -> Sequence[str]:
    row.require("relevant_document_ids")
    ids = row.fields["relevant_document_ids"]
    if not isinstance(ids, list):
        raise row.wrong_type("relevant_document_ids", "a list of ids")
    return list(dict.fromkeys(map(str, ids)))


def _why_none(query: _Query, there: set[str]) -> str:
    if not query.relevant:
        return "no document is judged relevant"
    for each in query.relevant:
        if each not in there:
            return f"the relevant document {each!r} is not in the corpus"
        if re.search(r"[\s;]|\A,|,\Z", each):
            return f"the id {each!r} cannot stand in a list of ids"
    return ""


def _qrels(folder: Path, split: str) -> Path:
    path = folder / "qrels" / f"{split}.tsv"
    splits = sorted(each.stem for each in folder.glob("qrels/*.tsv"))
    if splits and split not in splits:
        raise UnknownNameError(f"a split of {folder}", split, splits)
    check_file(path)
    return path


def _read_judged(path: Path) -> dict[str, list[str]]:
    """The relevant documents of each judged query, the most relevant first."""
    judged: dict[str, dict[str, float]] = {}
    for query, document, score in _judgements(path):
        judged.setdefault(query, {})[document] = score
    return {
        query: [each for each in sorted(scores, key=lambda d: -scores[d]) if scores[each] > 0]
        for query, scores in judged.items()
    }


def _judgements(path: Path) -> Iterator[tuple[str, str, float]]:
    """Lines of query, document, relevance; also TREC's, which have a column of zeros between."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                cells = line.rstrip("\r\n").split("\t")
                cells = cells[:1] + cells[2:] if len(cells) == 4 else cells
                if not line.strip() or (number == 1 and cells[0] in ("query-id", "query_id")):
                    continue
                if len(cells) != 3 or not re.fullmatch(r"-?\d+(?:\.\d+)?", cells[2]):
                    raise DataError(
                        f"{path}:{number}: a line is a query's id, a document's id and a "
                        "relevance, separated by tabs."
                    )
                yield cells[0], cells[1], float(cells[2])
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the file cannot be read: {error}.") from error
