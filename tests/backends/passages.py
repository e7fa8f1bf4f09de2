"""Corpora and models for tests of search."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from toolenvs.corpora import Passages
from toolenvs.types import Passage

CITIES = (
    Passage(
        id="lyon",
        title="Lyon",
        text="Lyon is a city in France. It stands where the Saône meets the Rhône.",
        url="https://example.org/lyon",
    ),
    Passage(
        id="rhone",
        title="Rhône",
        text="The Rhône is a river. It rises in Switzerland and passes the city of Lyon.",
    ),
    Passage(
        id="oslo",
        title="Oslo",
        text="Oslo is the capital of Norway, founded around 1040 by a king.",
    ),
    Passage(id="who", title="The Who", text="The Who are an English rock band formed in 1964."),
    Passage(id="tent", title="Camping", text="Campers run with running water and a kettle."),
)


def cities() -> Passages:
    """A few passages of which each is found by its own words."""
    return Passages(CITIES, name="cities")


class Counted:
    """A corpus that counts how often it is read."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)
        self.name = "counted"
        self.digest = Passages(passages).digest
        self.reads = 0

    def __len__(self) -> int:
        return len(self._passages)

    def __iter__(self) -> Iterator[Passage]:
        self.reads += 1
        return iter(self._passages)


class WordEncoder:
    """A model whose vectors are hashed bags of words: near are texts with the same words."""

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.texts = 0
        self._calls = itertools.count()

    def encode(self, sentences: list[str], **options: Any) -> Any:
        """Count each word at a place that its hash gives."""
        self.texts += len(sentences)
        vectors = np.zeros((len(sentences), self.dimension), dtype=np.float32)
        for row, text in enumerate(sentences):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.sha256(word.encode()).digest()
                vectors[row, digest[0] % self.dimension] += 1.0 if digest[1] % 2 else -1.0
        return vectors
