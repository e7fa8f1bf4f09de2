"""Corpora: layouts, ids that are unique and stable, digests, and complaints."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.corpora import CorpusFile, Passages, _passages, load_corpus
from toolenvs.errors import DataError, UsageError
from toolenvs.protocols import Corpus
from toolenvs.types import Passage


def write(path: Path, *rows: Any) -> Path:
    """Write rows as JSON Lines, or as an array if the path ends so."""
    text = json.dumps(list(rows)) if path.suffix == ".json" else "".join(map(_line, rows))
    path.write_text(text, encoding="utf-8")
    return path


def _line(row: Any) -> str:
    return (row if isinstance(row, str) else json.dumps(row)) + "\n"


@pytest.mark.parametrize(
    ("row", "passage"),
    [
        ({"id": "7", "title": "T", "text": "x"}, Passage("7", "T", "x")),
        (
            {"_id": 7, "title": "", "text": "x", "metadata": {"url": "u"}},
            Passage("7", "", "x", "u"),
        ),
        ({"docid": "7", "text": "x", "url": "u"}, Passage("7", "", "x", "u")),
        ({"id": "7", "contents": '"T"\nx\ny'}, Passage("7", "T", "x\ny")),
        ({"id": "7", "contents": '"T" is what\nx'}, Passage("7", "", '"T" is what\nx')),
        ({"id": "7", "contents": "T x"}, Passage("7", "", "T x")),
        ({"title": "T", "text": "x", "idx": 3}, Passage("T", "T", "x")),
        ({"text": "x"}, Passage("0", "", "x")),
        ({"title": "T", "paragraph_text": "x"}, Passage("T", "T", "x")),
        ({"put": "id:doc:doc::7", "fields": {"title": "T", "text": "x"}}, Passage("7", "T", "x")),
    ],
)
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_every_layout_is_read(
    tmp_path: Path, row: dict[str, Any], passage: Passage, name: str
) -> None:
    """One passage a row, in JSON Lines and as an array."""
    corpus = CorpusFile(write(tmp_path / name, row))
    assert list(corpus) == [passage]
    assert isinstance(corpus, Corpus)


def test_ids_are_unique_and_stay(tmp_path: Path) -> None:
    """The same passage twice is kept once; another of the same id gets one of its own."""
    rows = [{"id": name, "text": text} for name, text in ("ax", "ay", "bx", "ax", "az", "ay")]
    for corpus in (
        CorpusFile(write(tmp_path / "rows.jsonl", *rows)),
        Passages(Passage(row["id"], "", row["text"]) for row in rows),
    ):
        found = [(passage.id, passage.text) for passage in corpus]
        assert found == [("a", "x"), ("a #2", "y"), ("b", "x"), ("a #3", "z")]
        assert len(corpus) == 4
        assert list(corpus) == list(corpus) == list(pickle.loads(pickle.dumps(corpus)))


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "a #2", "a #2 #2", "a #3"]), st.sampled_from("xyz")),
        max_size=9,
    )
)
def test_a_file_and_a_list_have_the_same_ids(
    tmp_path_factory: pytest.TempPathFactory, pairs: Sequence[tuple[str, str]]
) -> None:
    """Ids depend on the passages and their order alone."""
    path = tmp_path_factory.mktemp("corpus") / "rows.jsonl"
    write(path, *({"id": name, "text": text} for name, text in pairs))
    listed = Passages(Passage(name, "", text) for name, text in pairs)
    assert list(CorpusFile(path)) == list(listed)
    assert len(CorpusFile(path)) == len(listed) == len({p.id for p in listed})


def test_an_id_may_stand_there_that_a_row_was_given(tmp_path: Path) -> None:
    """The second ``1`` is called ``1 #2``, so the row of that name is called otherwise."""
    rows = [{"id": name, "text": text} for name, text in (("1", "x"), ("1", "y"), ("1 #2", "z"))]
    found = list(CorpusFile(write(tmp_path / "rows.jsonl", *rows)))
    assert [(p.id, p.text) for p in found] == [("1", "x"), ("1 #2", "y"), ("1 #2 #2", "z")]


