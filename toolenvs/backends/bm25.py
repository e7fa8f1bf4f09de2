"""Find passages by their words: BM25 over an index of tantivy that lies in the user's cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from toolenvs.backends import Hit
from toolenvs.backends._cache import reported, share
from toolenvs.backends._ranking import Scored, cut_is_clear, in_order
from toolenvs.backends._store import PassageStore, open_store
from toolenvs.backends._words import STOP_WORDS, snippet
from toolenvs.corpora import load_corpus
from toolenvs.errors import RuntimeFailure, UnknownNameError
from toolenvs.locks import ForkLock
from toolenvs.ranges import checked_number
from toolenvs.types import Passage

_LAYOUT = 1
_VERSION = "1"
_ANALYZER = "toolenvs"
_HEAP_BYTES = 512 << 20
_MOST_WORDS = 64  # of one query
_LONGEST_WORD = 64
_SPARE_HITS = 16
_MOST_TIES = 1 << 16
_MOST_BOOST = 1000
_LANGUAGES = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian"),
    *("italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil"),
    "turkish",
)


class Bm25:
    """BM25 (k1 1.2, b 0.75) over titles and texts.

    Each word of the query counts by the better of two scores: that in the title, times
    ``title_boost``, and that in title and text together; of the other, ``other_share`` is added.
    The index is built once for a corpus and these options, by one process, and memory-mapped by
    all. Equal scores are ordered by id.

    Args:
        corpus: a ``Corpus``, a path, or a list of these; see ``load_corpus``.
        language: whose endings are taken off words, ``""`` for none; in English, words that every
            question holds are left out of queries.
        title_boost: weight of titles, 0 to 1000.
        other_share: share of the lesser score, 0 to 1.

    Raises:
        UsageError: An option is out of range.
    """

    name = "bm25"
    external = False
    inline = True

    def __init__(
        self,
        *,
        corpus: object,
        language: str = "english",
        title_boost: float = 1.25,
        other_share: float = 0.3,
    ) -> None:
        if language != "" and language not in _LANGUAGES:
            raise UnknownNameError("a language", str(language), _LANGUAGES)
        self.corpus = load_corpus(corpus)
        self.language = language
        self.title_boost = float(checked_number("title_boost", title_boost, most=_MOST_BOOST))
        self.other_share = float(checked_number("other_share", other_share, most=1))
        self._index: _Index | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy opens the index for itself."""
        return {**self.__dict__, "_index": None}

    def fingerprint(self) -> str:
        """Backend, tantivy, options and corpus."""
        return (
            f"{self.name} {_VERSION} tantivy={_tantivy_version()} language={self.language!r} "
            f"title_boost={self.title_boost} other_share={self.other_share} "
            f"corpus={self.corpus.digest}"
        )

    def prepare(self) -> None:
        """Build the index, or open the one that is there.

        Raises:
            DataError: The corpus cannot be used.
            RuntimeFailure: ``index``: it cannot be built; ``no_package``: tantivy is missing.
        """
        self._ready()

    def search(self, query: str, top_k: int) -> list[Hit]:
        """See ``Backend``; any text is a query, of which the first 64 different words count."""
        index = self._ready()
        words = index.words(query)
        if not words or top_k < 1:
            return []
        found = index.best(words, top_k, title_boost=self.title_boost, share=self.other_share)
        return [index.hit(place, score, query) for score, place in found]

    def open(self, id_or_url: str) -> Passage | None:
        return self._ready().store.find(id_or_url)

    def nearest(self, name: str) -> str:
        """The id most like ``name``, ``""`` where none is known."""
        return self._ready().store.nearest(name)

    def _ready(self) -> _Index:
        if self._index is None:
            store = open_store(self.corpus)
            self._index = share(
                "bm25",
                (_LAYOUT, _tantivy_version(), self.language, self.corpus.digest),
                make=lambda folder: _build(folder, store, self.corpus.name, self.language),
                open_folder=lambda folder: _Index(folder, store, self.language),
            )
        return self._index


