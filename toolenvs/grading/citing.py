"""Citations and quotations in an answer: ``Lyon [2]``, ``... "the river-side town" [2]``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from toolenvs.grading.qa_text import read_forms, unify

_MARK = re.compile(r"\[([^\[\]\n]{1,300})\]")
_QUOTATION = re.compile(r'(?<!\w)"([^"\n]{1,2000})"(?!\w)')
_MIN_WORDS = 3
_MAX_CHARACTERS = 10_000


def without_marks(answer: str) -> str:
    """The answer without the marks ``[...]`` at its end; unchanged if it is nothing but marks.

    >>> without_marks("Lyon [2][5]")
    'Lyon'
    """
    text = answer.rstrip(" .\n")
    while text.endswith("]"):
        start = text.rfind("[")
        if not _MARK.fullmatch(text, max(start, 0)):
            break
        text = text[:start].rstrip()
    return text if text and text != answer.rstrip(" .\n") else answer


def marked_ids(answer: str, known: Collection[str]) -> list[str]:
    """The ids that stand in marks ``[...]``, in order.

    Args:
        answer: the submitted text.
        known: ids that are read whole; other marks are split at commas and semicolons.

    >>> marked_ids("Lyon [2, 5][Stanton, Tennessee]", {"Stanton, Tennessee"})
    ['2', '5', 'Stanton, Tennessee']
    """
    ids: list[str] = []
    for mark in _MARK.findall(answer[:_MAX_CHARACTERS]):
        whole = mark.strip()
        parts = [whole] if whole in known else re.split(r"\s*[,;]\s*", whole)
        ids += filter(None, parts)
    return ids


def invented_quotes(answer: str, sources: Iterable[str]) -> list[str]:
    """The quotations of at least three words that stand in none of the texts.

    Quotation and texts go through the same normal form: which dash, quote or space was typed does
    not matter, one digit does. An answer that stands in quotation marks as a whole quotes nothing.

    Args:
        answer: the submitted text; its first 10,000 characters are read.
        sources: what was there to quote.
    """
    text = unify(without_marks(answer)[:_MAX_CHARACTERS])
    quotes = [] if _QUOTATION.fullmatch(text) else _QUOTATION.findall(text)
    wanted = {quote: _words(quote) for quote in quotes}
    wanted = {quote: words for quote, words in wanted.items() if len(words.split()) >= _MIN_WORDS}
    if not wanted:
        return []
    texts = [f" {_words(source)} " for source in sources]
    return [
        quote for quote, words in wanted.items() if not any(f" {words} " in text for text in texts)
    ]


def _words(text: str) -> str:
    return " ".join(read_forms(text, articles=True).words)
