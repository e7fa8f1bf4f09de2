r"""Corpora: passages in memory, passages of a file, and several corpora as one.

A file is JSON Lines, also packed by gzip (``.jsonl.gz``), or one JSON array (``.json``, which is
read whole). It may be laid out in any of these ways, one passage a row:

================  ==============================================================================
BEIR and others   ``{"_id": ..., "title": ..., "text": ..., "metadata": {"url": ...}}``; the id may
                  be called ``id`` or ``docid``, the text ``paragraph_text``, ``content`` or
                  ``body``, and the URL may stand at ``url``
Search-R1         ``{"id": ..., "contents": "\"Title\"\nText"}``; ``contents`` without a title in
                  quotation marks is all text
HippoRAG, 2Wiki   ``{"title": ..., "text": ...}``: the title is the id
Vespa             ``{"put": "id:NAMESPACE:TYPE::ID", "fields": {"id", "title", "text"}}``
================  ==============================================================================

Ids are unique: a passage that stands there twice is kept once, and the second of two that differ
but share an id is called ``ID #2``. So an id depends on nothing but the file.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import os
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from toolenvs.errors import DataError, UsageError
from toolenvs.protocols import Corpus
from toolenvs.types import Passage

_BOM = b"\xef\xbb\xbf"
_SALT = b"toolenvs.corpora 1\n"  # another way to read a file gives another digest
_IDS = ("id", "_id", "docid")
_NUMBERED = re.compile(r" #\d+\Z")
_TEXTS = ("text", "paragraph_text", "content", "body", "contents")


class Ids:
    """Gives each passage an id of its own, however many share the one that they came with."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._namesakes: dict[str, _Namesakes] = {}

    def __len__(self) -> int:
        return len(self._contents)

    def find(self, passage: Passage) -> str:
        """The id of a passage that was added, ``""`` if none of that content was."""
        wanted_id, known = self._place(passage)
        return wanted_id if known else ""

    def add(self, passage: Passage) -> str:
        """The new id of a passage, ``""`` if it was added before."""
        wanted_id, known = self._place(passage)
        if known:
            return ""
        self._contents[wanted_id] = _content(passage)
        return wanted_id

    def _place(self, passage: Passage) -> tuple[str, bool]:
        content = _content(passage)
        first = self._contents.get(passage.id)
        if first is None or first == content:
            return passage.id, first is not None
        others = self._namesakes.setdefault(passage.id, _Namesakes())
        while content not in others.ids:
            wanted_id = f"{passage.id} #{others.following}"
            known = self._contents.get(wanted_id)
            if known is None:
                return wanted_id, False
            others.ids.setdefault(known, wanted_id)
            others.following += 1
        return others.ids[content], True


class _Namesakes:
    """What is called ``ID #2``, ``ID #3`` and so on, so far as it was looked through."""

    __slots__ = ("following", "ids")

    def __init__(self) -> None:
        self.ids: dict[bytes, str] = {}
        self.following = 2


class Passages:
    """A corpus in memory.

    Args:
        passages: its passages; see the module for their ids.
        name: what it is called.
    """

    def __init__(self, passages: Iterable[Passage], *, name: str = "passages") -> None:
        self.name = name
        ids = Ids()
        named = ((ids.add(passage), passage) for passage in passages)
        self._passages = tuple(msgspec.structs.replace(p, id=new) for new, p in named if new)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the passages, in order."""
        digest = hashlib.sha256()
        for passage in self._passages:
            digest.update(passage_bytes(passage))
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._passages)

    def __iter__(self) -> Iterator[Passage]:
        return iter(self._passages)


class CorpusFile:
    """A corpus in a file, read anew each time it is iterated, one line at a time.

    What is kept in memory is the digest, the number of passages, and what repeats; a first pass
    over the file, when one of these is asked for, takes another 8 bytes for each passage.

    Args:
        path: the file, or a folder in BEIR's layout, which holds ``corpus.jsonl``.
        name: what the corpus is called; by default the file's name up to its first dot.

    Raises:
        DataError: There is no such file; or, when it is read, a row cannot be used: the message
            starts with ``path:line``.
    """

    def __init__(self, path: str | os.PathLike[str], *, name: str = "") -> None:
        given = Path(path)
        self.path = given / "corpus.jsonl" if given.is_dir() else given
        self.name = name or self.path.name.split(".")[0]
        if not self.path.is_file():
            raise DataError(f"{self.path}: there is no such file.")

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content and of the way in which it is read."""
        return self._facts().digest

    def __len__(self) -> int:
        return self._facts().size

    def __iter__(self) -> Iterator[Passage]:
        facts = self._facts()
        for number, passage in enumerate(_passages(self.path)):
            if number not in facts.repeated:
                yield passage
            elif new_id := facts.repeated[number]:
                yield msgspec.structs.replace(passage, id=new_id)

    def _facts(self) -> _Facts:
        """What is known of the file as it is now."""
        try:
            state = self.path.stat()
        except OSError as error:
            raise DataError(f"{self.path}: the file cannot be read: {error.strerror}.") from error
        return _read_facts(self.path, state.st_size, state.st_mtime_ns)


class JoinedCorpora:
    """Several corpora, one after the other, as one; their ids must differ."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self._corpora = tuple(corpora)
        self.name = "+".join(corpus.name for corpus in corpora)

    @property
    def digest(self) -> str:
        """SHA-256 of the corpora's own digests."""
        return hashlib.sha256(" ".join(c.digest for c in self._corpora).encode()).hexdigest()

    def __len__(self) -> int:
        return sum(map(len, self._corpora))

    def __iter__(self) -> Iterator[Passage]:
        for corpus in self._corpora:
            yield from corpus