def test_one_id_for_all_rows_takes_no_long_time() -> None:
    """A hundred thousand namesakes end within the test's hang guard."""
    found = Passages(Passage("a", "", str(n)) for n in range(100_000))
    assert list(found)[-1].id == "a #100000"


def test_digests_tell_contents_apart(tmp_path: Path) -> None:
    """Equal for equal content under any name, else different; a changed file has another."""
    path = write(tmp_path / "a.jsonl", {"id": "1", "text": "x"})
    corpus, before = CorpusFile(path), CorpusFile(path).digest
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert CorpusFile(packed).digest == before
    assert list(CorpusFile(packed)) == list(corpus)
    write(path, {"id": "1", "text": "x"}, {"id": "2", "text": "yy"})
    assert corpus.digest != before
    assert len(corpus) == 2
    assert Passages([Passage("1", "", "x")]).digest != Passages([Passage("1", "x", "")]).digest


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    """Cut short, or with any byte of it changed, it is a fault of the file or reads as before."""
    rows = [{"id": str(n), "text": "x" * n} for n in range(50)]
    whole = gzip.compress(write(tmp_path / "a.jsonl", *rows).read_bytes())
    path = tmp_path / "b.jsonl.gz"
    told = 0
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            try:
                list(_passages(path))
            except DataError:
                told += 1
    assert told > len(whole)


def test_several_corpora_are_one(tmp_path: Path) -> None:
    """A list is searched as one; what is in it twice counts once."""
    one = CorpusFile(write(tmp_path / "a.jsonl", {"id": "1", "text": "x"}))
    other = Passages([Passage("2", "", "y")], name="mine")
    joined = load_corpus([str(one.path), other, one])
    assert [passage.id for passage in joined] == ["1", "2"]
    assert (joined.name, len(joined)) == ("a+mine", 2)
    assert load_corpus([other]) is other
    wrongs: tuple[object, ...] = ([], 7, None)
    for wrong in wrongs:
        with pytest.raises(UsageError, match="must be a corpus, a path, or a list"):
            load_corpus(wrong)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (['{"id": "1"'], ":2: this is no JSON"),
        ([[1]], ":2: a passage must be an object"),
        ([{"id": "1", "titel": "x"}], ":2: field 'text' is missing; a passage has one of text, "),
        ([{"id": ["1"], "text": "x"}], ":2: field 'id' is a list; it must be a text."),
        ([{"id": "1", "text": True}], ":2: field 'text' is a bool"),
    ],
)
def test_a_row_that_is_no_passage_is_named(tmp_path: Path, rows: list[Any], message: str) -> None:
    """With its file and line."""
    corpus = CorpusFile(write(tmp_path / "rows.jsonl", {"id": "0", "text": "x"}, *rows))
    with pytest.raises(DataError, match=message):
        len(corpus)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """Neither a file nor a folder that holds ``corpus.jsonl``."""
    with pytest.raises(DataError, match="there is no such file"):
        CorpusFile(tmp_path)
    write(tmp_path / "corpus.jsonl", {"_id": "1", "text": "x"})
    assert len(CorpusFile(tmp_path)) == 1
    with pytest.raises(DataError, match="is one array"):
        len(CorpusFile(_object(tmp_path)))


def _object(folder: Path) -> Path:
    path = folder / "object.json"
    path.write_text("{}")
    return path


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "size", "first"),
    [
        ("search/2wiki_corpus.json", 6119, "Teutberga"),
        ("search/hipporag_sample_corpus.json", 3, "Thomas C. Sudhof"),
        ("search/searchr1_corpus.jsonl", 10, "0"),
        ("search/ultrarag_corpus.jsonl", 5, "2066692"),
        ("search/vespa_rag_docs.jsonl", 100, "1"),
        ("formats/searchr1_multihop_corpus.jsonl", 349, "0"),
    ],
)
def test_real_corpora_are_read(shared: Path, file: str, size: int, first: str) -> None:
    """Each with as many different ids as passages."""
    corpus = load_corpus(shared / "data" / file)
    ids = [passage.id for passage in corpus]
    assert (len(corpus), len(ids), len(set(ids)), ids[0]) == (size, size, size, first)
