"""Find passages by meaning: exact inner products with the vectors of a sentence-embedding model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from toolenvs.backends import Hit
from toolenvs.backends._cache import reported, share
from toolenvs.backends._encoders import DEFAULT_MODEL, Embedder, Encoder
from toolenvs.backends._ranking import Scored, cut_is_clear, in_order
from toolenvs.backends._store import PassageStore, open_store
from toolenvs.backends._words import snippet
from toolenvs.corpora import load_corpus
from toolenvs.errors import UsageError
from toolenvs.ranges import checked_whole
from toolenvs.types import Passage

Unit = Literal["sentence", "passage"]
Precision = Literal["float16", "float32"]

_LAYOUT = 1
_VERSION = "1"
_ROWS_AT_ONCE = 1 << 16  # of vectors: 96 MiB as 32-bit numbers of 384 dimensions
_PASSAGES_AT_ONCE = 256  # to be encoded
_MOST_QUERY_CHARS = 8192
_LONGEST_SENTENCE = 1000  # characters; most models read no more than about that
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"])")


class Dense:
    """Inner products of a query's vector with those of all passages, none left out.

    Each vector is that of a sentence with its passage's title before it, and a passage is as near
    as its nearest sentence; with ``unit="passage"`` there is one vector for the whole, which takes
    a quarter of the space and found less on questions with several hops. The vectors are computed
    once for a corpus, model and unit, and memory-mapped. Equal scores are ordered by id.

    Args:
        corpus: a ``Corpus``, a path, or a list of these; see ``load_corpus``.
        model: a name that ``sentence_transformers`` knows, a folder, or an object whose ``encode``
            turns a list of texts into vectors.
        unit: what a vector stands for.
        precision: how vectors are kept; ``"float16"`` takes half the space and more time.
        batch_size: texts that the model encodes at once.
        device: where it runs, ``""`` for what its library chooses.

    Raises:
        UsageError: An option is out of range.
    """

    name = "dense"
    external = False

    def __init__(
        self,
        *,
        corpus: object,
        model: str | Encoder = DEFAULT_MODEL,
        unit: Unit = "sentence",
        precision: Precision = "float32",
        batch_size: int = 64,
        device: str = "",
    ) -> None:
        if unit not in get_args(Unit) or precision not in get_args(Precision):
            raise UsageError(
                f"unit={unit!r} must be one of {', '.join(get_args(Unit))}, "
                f"precision={precision!r} one of {', '.join(get_args(Precision))}."
            )
        checked_whole("batch_size", batch_size, least=1)
        if not isinstance(device, str):
            raise UsageError(f"device={device!r} must be a text.")
        if not isinstance(model, str | Encoder):
            raise UsageError(f"model={model!r} must be a name, or have a method encode.")
        self.corpus = load_corpus(corpus)
        self.unit: Unit = unit
        self.precision: Precision = precision
        self._embedder = Embedder(model, device=device, batch_size=batch_size)
        self._index: _Vectors | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy opens the vectors for itself."""
        return {**self.__dict__, "_index": None}

    def fingerprint(self) -> str:
        """Backend, model, options and corpus."""
        return (
            f"{self.name} {_VERSION} model={self._embedder.identity()} unit={self.unit} "
            f"precision={self.precision} corpus={self.corpus.digest}"
        )

    def prepare(self) -> None:
        """Compute the vectors, or open those that are there, and load the model.

        Raises:
            DataError: The corpus cannot be used.
            RuntimeFailure: ``no_package``, ``model`` or ``index``: it cannot be done here.
        """
        self._ready()
        self._embedder.load()

    def search(self, query: str, top_k: int) -> list[Hit]:
        return self.search_many([query], top_k)[0]

    def search_many(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Search for several queries, which are encoded and compared together.

        Blank ones find nothing; of long ones the first 8192 characters count.
        """
        index = self._ready()
        hits: list[list[Hit]] = [[] for _ in queries]
        asked = [place for place, query in enumerate(queries) if query.strip()]
        if not asked or top_k < 1:
            return hits
        vectors = self._embedder.encode([queries[place][:_MOST_QUERY_CHARS] for place in asked])
        for place, scores in zip(asked, index.scores(vectors), strict=True):
            best = index.best(scores, top_k)
            hits[place] = [index.hit(found, score, queries[place]) for score, found in best]
        return hits

    def open(self, id_or_url: str) -> Passage | None:
        return self._ready().store.find(id_or_url)

    def nearest(self, name: str) -> str:
        """The id most like ``name``, ``""`` where none is known."""
        return self._ready().store.nearest(name)

    def _ready(self) -> _Vectors:
        if self._index is None:
            store = open_store(self.corpus)
            pieces = sentences if self.unit == "sentence" else whole
            embedder, precision, name = self._embedder, self.precision, self.corpus.name
            self._index = share(
                "dense",
                (_LAYOUT, embedder.identity(), self.unit, precision, self.corpus.digest),
                make=lambda folder: _embed(
                    folder, store, pieces, embedder, name=name, kept=precision
                ),
                open_folder=lambda folder: _Vectors(folder, store),
            )
        return self._index


def whole(passage: Passage) -> list[str]:
    """A passage as one text."""
    return [f"{passage.title}\n{passage.text}".strip()]


def sentences(passage: Passage) -> list[str]:
    """A passage as its sentences, each with the title before it; at least one text."""
    parts = [
        sentence[start : start + _LONGEST_SENTENCE]
        for sentence in _SENTENCE_END.split(" ".join(passage.text.split()))
        for start in range(0, len(sentence), _LONGEST_SENTENCE)
    ]
    return [f"{passage.title}\n{part}".strip() for part in parts if part] or [passage.title]


class _Vectors:
    """Opened vectors; its methods may be called from many threads."""

    def __init__(self, folder: Path, store: PassageStore) -> None:
        self.store = store
        self._vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        self._starts: NDArray[np.int64] = np.load(folder / "starts.npy")
        if len(self._starts) != len(store) + 1 or self._starts[-1] != len(self._vectors):
            raise ValueError("vectors are missing")

    def scores(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The score of each passage for each query, shape ``(len(queries), passages)``."""
        if queries.shape[1] != self._vectors.shape[1]:
            raise ValueError(f"{queries.shape[1]} dimensions, not {self._vectors.shape[1]}")
        best = np.empty((len(queries), len(self.store)), dtype=np.float32)
        for first, last in self._spans():
            start, end = int(self._starts[first]), int(self._starts[last])
            rows = np.asarray(self._vectors[start:end], dtype=np.float32)
            products = queries @ rows.T
            heads = self._starts[first:last] - start
            best[:, first:last] = np.maximum.reduceat(products, heads, axis=1)
        return best

    def best(self, scores: NDArray[np.float32], top_k: int) -> list[Scored]:
        """The best passages' scores and places, from the scores of all."""
        limit = min(len(scores), top_k + 16)
        while True:
            chosen = np.argpartition(-scores, limit - 1)[:limit]
            chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
            found = [(float(scores[place]), int(place)) for place in chosen]
            if limit == len(scores) or cut_is_clear(found, top_k):
                return in_order(found, top_k, lambda place: self.store[place].id)
            limit = min(len(scores), limit * 8)

    def hit(self, place: int, score: float, query: str) -> Hit:
        passage = self.store[place]
        return Hit(
            id=passage.id,
            title=passage.title,
            score=round(score, 4),
            snippet=snippet(passage.text, query),
            url=passage.url,
        )

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Runs of passages with about ``_ROWS_AT_ONCE`` vectors together."""
        first, count = 0, len(self._starts) - 1
        while first < count:
            wanted = self._starts[first] + _ROWS_AT_ONCE
            last = int(np.searchsorted(self._starts, wanted, side="right")) - 1
            last = min(max(last, first + 1), count)
            yield first, last
            first = last


def _embed(
    folder: Path,
    store: PassageStore,
    pieces: Callable[[Passage], list[str]],
    embedder: Embedder,
    *,
    name: str,
    kept: Precision,
) -> None:
    """Write the vectors of a store's passages."""
    counts = np.fromiter((len(pieces(passage)) for passage in store), np.int64, len(store))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    vectors: Any = None
    end = 0
    passages = iter(reported(store, f"encoding {name}", total=len(store)))
    while batch := list(islice(passages, _PASSAGES_AT_ONCE)):
        encoded = embedder.encode([piece for passage in batch for piece in pieces(passage)])
        if vectors is None:
            shape = (int(starts[-1]), encoded.shape[1])
            vectors = open_memmap(folder / "vectors.npy", mode="w+", dtype=kept, shape=shape)
        vectors[end : end + len(encoded)] = encoded
        end += len(encoded)
    vectors.flush()
    np.save(folder / "starts.npy", starts)
