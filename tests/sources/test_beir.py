"""BEIR's layout: queries, judgements, corpus; graded as a set of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.grading.qa import QaPolicy, grade
from toolenvs.sources.beir import Beir

CORPUS = [{"_id": name, "title": name, "text": f"text {name}"} for name in ("d1", "d2", "d3")]
QUERIES = [{"_id": f"q{n}", "text": f"query {n}"} for n in range(5)]
QRELS = "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td1\t2\nq1\td3\t0\nq2\td9\t1\nq3\td3\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set."""
    path = tmp_path / "scifact"
    (path / "qrels").mkdir(parents=True)
    lines(path / "corpus.jsonl", CORPUS)
    lines(path / "queries.jsonl", QUERIES)
    (path / "qrels" / "test.tsv").write_text(QRELS)
    (path / "qrels" / "dev.tsv").write_text("q4\td1\t1\n")
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_judged_queries_are_tasks(folder: Path) -> None:
    """The relevant documents are the answer, the best first, and what is to be found and cited."""
    source = Beir(folder)
    assert source.ids == ["scifact-q1"]
    task = source[0]
    assert task.prompt.startswith("query 1\n\nWhich documents are relevant")
    assert task.answer == "d1 d2"
    assert task.grading == {"mode": "ids", "supporting": ["d1", "d2"]}
    assert grade(task.answer, "d2, d1", policy=QaPolicy(**task.grading)).correct
    assert [call["name"] for call in task.gold_calls] == ["search", *["open_page"] * 2, "submit"]
    assert task.gold_calls[0]["arguments"] == {"query": "query 1"}
    assert source.resources["index"]["corpus"] is source.corpus
    assert (source.corpus.name, len(source.corpus)) == ("scifact", 3)
    assert [why.removeprefix(f"{folder}/") for why in source.rejected] == [
        "queries.jsonl:3: the relevant document 'd9' is not in the corpus",
        "queries.jsonl:4: no document is judged relevant",
    ]


def test_another_split(folder: Path) -> None:
    """By an option; an unknown one names those that there are; TREC's four columns are read."""
    assert Beir(f"{folder},split=dev").ids == ["scifact-q4"]
    (folder / "qrels" / "dev.tsv").write_text("q0\t0\td1\t1\n")
    assert Beir(f"{folder},split=dev").ids == ["scifact-q0"]
    with pytest.raises(UnknownNameError, match="Known: dev, test"):
        Beir(f"{folder},split=train")


def test_a_file_of_queries_with_their_documents(tmp_path: Path) -> None:
    """Vespa's layout; it needs to be told its corpus."""
    path = tmp_path / "queries.json"
    rows = [{"query_id": "a", "query_text": "x", "relevant_document_ids": ["d2", "d2", "d1"]}]
    path.write_text(json.dumps(rows))
    lines(tmp_path / "docs.jsonl", CORPUS)
    source = Beir(f"{path},corpus={tmp_path / 'docs.jsonl'}")
    assert (source.ids, source[0].answer) == (["queries-a"], "d2 d1")
    with pytest.raises(UsageError, match="add ,corpus=FILE"):
        Beir(path)


def test_what_is_broken_is_named(folder: Path) -> None:
    """With file and line."""
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1 d1 1\n")
    with pytest.raises(DataError, match=r"test.tsv:2: a line is a query's id, a document's id"):
        Beir(folder)
    (folder / "qrels" / "test.tsv").write_text("q9\td1\t1\n")
    with pytest.raises(DataError, match="no query of it is usable"):
        Beir(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"corpus.jsonl: there is no such file"):
        Beir(folder)


@pytest.mark.shared
def test_real_queries_are_read(shared: Path) -> None:
    """Vespa's sample: twenty queries on a hundred documents."""
    folder = shared / "data" / "search"
    source = Beir(f"{folder}/vespa_rag_queries.json,corpus={folder}/vespa_rag_docs.jsonl")
    assert (len(source), len(source.rejected), len(source.corpus)) == (20, 0, 100)
    assert source[0].grading["supporting"] == ["1", "50", "82"]
