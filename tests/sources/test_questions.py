"""Sources of questions about a corpus: layouts, ids, support, gold calls, and what is rejected."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolenvs import sources
from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.sources._questionsource import QuestionSource
from toolenvs.tasks import load_tasks
from toolenvs.types import Task

TITLES = ("Lyon", "Rhone", "Oslo")
SENTENCES = (["Lyon is a town.", " It lies on the Rhone."], ["The Rhone is a river."], ["Oslo."])
TEXTS = ("Lyon is a town. It lies on the Rhone.", "The Rhone is a river.", "Oslo.")
FACTS = (["Lyon", 1], ["Rhone", 0])
PLAIN = {"question": "Which river?", "answer": "Rhone"}
OFFICIAL = {
    **PLAIN,
    "_id": "q1",
    "supporting_facts": FACTS,
    "context": list(zip(TITLES, SENTENCES, strict=True)),
    "type": "bridge",
    "level": "hard",
}
HUGGING_FACE = {
    **OFFICIAL,
    "supporting_facts": {"title": ["Lyon", "Rhone"], "sent_id": [1, 0]},
    "context": {"title": TITLES, "sentences": SENTENCES},
}
FLASHRAG = {
    "id": "q1",
    "question": "Which river?",
    "golden_answers": ["Rhone"],
    "metadata": {
        "type": "bridge",
        "level": "hard",
        "supporting_facts": HUGGING_FACE["supporting_facts"],
        "context": {"title": TITLES, "content": SENTENCES},
    },
}
IN_TEXTS = {**OFFICIAL, "context": json.dumps(OFFICIAL["context"])}
IN_TEXTS["supporting_facts"] = json.dumps(FACTS)
FLAGGED = {
    **PLAIN,
    "id": "q1",
    "type": "bridge",
    "level": "hard",
    "paragraphs": [
        {"title": title, "paragraph_text": text, "is_supporting": title != "Oslo"}
        for title, text in zip(TITLES, TEXTS, strict=True)
    ],
}


def write(path: Path, rows: Sequence[Any]) -> Path:
    """Write rows as the file's ending says."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows), indent=1))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(location: object, name: str = "hotpotqa") -> QuestionSource:
    """The source of that name."""
    source = sources.make(name, location=str(location))
    assert isinstance(source, QuestionSource)
    return source


def tasks(source: QuestionSource) -> list[Task]:
    """All tasks of a source."""
    return [source[row] for row in range(len(source))]


@pytest.mark.parametrize("row", [OFFICIAL, HUGGING_FACE, FLASHRAG, IN_TEXTS, FLAGGED])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_paragraphs_are_the_corpus(tmp_path: Path, row: dict[str, Any], name: str) -> None:
    """In every layout: titles are ids, the facts' paragraphs are what the answer needs."""
    source = load(write(tmp_path / name, [row]))
    task = source[0]
    assert (task.id, task.prompt, task.answer) == ("q1", "Which river?", "Rhone")
    assert task.family == "search"
    assert task.grading == {"supporting": ["Lyon", "Rhone"]}
    assert task.data == {"type": "bridge", "level": "hard"}
    assert source.corpus is not None
    assert [(p.id, p.title, p.text) for p in source.corpus] == list(
        zip(TITLES, TITLES, TEXTS, strict=True)
    )
    assert source.resources == {"index": {"corpus": source.corpus}}


def test_parquet_is_read_alike(tmp_path: Path) -> None:
    """Structs and lists of Arrow are those of JSON."""
    of_json, of_parquet = (
        load(write(tmp_path / name, [HUGGING_FACE])) for name in ("a.jsonl", "a.parquet")
    )
    assert tasks(of_json) == tasks(of_parquet)
    assert of_json.corpus is not None
    assert of_parquet.corpus is not None
    assert list(of_json.corpus) == list(of_parquet.corpus)
    assert of_json.corpus.digest == of_parquet.corpus.digest


def test_the_gold_calls_search_open_and_cite(tmp_path: Path) -> None:
    """In this order; the submission cites what the answer needs."""
    calls = load(write(tmp_path / "a.jsonl", [OFFICIAL]))[0].gold_calls
    assert [(call["name"], dict(call["arguments"])) for call in calls] == [
        ("search", {"query": "Which river?"}),
        ("open_page", {"id": "Lyon"}),
        ("open_page", {"id": "Rhone"}),
        ("submit", {"answer": "Rhone", "citations": ["Lyon", "Rhone"]}),
    ]


