"""Ask several backends and fuse their rankings: reciprocal rank fusion."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.backends import Backend, Hit, get, make
from toolenvs.corpora import load_corpus
from toolenvs.errors import UsageError
from toolenvs.types import Passage

_VERSION = "1"
_WEIGHTS = {"bm25": 3.0}
# These and ``k``: where fusing helped at 2, 5 and 10 hits on 69 questions of HotpotQA, 2Wiki and
# MuSiQue that are none of those that results are reported on. It changes little from k 10 to 20.


class Hybrid:
    """Reciprocal rank fusion: a passage's score is the sum of ``weight / (k + rank)`` over parts.

    Ranks begin with 1; a part counts for the passages among its first ``depth``. Equal scores are
    ordered by id. A passage is shown as the first part that found it shows it.

    Args:
        corpus: what parts that are given by name search, if they search a corpus.
        parts: backends, or their names.
        weights: one number above 0 for each part; by default 3 for ``bm25`` and 1 for all others.
        k: the larger it is, the less the first ranks stand out; 0 or more.
        depth: ranks of each part that count, at least 1.
        options: keyword options of parts that are given by name, by name.

    Raises:
        UsageError: An option is out of range.
        UnknownNameError: No backend has that name.

    Source: Cormack, Clarke, Buettcher 2009, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, SIGIR.
    """

    name = "hybrid"

    def __init__(
        self,
        *,
        corpus: object = None,
        parts: Sequence[str | Backend] = ("bm25", "dense"),
        weights: Sequence[float] | None = None,
        k: float = 15.0,
        depth: int = 100,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        if isinstance(parts, str) or not parts:
            raise UsageError(f"parts={parts!r} must be a list of backends or their names.")
        if not (k >= 0 and depth >= 1):
            raise UsageError(f"k={k} must be 0 or more, depth={depth} at least 1.")
        own = dict(options or {})
        searched = load_corpus(corpus) if corpus is not None else None
        self.parts = tuple(
            _made(part, searched, own.pop(part, {})) if isinstance(part, str) else part
            for part in parts
        )
        if own:
            raise UsageError(f"options={own!r} are for none of the parts.")
        names = [part.name for part in self.parts]
        self.weights = tuple(weights or (_WEIGHTS.get(name, 1.0) for name in names))
        if len(self.weights) != len(self.parts) or not all(w > 0 for w in self.weights):
            raise UsageError(f"weights={weights!r} must be {len(names)} numbers above 0.")
        self.k = float(k)
        self.depth = depth
        self.external = any(part.external for part in self.parts)

    def fingerprint(self) -> str:
        """Options, and the fingerprints of the parts."""
        parts = "; ".join(
            f"{weight}*({part.fingerprint()})"
            for weight, part in zip(self.weights, self.parts, strict=True)
        )
        return f"{self.name} {_VERSION} k={self.k} depth={self.depth} {parts}"

    def prepare(self) -> None:
        """Prepare every part that has to be; see there."""
        for part in self.parts:
            prepare = getattr(part, "prepare", None)
            if prepare is not None:
                prepare()

    def search(self, query: str, top_k: int) -> list[Hit]:
        scores: dict[str, float] = {}
        shown: dict[str, Hit] = {}
        for weight, part in zip(self.weights, self.parts, strict=True):
            hits = part.search(query, self.depth)
            for rank, hit in enumerate(hits, start=1):
                scores[hit.id] = scores.get(hit.id, 0.0) + weight / (self.k + rank)
                shown.setdefault(hit.id, hit)
        # Rounded first: the same sum may come out differently in another order.
        ranked = sorted(scores, key=lambda name: (-round(scores[name], 12), name))[:top_k]
        return [msgspec.structs.replace(shown[n], score=round(scores[n], 6)) for n in ranked]

    def open(self, id_or_url: str) -> Passage | None:
        return next(filter(None, (part.open(id_or_url) for part in self.parts)), None)

    def nearest(self, name: str) -> str:
        """The id most like ``name`` that a part knows, ``""`` if none does."""
        known = (getattr(part, "nearest", lambda _: "")(name) for part in self.parts)
        return next(filter(None, known), "")


def _made(name: str, corpus: object, options: Mapping[str, Any]) -> Backend:
    given = dict(options)
    if "corpus" in inspect.signature(get(name)).parameters and corpus is not None:
        given.setdefault("corpus", corpus)
    return make(name, **given)