class _Index:
    """An opened index; its methods may be called from many threads."""

    def __init__(self, folder: Path, store: PassageStore, language: str) -> None:
        tantivy = _tantivy()
        index = tantivy.Index.open(str(folder))
        # Nothing is ever added: no thread need watch the folder.
        index.config_reader(reload_policy="manual")
        index.reload()
        self.store = store
        self._tantivy = tantivy
        self._schema = index.schema
        self._searcher = index.searcher()
        self._analyzers = (_analyzer(language, STOP_WORDS), _analyzer(language))
        self._analyzing = ForkLock()
        if self._searcher.num_docs != len(store):
            raise ValueError(f"{self._searcher.num_docs} of {len(store)} passages")

    def words(self, query: str) -> list[str]:
        """The different words of a query, as the index holds them; no stop words if others are."""
        text = query.encode("utf-8", "replace").decode()
        with self._analyzing:
            telling, every = (each.analyze(text) for each in self._analyzers)
        return list(dict.fromkeys(telling or every))[:_MOST_WORDS]

    def best(
        self, words: Sequence[str], top_k: int, *, title_boost: float, share: float
    ) -> list[Scored]:
        """The best passages' scores and places."""
        query = self._query(words, title_boost, share)
        # Room is made for as many hits as the limit says, before there are any.
        most = min(len(self.store), max(_MOST_TIES, top_k + _SPARE_HITS))
        limit = min(most, top_k + _SPARE_HITS)
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            found = [(float(score), 0) for score, _ in hits]
            # Where equal scores go on behind the last hit, those with the first ids may be there.
            if len(hits) < limit or limit >= most or cut_is_clear(found, top_k):
                break
            limit = min(limit * 8, most)
        places = self._searcher.fast_field_values("place", [address for _, address in hits])
        scored = [(float(hit[0]), int(place)) for hit, place in zip(hits, places, strict=True)]
        return in_order(scored, top_k, lambda place: self.store[place].id)

    def hit(self, place: int, score: float, query: str) -> Hit:
        passage = self.store[place]
        return Hit(
            id=passage.id,
            title=passage.title,
            score=round(score, 4),
            snippet=snippet(passage.text, query),
            url=passage.url,
        )

    def _query(self, words: Sequence[str], title_boost: float, share: float) -> Any:
        """The query as terms: no character of a word is read as syntax."""
        make, should = self._tantivy.Query, self._tantivy.Occur.Should
        terms = []
        for word in words:
            term = make.term_query(self._schema, "text", word, "freq")
            if title_boost:
                title = make.term_query(self._schema, "title", word, "freq")
                both = [term, make.boost_query(title, title_boost)]
                term = make.disjunction_max_query(both, share)
            terms.append((should, term))
        return make.boolean_query(terms)


def _build(folder: Path, store: PassageStore, name: str, language: str) -> None:
    """Write the index of a store's passages, with one thread: its segments are then always equal.

    Below 8 segments, of about a million passages each, none are merged.
    """
    tantivy = _tantivy()
    schema = tantivy.SchemaBuilder()
    for field in ("title", "text"):
        schema.add_text_field(field, tokenizer_name=_ANALYZER, index_option="freq")
    schema.add_integer_field("place", fast=True)
    index = tantivy.Index(schema.build(), path=str(folder))
    index.register_tokenizer(_ANALYZER, _analyzer(language))
    writer = index.writer(_HEAP_BYTES, 1)
    passages = reported(store, f"indexing {name} for bm25", total=len(store))
    for place, passage in enumerate(passages):
        writer.add_document(
            tantivy.Document(
                title=passage.title, text=f"{passage.title}\n{passage.text}", place=place
            )
        )
    writer.commit()
    writer.wait_merging_threads()


def _analyzer(language: str, stop_words: Collection[str] = ()) -> Any:
    """What makes words of a text; ``stop_words`` are those of English."""
    tantivy = _tantivy()
    filters = tantivy.Filter
    builder = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(filters.remove_long(_LONGEST_WORD))
        .filter(filters.lowercase())
        .filter(filters.ascii_fold())
    )
    if language == "english" and stop_words:
        builder = builder.filter(filters.custom_stopword(sorted(stop_words)))
    if language:
        builder = builder.filter(filters.stemmer(language))
    return builder.build()


def _tantivy() -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise RuntimeFailure(
            "no_package",
            "the search backend 'bm25' needs the package tantivy, which toolenvs brings: "
            "pip install tantivy.",
        ) from error
    return tantivy


def _tantivy_version() -> str:
    try:
        return version("tantivy")
    except PackageNotFoundError:  # a replay needs no index
        return "none"