def test_paragraphs_of_one_title_are_told_apart(tmp_path: Path) -> None:
    """By a number, in the order of the file; equal ones are one."""
    rows = [
        {
            **FLAGGED,
            "id": f"q{n}",
            "paragraphs": [{"title": "Lyon", "text": text, "is_supporting": True}],
        }
        for n, text in enumerate("xyxz")
    ]
    source = load(write(tmp_path / "a.jsonl", rows), "musique")
    found = [task.grading["supporting"] for task in tasks(source)]
    assert found == [["Lyon"], ["Lyon #2"], ["Lyon"], ["Lyon #3"]]
    assert source.corpus is not None
    assert [(p.id, p.text) for p in source.corpus] == [
        ("Lyon", "x"),
        ("Lyon #2", "y"),
        ("Lyon #3", "z"),
    ]
    assert len(source.corpus) == 3
    copied = pickle.loads(pickle.dumps(source))
    assert tasks(copied) == tasks(source)
    assert copied.corpus.digest == source.corpus.digest
    assert list(copied.corpus) == list(source.corpus)


@pytest.mark.parametrize(
    ("row", "golds"),
    [
        ({"answer": ["a1", "b", "a1"]}, ["a1", "b"]),
        ({"golden_answers": ["a1", "b"]}, ["a1", "b"]),
        ({"reward_model": {"ground_truth": {"target": ["a1", "b"]}}}, ["a1", "b"]),
        ({"reward_model": {"ground_truth": "a1"}}, ["a1"]),
        ({"answer": {"value": "a1", "aliases": ["C++"], "normalized_value": "c"}}, ["a1", "C++"]),
        ({"answer": "a1", "answer_aliases": ["b", ""]}, ["a1", "b"]),
        ({"answer": ["", "---", "a1"]}, ["a1"]),
        ({"answer": 1990}, ["1990"]),
        ({"answer": [2.50, 7]}, ["2.5", "7"]),
        ({"answer": " a1 "}, ["a1"]),
    ],
)
def test_answers_and_aliases(tmp_path: Path, row: dict[str, Any], golds: list[str]) -> None:
    """The first that can be graded is the answer, each counts once, those that cannot are gone."""
    task = load(write(tmp_path / "a.jsonl", [{"id": "q", "question": "?x", **row}]), "nq")[0]
    assert [task.answer, *task.grading.get("aliases", [])] == golds


def test_triviaqa_in_its_own_layout(tmp_path: Path) -> None:
    """One object over many lines, or in one; symbols are kept, normalised aliases not taken."""
    row = {
        "Question": "Which language?",
        "QuestionId": "tc_1",
        "Answer": {"Value": "C++", "Aliases": ["C++", "C Plus Plus"], "NormalizedAliases": ["c"]},
    }
    for indent in (None, 2):
        path = tmp_path / f"{indent}.json"
        rows = [row, {**row, "QuestionId": "tc_2"}, {**row, "QuestionId": "tc_3"}]
        path.write_text(json.dumps({"Version": 1.0, "Data": rows}, indent=indent))
        source = load(path, "triviaqa")
        assert source.ids == ["tc_1", "tc_2", "tc_3"]
        assert source[2].answer == "C++"
        assert source[2].grading == {"aliases": ["C Plus Plus"]}
    path.write_text('{\n"Data": 1}')
    with pytest.raises(DataError, match="no JSON object with an array 'Data'"):
        load(path, "triviaqa")


def test_a_prompt_of_search_r1_is_its_question(tmp_path: Path) -> None:
    """The prompt tells of another format; ids are unique over the joined data sets."""
    rows = [
        {
            "id": "train_0",
            "data_source": data_set,
            "prompt": [
                {"role": "user", "content": f"Answer the given question. You ... Question: {q}?\n"}
            ],
            "reward_model": {"style": "rule", "ground_truth": {"target": ["a", "b"]}},
        }
        for data_set, q in (("nq", "who"), ("hotpotqa", "where"))
    ]
    source = load(write(tmp_path / "train.jsonl", rows), "searchr1")
    assert [(task.id, task.prompt) for task in tasks(source)] == [
        ("nq-train_0", "who?"),
        ("hotpotqa-train_0", "where?"),
    ]
    assert source[0].data == {"data_source": "nq"}