def load_corpus(what: object) -> Corpus:
    """Return a corpus: ``what`` itself, the one in the file that it names, or a list's as one.

    Raises:
        DataError: There is no such file.
        UsageError: It is none of these, or an empty list.
    """
    if isinstance(what, str | os.PathLike):
        return CorpusFile(what)
    if isinstance(what, Corpus):
        return what
    if isinstance(what, Sequence) and what:
        corpora = list({corpus.digest: corpus for corpus in map(load_corpus, what)}.values())
        return corpora[0] if len(corpora) == 1 else JoinedCorpora(corpora)
    raise UsageError(f"corpus={what!r} must be a corpus, a path, or a list of these.")


def read_passage(row: Any, *, place: str, number: int = 0) -> Passage:
    """Read one row in any of the layouts.

    Args:
        row: the decoded row.
        place: where it stands, for messages.
        number: what it is called if it has neither an id nor a title.

    Raises:
        DataError: It is no object, has no text, or holds a field in the wrong type.
    """
    if not isinstance(row, dict):
        raise DataError(f"{place}: a passage must be an object with a text.")
    if isinstance(row.get("fields"), dict) and "put" in row:
        row = {"id": str(row["put"]).rpartition("::")[2], **row["fields"]}
    title = _field(row, "title", place)
    key = next((key for key in _TEXTS if row.get(key) is not None), None)
    if key is None:
        shown = ", ".join(list(row)[:12]) or "no fields"
        raise DataError(
            f"{place}: field 'text' is missing; a passage has one of {', '.join(_TEXTS)}. This row "
            f"has {shown}."
        )
    text = _field(row, key, place)
    if key == "contents" and not title and text.startswith('"'):
        head, line_break, rest = text.partition("\n")
        if line_break and len(head) > 1 and head.endswith('"'):
            title, text = head[1:-1], rest
    metadata = row.get("metadata")
    with_url = row if "url" in row or not isinstance(metadata, dict) else metadata
    given = (_field(row, name, place) for name in _IDS)
    identity = next(filter(None, given), "") or title or str(number)
    return Passage(id=identity, title=title, text=text, url=_field(with_url, "url", place))


def passage_bytes(passage: Passage) -> bytes:
    """The passage for a digest: no two that differ have the same bytes."""
    parts = [str(f).encode("utf-8", "surrogatepass") for f in msgspec.structs.astuple(passage)]
    return b"%d %d %d %d\n" % tuple(map(len, parts)) + b"".join(parts)


def _content(passage: Passage) -> bytes:
    nameless = msgspec.structs.replace(passage, id="")
    return hashlib.blake2b(passage_bytes(nameless), digest_size=16).digest()


def _field(row: Mapping[str, Any], key: str, place: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{place}: field {key!r} is a {type(value).__name__}; it must be a text.")
    return str(value)


# -- files ---------------------------------


class _Facts(NamedTuple):
    """What is known of a file: ``repeated`` has the new id of a row, ``""`` to leave it out."""

    digest: str
    size: int
    repeated: Mapping[int, str]


@functools.lru_cache(maxsize=64)
def _read_facts(path: Path, size: int, changed_ns: int) -> _Facts:
    """Read a file of this size and time of change; the two make the cache forget an older one."""
    digest = hashlib.sha256(_SALT)
    names = array("Q")
    for passage in _passages(path, digest):
        names.append(_hash(passage.id))
    repeated = _read_repeated(path, np.frombuffer(names, dtype=np.uint64))
    left_out = sum(not new_id for new_id in repeated.values())
    return _Facts(digest.hexdigest(), len(names) - left_out, repeated)


def _read_repeated(path: Path, names: np.ndarray[Any, np.dtype[np.uint64]]) -> dict[int, str]:
    """The rows whose id an earlier row has, or was given, with their new ids."""
    ordered = np.sort(names)
    shared = set(map(int, ordered[1:][ordered[1:] == ordered[:-1]]))
    repeated: dict[int, str] = {}
    if not shared:
        return repeated
    ids = Ids()
    for number, passage in enumerate(_passages(path)):
        # A row may be called "a #2" from the start, as the second "a" then is.
        if any(_hash(name) in shared for name in _bases(passage.id)):
            new_id = ids.add(passage)
            if new_id != passage.id:
                repeated[number] = new_id
    return repeated


def _bases(name: str) -> Iterator[str]:
    """An id, and what it numbers: ``a #2 #3``, ``a #2``, ``a``."""
    yield name
    while (end := _NUMBERED.search(name)) is not None:
        name = name[: end.start()]
        yield name


def _passages(path: Path, digest: Any = None) -> Iterator[Passage]:
    """The passages of a file as they stand there; ``digest`` is updated with its bytes."""
    for number, (line, row) in enumerate(_rows(path, digest)):
        yield read_passage(row, place=f"{path}:{line}", number=number)


def _rows(path: Path, digest: Any) -> Iterator[tuple[int, Any]]:
    """The rows of a file, each with its line; of an array, with its number from 1."""
    try:
        if path.suffix == ".json":
            yield from enumerate(_array(path, digest), start=1)
            return
        with _unpacked(path) as lines:
            for number, line in enumerate(lines, start=1):
                if digest is not None:
                    digest.update(line)
                text = line.removeprefix(_BOM) if number == 1 else line
                if text.strip():
                    yield number, _decoded(text, f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read: {error}.") from error


def _unpacked(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _array(path: Path, digest: Any) -> list[Any]:
    content = path.read_bytes()
    if digest is not None:
        digest.update(content)
    rows = _decoded(content.removeprefix(_BOM), f"{path}:1")
    if not isinstance(rows, list):
        raise DataError(f"{path}:1: a corpus in .json is one array; this is none.")
    return rows


def _decoded(text: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{place}: this is no JSON: {error}.") from error


def _hash(name: str) -> int:
    data = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
