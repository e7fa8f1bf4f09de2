"""Citations and quotations in an answer: ``Lyon [2]``, ``... "the river-side town" [2]``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from toolenvs.grading.qa_text import read_forms, unify

_MARK = re.compile(r"\[([^\[\]\n]{1,300})\]")
_NUMBER = re.compile(r"[0-9]+")
_TWO_FOR_ONE = re.compile(r"['`\u00b4\u2018\u2019]{2}")  # ``...'' is "..."
_SINGLE = re.compile(r"[\u2018\u201a]((?:[^\u2018\u2019\u201a]|\u2019(?=\w))+)[\u2018\u2019](?!\w)")
_ELLIPSIS = re.compile(r"[\[(]?(?:\.{3,}|\u2026)[\])]?")
_OMITTED = "\ue000"
"""Stands for an ellipsis, which is no part of a normal form."""
_QUOTATION = re.compile(r'(?:(?<!\d)"|"(?=\w))([^"]+)"')  # behind a digit it may mean inches
_MIN_WORDS = 3
_MAX_CHARACTERS = 10_000


def without_marks(answer: str, known: Collection[str] = ()) -> str:
    """The answer without the citation marks ``[...]`` at its end.

    A mark holds ids that are known or numbers; other brackets belong to the answer (``yes [no]``).
    An answer of nothing but marks is unchanged.

    Args:
        answer: the submitted text.
        known: ids that a mark may name.

    >>> without_marks("Lyon [2][Rhone, river]", {"Rhone, river"}), without_marks("yes [no]")
    ('Lyon', 'yes [no]')
    """
    text = answer.rstrip(" .\n")
    while text.endswith("]"):
        start = text.rfind("[")
        mark = _MARK.fullmatch(text, max(start, 0))
        if mark is None or not _cites(mark[1], known):
            break
        text = text[:start].rstrip(" ,;\n")
    return text if text and text != answer.rstrip(" .\n") else answer


def _cites(mark: str, known: Collection[str]) -> bool:
    ids = [" ".join(each.split()) for each in _ids_in(mark, known)]
    return bool(ids) and all(each in known or _NUMBER.fullmatch(each) for each in ids)


def marked_ids(answer: str, known: Collection[str]) -> list[str]:
    """The ids that stand in marks ``[...]``, in order.

    Args:
        answer: the submitted text.
        known: ids that are read whole; other marks are split at commas and semicolons.

    >>> marked_ids("Lyon [2, 5][Stanton, Tennessee]", {"Stanton, Tennessee"})
    ['2', '5', 'Stanton, Tennessee']
    """
    marks = _MARK.findall(answer[:_MAX_CHARACTERS])
    return [each for mark in marks for each in _ids_in(mark, known)]


def _ids_in(mark: str, known: Collection[str]) -> list[str]:
    whole = mark.strip()
    if " ".join(whole.split()) in known:
        return [whole]
    return list(filter(None, re.split(r"\s*[,;]\s*", whole)))


def invented_quotes(answer: str, sources: Iterable[str], known: Collection[str] = ()) -> list[str]:
    """The quotations of at least three words that stand in none of the texts.

    Quotation and texts go through the same normal form: which dash, quote or space was typed does
    not matter, one digit does. Where a quotation leaves words out (``...``), its parts must stand
    in one text in this order. Quotation marks are double ones of any script, also typed as two
    single ones, and the single ones that are drawn as a pair; an inch behind a digit is none. An
    answer that stands in quotation marks as a whole quotes nothing.

    Args:
        answer: the submitted text.
        sources: what was there to quote.
        known: ids that a citation mark at the end may name.
    """
    text = _SINGLE.sub(r'"\1"', _TWO_FOR_ONE.sub('"', without_marks(answer, known)))
    text = unify(_ELLIPSIS.sub(_OMITTED, text))
    quotes = [] if _QUOTATION.fullmatch(text) else _QUOTATION.findall(text)
    wanted = {quote: _parts(quote) for quote in quotes}
    wanted = {quote: parts for quote, parts in wanted.items() if _is_long(parts)}
    if not wanted:
        return []
    texts = [f" {_words(source)} " for source in sources]
    return [
        quote.replace(_OMITTED, "...")
        for quote, parts in wanted.items()
        if not any(_stands_in(text, parts) for text in texts)
    ]


def _parts(quote: str) -> list[str]:
    return list(filter(None, map(_words, quote.split(_OMITTED))))


def _is_long(parts: list[str]) -> bool:
    return sum(len(part.split()) for part in parts) >= _MIN_WORDS


def _stands_in(text: str, parts: list[str]) -> bool:
    place = 0
    for part in parts:
        found = text.find(f" {part} ", place)
        if found < 0:
            return False
        place = found + len(part) + 1
    return True


def _words(text: str) -> str:
    return " ".join(read_forms(text, articles=True).words)