@pytest.mark.parametrize(
    ("given", "task_id"),
    [
        ({"id": "5a7613"}, "5a7613"),
        ({"_id": "2hop__1"}, "2hop__1"),
        ({"id": "test_0"}, "nq-test_0"),
        ({"id": 3}, "nq-open-dev-3"),
        ({"id": "3"}, "nq-open-dev-3"),
        ({}, "nq-open-dev-0"),
    ],
)
def test_ids_of_rows(tmp_path: Path, given: dict[str, Any], task_id: str) -> None:
    """A row's own id stays; one that numbers the rows of a file says of which."""
    assert load(write(tmp_path / "nq_open_dev.jsonl", [{**PLAIN, **given}]), "nq").ids == [task_id]


def test_what_cannot_be_graded_is_reported(tmp_path: Path) -> None:
    """With its line, and it is no task."""
    rows = [
        {**OFFICIAL, "_id": "good"},
        {**OFFICIAL, "_id": "1", "answer": "---"},
        {**OFFICIAL, "_id": "2", "answer": ""},
        {"_id": "3", "question": "Which?"},
        {**FLAGGED, "id": "4", "answerable": False},
        {**OFFICIAL, "_id": "5", "supporting_facts": [["Bergen", 0]]},
        {**OFFICIAL, "_id": "6", "question": " "},
    ]
    source = load(write(tmp_path / "a.jsonl", rows))
    assert source.ids == ["good"]
    assert [why.removeprefix(f"{tmp_path}/") for why in source.rejected] == [
        "a.jsonl:2: the gold answer '---' is not gradable",
        "a.jsonl:3: the gold answer is empty",
        "a.jsonl:4: the row has none of golden_answers, answers, answer, Answer, reward_model; "
        "it has _id, question",
        "a.jsonl:5: the data set says that its documents do not answer it",
        "a.jsonl:6: the document 'Bergen' that it needs is not there",
        "a.jsonl:7: the prompt is empty",
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "x"}, "a.jsonl:1: field 'question' is missing"),
        ({"question": 7, "answer": "x"}, "a.jsonl:1: field 'question' is a number"),
        ({**PLAIN, "answer": [None]}, "a.jsonl:1: field 'answer' holds null; an answer is a text"),
        (
            {**PLAIN, "paragraphs": ["x"]},
            "field 'paragraphs' holds a text ('x'); it must be a list of obj",
        ),
        (
            {**PLAIN, "context": [["x"]]},
            "field 'context' holds a list (['x']); it must be a list of pairs",
        ),
        ({**PLAIN, "context": "[1"}, "a text that should be JSON is none"),
        (
            {**PLAIN, "supporting_facts": [7]},
            "field 'supporting_facts' holds a number (7); it must be a list",
        ),
    ],
)
def test_a_row_of_another_layout_is_an_error(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    """It says where and what."""
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / "a.jsonl", [row]))
    assert message in str(caught.value)


def test_prose_in_context_is_no_paragraph(tmp_path: Path) -> None:
    """Other data sets call a text so."""
    source = load(write(tmp_path / "a.jsonl", [{**PLAIN, "context": "Lyon lies on it."}]), "nq")
    assert source.corpus is None
    assert source.resources == {}
    assert [call["name"] for call in source[0].gold_calls] == ["search", "submit"]


def corpus_rows(numbered: bool) -> list[dict[str, str]]:
    """The paragraphs as a corpus, with ids of their own or without."""
    rows = [{"title": t, "text": x} for t, x in zip(TITLES, TEXTS, strict=True)]
    return [{"id": f"d{n}", **row} for n, row in enumerate(rows)] if numbered else rows


