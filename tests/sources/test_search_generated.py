"""The invented world: the same for a seed, questions with one answer, known support."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.corpora import CorpusFile
from toolenvs.data import data_folder
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.grading.qa import QaPolicy, grade
from toolenvs.sources._inventedquestions import QUESTIONS
from toolenvs.sources.builtin import Builtin
from toolenvs.sources.search_generated import SearchGenerated
from toolenvs.types import Task

BUILTIN = "seed=7,n=180"


def rows(source: SearchGenerated | Builtin) -> list[Task]:
    """All tasks."""
    return [source[row] for row in range(len(source))]


def test_a_seed_gives_the_same_tasks_everywhere() -> None:
    """And fewer are the first of more."""
    source = SearchGenerated("seed=3,n=40")
    held = [(t.id, t.prompt, t.answer, t.gold_calls, t.grading, t.data) for t in rows(source)]
    # A change of these digests means that every published seed now gives other tasks.
    assert hashlib.sha256(msgspec.json.encode(held)).hexdigest()[:16] == "f8f7964c61487d60"
    assert source.corpus.digest[:16] == "c0f2617e65b59778"
    assert rows(SearchGenerated("seed=3,n=15")) == rows(source)[:15]
    assert rows(SearchGenerated("seed=4,n=40")) != rows(source)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**63 - 1), st.sampled_from([50, 120, 300]))
def test_every_world_answers_its_questions(seed: int, people: int) -> None:
    """Passages have ids of their own, what a task needs is there, and the last of it says it."""
    source = SearchGenerated(f"seed={seed},n=56,people={people}")
    texts = {passage.id: f"{passage.title}\n{passage.text}" for passage in source.corpus}
    assert len(texts) == len(source.corpus) > 1.5 * people
    assert len({task.prompt for task in rows(source)}) == 56
    for task in rows(source):
        support = [texts[each] for each in task.grading["supporting"]]
        assert grade(task.answer, task.answer, policy=QaPolicy(**task.grading)).correct
        if task.answer not in ("yes", "no"):
            assert any(task.answer in text for text in support)
        assert 1 <= task.data["hops"] <= 3
        assert support[0].partition("\n")[0] in task.prompt


def test_a_chain_leads_from_passage_to_passage() -> None:
    """Each passage of it names the next one, and the answer stands in the last alone."""
    kinds = "author_region+employer_mayor+founder_river+birth_region+seat_population+author_year"
    source = SearchGenerated(f"seed=1,n=60,kinds={kinds}")
    passages = {passage.id: passage for passage in source.corpus}
    for task in rows(source):
        chain = [passages[each] for each in task.grading["supporting"]]
        assert len(chain) == task.data["hops"]
        for here, there in itertools.pairwise(chain):
            assert there.title in here.text
        assert task.answer in chain[-1].text
        assert task.answer not in task.prompt


def test_yes_and_no_are_about_as_frequent() -> None:
    """So neither is a good guess."""
    source = SearchGenerated("n=200,kinds=same_birthplace+same_region")
    share = Counter(task.answer for task in rows(source))["yes"] / 200
    assert 0.4 < share < 0.6


def test_options_are_checked() -> None:
    """Unknown names, values out of range, and more questions than there are."""
    with pytest.raises(UnknownNameError, match="Did you mean 'people'"):
        SearchGenerated("peeple=9")
    with pytest.raises(UnknownNameError, match="a kind of question"):
        SearchGenerated("kinds=major")
    with pytest.raises(UsageError, match="must be a whole number from 50 to 300"):
        SearchGenerated("people=7")
    with pytest.raises(
        UsageError, match="is more than there are different questions of kind 'mayor'"
    ):
        SearchGenerated("n=41,kinds=mayor")
    assert len(SearchGenerated("n=40,kinds=mayor")) == 40


def test_the_built_in_set_is_what_the_source_makes() -> None:
    """Tasks and corpus; task.toml counts them."""
    made = SearchGenerated(BUILTIN)
    assert [*rows(Builtin(family="search")), *rows(Builtin("test", family="search"))] == rows(made)
    folder = data_folder("tasks") / "search"
    assert list(CorpusFile(folder / "corpus.jsonl")) == list(made.corpus)
    described = tomllib.loads((folder / "task.toml").read_text())
    assert BUILTIN in described["provenance"]
    assert described["corpus"] == {"path": "corpus.jsonl", "passages": len(made.corpus)}
    for file in described["files"]:
        assert len((folder / file["path"]).read_text().splitlines()) == file["rows"]


def test_the_built_in_set_is_varied() -> None:
    """Every kind of question, one to three hops, and names that are close to each other."""
    train, test = Builtin(family="search"), Builtin("test", family="search")
    assert not [*train.rejected, *test.rejected]
    both = [*rows(train), *rows(test)]
    assert len(both) >= 150
    assert {task.data["kind"] for task in both} == set(QUESTIONS)
    assert set(Counter(task.data["hops"] for task in both)) == {1, 2, 3}
    assert train.corpus is not None
    assert len(train.corpus) >= 300
    assert train.resources == {"index": {"corpus": train.corpus}}
    assert json.dumps([dict(task.data) for task in both])
