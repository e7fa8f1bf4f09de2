"""A corpus's passages on disk: found by their place or id, memory-mapped, shared by backends."""

from __future__ import annotations

import difflib
import hashlib
import mmap
from array import array
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from toolenvs.backends import shown_id
from toolenvs.backends._cache import reported, share
from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.protocols import Corpus
from toolenvs.types import Passage

_LAYOUT = 2
_MOST_NAMES = 20_000  # looked through for the nearest id
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Passage).decode


class PassageStore:
    """The passages of a corpus, each at its place from 0 on; see ``open_store``.

    A passage that stands in a corpus twice is kept once.

    Args:
        folder: where ``_write`` put them.
    """

    def __init__(self, folder: Path) -> None:
        self._rows: NDArray[np.int64] = np.load(folder / "rows.npy", mmap_mode="r")
        self._names: NDArray[np.uint64] = np.load(folder / "names.npy", mmap_mode="r")
        self._places: NDArray[np.int64] = np.load(folder / "places.npy", mmap_mode="r")
        with (folder / "passages.jsonl").open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._rows) == 0 or self._rows[-1, 1] > len(self._text):
            raise ValueError("passages are missing")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> Passage:
        start, end = self._rows[place]
        return _decode(self._text[start:end])

    def __iter__(self) -> Iterator[Passage]:
        return (self[place] for place in range(len(self)))

    def find(self, id_or_url: str) -> Passage | None:
        """The passage with this id, else the first with this URL or so shown, else None."""
        otherwise: Passage | None = None
        name = np.uint64(_hash(id_or_url))
        first = int(np.searchsorted(self._names, name, side="left"))
        last = int(np.searchsorted(self._names, name, side="right"))
        for place in self._places[first:last]:
            passage = self[int(place)]
            if passage.id == id_or_url:
                return passage
            if otherwise is None and id_or_url in (passage.url, shown_id(passage.id)):
                otherwise = passage
        return otherwise

    def nearest(self, name: str) -> str:
        """The id most like ``name``, ``""`` if none is or there are too many to look through."""
        if len(self) > _MOST_NAMES:
            return ""
        near = difflib.get_close_matches(name[:200], [passage.id for passage in self], n=1)
        return near[0] if near else ""


def open_store(corpus: Corpus) -> PassageStore:
    """The store of a corpus, written to the cache if it is not there.

    Raises:
        DataError: Two passages that differ have the same id.
        RuntimeFailure: It cannot be written, or the corpus changed while it was read.
        UsageError: The corpus is empty.
    """
    digest = corpus.digest

    def make(folder: Path) -> None:
        _write(corpus, folder)
        if corpus.digest != digest:  # else the store would for ever hold what it does not say
            raise RuntimeFailure("data", f"the corpus {corpus.name!r} changed while it was read.")

    return share(
        "passages",
        (_LAYOUT, digest),
        make=make,
        open_folder=PassageStore,
    )


def _write(corpus: Corpus, folder: Path) -> None:
    rows, names, places = array("q"), array("Q"), array("q")
    end = count = 0
    with (folder / "passages.jsonl").open("wb", buffering=1 << 20) as file:
        for count, passage in enumerate(
            reported(corpus, f"reading {corpus.name}", total=len(corpus)), start=1
        ):
            if not passage.id:
                raise DataError(f"{corpus.name}: passage {count} has no id, so none could open it.")
            line = _encoded(passage)
            file.write(line + b"\n")
            rows.extend((end, end + len(line)))
            end += len(line) + 1
            for name in {passage.id, passage.url, shown_id(passage.id)} - {""}:
                names.append(_hash(name))
                places.append(count - 1)
    if not count:
        raise UsageError(f"the corpus {corpus.name!r} is empty; there is nothing to search.")
    by_place = np.frombuffer(rows, dtype=np.int64).reshape(-1, 2)
    hashes, of = np.frombuffer(names, dtype=np.uint64), np.frombuffer(places, dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    twice = _twice(folder, by_place, hashes[order], of[order], corpus.name)
    keep = np.ones(count, dtype=bool)
    keep[twice] = False
    order = order[keep[of[order]]]
    moved = np.cumsum(keep) - 1
    np.save(folder / "rows.npy", by_place[keep])
    np.save(folder / "names.npy", hashes[order])
    np.save(folder / "places.npy", moved[of[order]])


def _twice(
    folder: Path,
    rows: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    corpus_name: str,
) -> list[int]:
    """Places of passages that were there before; ``hashes`` are sorted.

    Raises:
        DataError: Two passages that differ have the same id.
    """
    found: list[int] = []
    equal = np.flatnonzero(hashes[1:] == hashes[:-1])
    if not len(equal):
        return found
    with (folder / "passages.jsonl").open("rb") as file:

        def read(place: int) -> Passage:
            start, end = map(int, rows[place])
            file.seek(start)
            return _decode(file.read(end - start))

        seen: dict[str, Passage] = {}
        run = -1
        for index in map(int, equal):
            if index != run:
                seen = {}
                first = read(int(places[index]))
                seen[first.id] = first
            run = index + 1
            passage = read(int(places[run]))
            before = seen.setdefault(passage.id, passage)
            if before is passage:  # another id, called alike
                continue
            if before != passage:
                raise DataError(
                    f"{corpus_name}: two different passages have the id {passage.id!r}; ids must "
                    "be unique over all corpora that are searched together."
                )
            found.append(int(places[run]))
    return found


def _encoded(passage: Passage) -> bytes:
    try:
        return _encode(passage)
    except UnicodeEncodeError:  # half surrogate pairs, which no UTF-8 file holds
        fields = msgspec.structs.astuple(passage)
        return _encode(Passage(*(str(f).encode("utf-8", "replace").decode() for f in fields)))


def _hash(name: str) -> int:
    data = name.encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