def test_another_corpus_may_be_given(tmp_path: Path) -> None:
    """By an option, or by lying beside the file; documents are found by title and text."""
    numbered = write(tmp_path / "wiki.jsonl", corpus_rows(numbered=True))
    source = load(f"{write(tmp_path / 'a.jsonl', [OFFICIAL])},corpus={numbered}")
    assert source[0].grading == {"supporting": ["d0", "d1"]}
    assert source.corpus is not None
    assert len(source.corpus) == 3
    write(tmp_path / "a_corpus.json", corpus_rows(numbered=False))
    assert load(tmp_path / "a.jsonl")[0].grading == {"supporting": ["Lyon", "Rhone"]}
    titled = {**PLAIN, "id": "q", "supporting_titles": ["Rhone"]}
    source = load(f"{write(tmp_path / 'b.jsonl', [titled])},corpus={numbered}")
    assert source[0].grading == {"supporting": ["d1"]}


def test_of_equal_titles_the_same_text_is_meant(tmp_path: Path) -> None:
    """And where none has it, the document is not there."""
    rows = [{"id": "other", "title": "Lyon", "text": "Lyon, Ohio."}, *corpus_rows(numbered=True)]
    wiki = write(tmp_path / "wiki.jsonl", rows)
    path = write(tmp_path / "a.jsonl", [OFFICIAL])
    assert load(f"{path},corpus={wiki}")[0].grading == {"supporting": ["d0", "d1"]}
    rows[1] = {**rows[1], "text": "changed"}
    write(wiki, rows)
    with pytest.raises(DataError, match="the document 'Lyon' that it needs is not there"):
        load(f"{path},corpus={wiki}")


def test_locations_are_checked(tmp_path: Path) -> None:
    """Unknown options, missing files, and files of another kind."""
    with pytest.raises(UnknownNameError, match="Did you mean 'corpus'"):
        load(f"{write(tmp_path / 'a.jsonl', [OFFICIAL])},corpsu=x")
    with pytest.raises(DataError, match="there is no such file"):
        load(tmp_path / "b.jsonl")
    with pytest.raises(UsageError, match="write hotpotqa:PATH"):
        load("")
    with pytest.raises(DataError, match="is already that of line 1"):
        load(write(tmp_path / "c.jsonl", [OFFICIAL, OFFICIAL]))


def test_2wiki_is_a_name_of_twowiki(tmp_path: Path) -> None:
    """No module can be called so; specs and sums of specs can."""
    path = write(tmp_path / "a.jsonl", [OFFICIAL])
    other = write(tmp_path / "b.jsonl", [{**OFFICIAL, "_id": "q2"}])
    assert {"2wiki", "twowiki"} <= set(sources.names())
    source = load_tasks(f"hotpotqa:{path}+2wiki:{other}", family="search")
    assert [source[row].id for row in range(len(source))] == ["q1", "q2"]


REAL = [
    ("hotpotqa", "search/hotpot_distractor_hf_66.jsonl", 66, 0, 660),
    ("hotpotqa", "search/hotpot_dev_simplified.json", 7371, 0, 0),
    ("hotpotqa", "search/ircot_hotpotqa.jsonl", 29, 0, 145),
    ("2wiki", "search/ircot_2wikimultihopqa.jsonl", 20, 0, 100),
    ("musique", "search/ircot_musique.jsonl", 20, 0, 104),
    ("musique", "search/hipporag_sample.json", 1, 0, 3),
    ("nq", "search/nq_open_dev.jsonl", 3608, 2, 0),
    ("nq", "search/flashrag_nq_test.jsonl", 17, 0, 0),
    ("nq", "search/ultrarag_nq10.jsonl", 10, 0, 0),
    ("triviaqa", "search/triviaqa_sample.json", 1, 0, 0),
    ("searchr1", "formats/searchr1_multihop.parquet", 69, 0, 349),
]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "file", "size", "rejected", "passages"), REAL)
def test_real_files_are_read(
    shared: Path, name: str, file: str, size: int, rejected: int, passages: int
) -> None:
    """Every row is a task or reported, and every document that is needed is in the corpus."""
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    source = load(shared / "data" / file, name)
    assert (len(source), len(source.rejected)) == (size, rejected)
    there = {passage.id for passage in source.corpus or ()}
    assert len(there) == passages
    for task in tasks(source):
        assert set(task.grading.get("supporting", [])) <= there
