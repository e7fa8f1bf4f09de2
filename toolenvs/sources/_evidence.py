"""Which documents of which corpus a question's answer needs: found by title and text."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from toolenvs.corpora import Ids, passage_bytes
from toolenvs.protocols import Corpus
from toolenvs.sources._questions import Paragraph, Question, read_question
from toolenvs.sources._rowfiles import RowFile
from toolenvs.types import Passage


class Evidence(Protocol):
    """Finds the documents that a question's answer needs."""

    @property
    def corpus(self) -> Corpus | None:
        """Where they are, None if nowhere."""
        ...

    def supporting(self, question: Question, number: int) -> tuple[list[str], list[str]]:
        """The ids of the documents, and the titles of those that are not in the corpus.

        Args:
            question: the question.
            number: of its row, from 0.
        """
        ...


class OwnParagraphs:
    """The paragraphs of all questions of a file as one corpus; a title is the id.

    Of paragraphs with one title and different texts, the second is called ``TITLE #2``. Texts are
    not kept in memory but read again from the rows.

    Args:
        name: what the corpus is called.
        rows: the file.
        source: name of the source.
    """

    def __init__(self, name: str, rows: RowFile, *, source: str) -> None:
        self.name = name
        self._source = source
        self._rows = rows
        self._ids = Ids()
        self._chain = b""
        self._new_in = array("q")  # numbers of the rows that brought a paragraph

    @property
    def corpus(self) -> Corpus | None:
        return self if len(self) else None

    @property
    def digest(self) -> str:
        """SHA-256 over the passages, each hashed with what stood before it."""
        return hashlib.sha256(self._chain).hexdigest()

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Passage]:
        given = Ids()
        for number in self._new_in:
            question = read_question(self._rows[number], source=self._source)
            for passage in map(_passage, question.paragraphs):
                if new_id := given.add(passage):
                    yield msgspec.structs.replace(passage, id=new_id)

    def supporting(self, question: Question, number: int) -> tuple[list[str], list[str]]:
        found: list[str] = []
        for paragraph in question.paragraphs:
            passage = _passage(paragraph)
            if new_id := self._ids.add(passage):
                known = passage_bytes(msgspec.structs.replace(passage, id=new_id))
                self._chain = hashlib.sha256(self._chain + known).digest()
                if not self._new_in or self._new_in[-1] != number:
                    self._new_in.append(number)
            if paragraph.supporting:
                found.append(new_id or self._ids.find(passage))
        return list(dict.fromkeys(found)), list(question.titles)


class GivenCorpus:
    """A corpus that was given beside the questions: documents are found in it by their titles.

    Where several have a title, the one with the paragraph's own text is meant.

    Args:
        corpus: the corpus; read once here.
        questions: all questions that will be asked for.
    """

    def __init__(self, corpus: Corpus, questions: Iterable[Question]) -> None:
        self.corpus: Corpus | None = corpus
        wanted = {each.title for question in questions for each in _needed(question)}
        self._found: dict[str, list[tuple[str, bytes]]] = {}
        for passage in corpus if wanted else ():
            if passage.title in wanted:
                place = (passage.id, _digest_of(passage.text))
                self._found.setdefault(passage.title, []).append(place)

    def supporting(self, question: Question, number: int) -> tuple[list[str], list[str]]:
        ids: list[str] = []
        missing: list[str] = []
        for needed in _needed(question):
            there = self._found.get(needed.title, [])
            same = [each for each, text in there if text == _digest_of(needed.text)]
            if not same and len(there) == 1:
                same = [there[0][0]]
            ids += same[:1]
            missing += [] if same else [needed.title]
        return list(dict.fromkeys(ids)), missing


class NoCorpus:
    """Questions that came without documents."""

    corpus: Corpus | None = None

    def supporting(self, question: Question, number: int) -> tuple[list[str], list[str]]:
        return [], []


def _needed(question: Question) -> Sequence[Paragraph]:
    titles = [Paragraph(title, "", supporting=True) for title in question.titles]
    return [each for each in question.paragraphs if each.supporting] + titles


def _passage(paragraph: Paragraph) -> Passage:
    name = paragraph.title or "untitled"
    return Passage(id=name, title=paragraph.title, text=paragraph.text)


def _digest_of(text: str) -> bytes:
    words = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(words, digest_size=8).digest()
