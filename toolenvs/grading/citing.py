"""Citations and quotations in an answer: ``Lyon [2]``, ``... "the river-side town" [2]``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from toolenvs.grading.qa_text import read_forms, unify

_BRACKETS = str.maketrans("【】［］〔〕", "[][][]")
_SEPARATOR = re.compile(r"(\s*[,;]\s*)")
_LABEL = re.compile(r"(?:ids?|docs?|documents?|passages?|sources?|refs?)\b:?\s*", re.IGNORECASE)
_AROUND = " \"'`*_^()[]\u201c\u201d\u2018\u2019"
_NUMBER = re.compile(r"[0-9]+")
_BETWEEN = re.compile(r"\s*(?:[,;&]|and)?\s*")
_TWO_FOR_ONE = re.compile(r"['`\u00b4\u2018\u2019]{2}")  # ``...'' is "..."
_SINGLE = re.compile(r"[\u2018\u201a]((?:[^\u2018\u2019\u201a]|\u2019(?=\w))+)[\u2018\u2019](?!\w)")
_ELLIPSIS = re.compile(r"[\[(]?(?:\.{3,}|\u2026)[\])]?")
_OMITTED = "\ue000"
"""Stands for an ellipsis, which is no part of a normal form."""
_QUOTATION = re.compile(r'(?:(?<!\d)"|"(?=\w))([^"]+)"')  # behind a digit it may mean inches
_QUOTED = re.compile('["\u201c\u201e\u00ab][^"\u201c\u201d\u00bb]+["\u201c\u201d\u00bb]')
_FOOTNOTE = re.compile(r"\[(?:\d{1,3}|citation needed)\]")
_CHANGED = re.compile(r"\[([^\W\d_])\](?=[^\W\d_])")  # [t]he
_MIN_WORDS = 3
_MAX_CHARACTERS = 10_000


class Mark(NamedTuple):
    """Where a mark ``[...]`` stands in an answer, and the ids in it."""

    start: int
    end: int
    ids: tuple[str, ...]


def without_marks(answer: str, known: Collection[str] = ()) -> str:
    """The answer without its citation marks ``[...]``.

    A mark holds ids that are known, or, where nothing but marks follows, numbers; other brackets
    belong to the answer (``yes [no]``). An answer of nothing but marks is unchanged.

    Args:
        answer: the submitted text.
        known: ids that a mark may name.

    >>> without_marks("Lyon [2][Rhone, river]", {"Rhone, river"}), without_marks("yes [no]")
    ('Lyon', 'yes [no]')
    """
    marks = _citations(answer, known)
    if not marks:
        return answer
    text, place = "", 0
    for mark in marks:
        before = answer[place : mark.start]
        if not (place and _BETWEEN.fullmatch(before)):
            text = _joined(text, before)
        place = mark.end
    text = _joined(text, answer[place:]).strip().rstrip(" .,;\n")
    return text if text.strip(_AROUND) else answer


def _joined(text: str, more: str) -> str:
    gap = " " if text and more[:1].isalnum() else ""
    return f"{text.rstrip()}{gap}{more}"


def _citations(answer: str, known: Collection[str]) -> list[Mark]:
    """The marks that cite, in order."""
    found: list[Mark] = []
    after, at_end = len(answer), True
    for mark in reversed(list(_marks(answer, known))):
        between = answer[mark.end : after]
        at_end = at_end and (
            not any(map(str.isalnum, between))
            or (bool(found) and _BETWEEN.fullmatch(between) is not None)
        )
        cites = all(each in known or (at_end and _NUMBER.fullmatch(each)) for each in mark.ids)
        if mark.ids and cites:
            found.append(mark)
        else:
            at_end = False
        after = mark.start
    return found[::-1]


def _marks(text: str, known: Collection[str]) -> Iterator[Mark]:
    """The marks in a text; ids that hold brackets are read as parts of one if they are known."""
    whole = [re.escape(each).replace(r"\ ", r"\s+") for each in known if re.search(r"[\[\]]", each)]
    choices = "|".join([*sorted(whole, key=len, reverse=True), r"[^\[\]\n]"])
    most = _most_separators(known)
    for found in re.finditer(rf"\[((?:{choices})++)\]", text.translate(_BRACKETS)):
        start, end = found.span(1)
        yield Mark(*found.span(), tuple(_split(text[start:end], known, most)))


def marked_ids(answer: str, known: Collection[str]) -> list[str]:
    """The ids that stand in marks ``[...]``, in order; see ``split_ids``.

    Numbers inside a quotation that are no known ids are footnotes of what is quoted.

    Args:
        answer: the submitted text; of a long one the first 10,000 characters.
        known: ids that are read whole.

    >>> marked_ids("Lyon [2, 5][Stanton, Tennessee; 7]", {"Stanton, Tennessee"})
    ['2', '5', 'Stanton, Tennessee', '7']
    """
    text = answer[:_MAX_CHARACTERS]
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    return [
        each
        for mark in _marks(text, known)
        for each in mark.ids
        if each in known
        or not _NUMBER.fullmatch(each)
        or not any(start < mark.start and mark.end < end for start, end in quoted)
    ]


def split_ids(text: str, known: Collection[str]) -> list[str]:
    """The ids in a text that lists them with commas or semicolons, which ids may hold themselves.

    Neighbouring parts are one id if they are known as one, the longest first; a text of which no
    part is known or a number is one id. An id may stand in quotation marks or brackets, and behind
    ``^`` or a word such as *id* or *source*.

    Args:
        text: such as ``Stanton, Tennessee; 7``.
        known: ids in one line without double blanks.
    """
    return _split(text, known, _most_separators(known))


def _split(text: str, known: Collection[str], most: int) -> list[str]:
    parts = _SEPARATOR.split(text)
    ids: list[str] = []
    at = 0
    while at < len(parts):
        ends = range(min(at + 2 * most, len(parts) - 1), at - 1, -2)
        readings = ((end, _known_as("".join(parts[at : end + 1]), known)) for end in ends)
        end, name = next(((end, name) for end, name in readings if name), (at, _bare(parts[at])))
        ids.append(name)
        at = end + 2
    if any(each in known or _NUMBER.fullmatch(each) for each in ids):
        return list(filter(None, ids))
    return list(filter(None, [_bare(text)]))


def _most_separators(known: Collection[str]) -> int:
    """How many separators an id holds at most; one with more than 20 is only found alone."""
    return min(max((len(_SEPARATOR.findall(each)) for each in known), default=0), 20)


def _known_as(text: str, known: Collection[str]) -> str:
    flat = " ".join(text.split())
    return next((name for name in (flat, _bare(flat)) if name in known), "")


def _bare(text: str) -> str:
    flat = " ".join(unicodedata.normalize("NFKC", text).split()).strip(_AROUND)
    return _LABEL.sub("", flat, count=1).strip(_AROUND) if _LABEL.match(flat) else flat


def invented_quotes(answer: str, sources: Iterable[str], known: Collection[str] = ()) -> list[str]:
    """The quotations of at least three words that stand in none of the texts.

    Quotation and texts go through the same normal form: which dash, quote or space was typed does
    not matter, one digit does; footnotes, citation marks and the brackets of ``[t]he`` are out.
    Where a quotation leaves words out (``...``), its parts must stand in one text in this order.
    Quotation marks are double ones of any script, also typed as two single ones, and the single
    ones that are drawn as a pair; an inch behind a digit is none. An answer that stands in
    quotation marks as a whole quotes nothing.

    Args:
        answer: the submitted text.
        sources: what was there to quote.
        known: ids that a citation mark may name.
    """
    said = _without_notes(without_marks(answer, known), known)
    text = _SINGLE.sub(r'"\1"', _TWO_FOR_ONE.sub('"', said))
    text = unify(_ELLIPSIS.sub(_OMITTED, text))
    quotes = [] if _QUOTATION.fullmatch(text) else _QUOTATION.findall(text)
    wanted = {quote: _parts(quote) for quote in quotes}
    wanted = {quote: parts for quote, parts in wanted.items() if _is_long(parts)}
    if not wanted:
        return []
    texts = [f" {_words(_without_notes(source, known))} " for source in sources]
    return [
        quote.replace(_OMITTED, "...")
        for quote, parts in wanted.items()
        if not any(_stands_in(text, parts) for text in texts)
    ]


def _without_notes(text: str, known: Collection[str]) -> str:
    """A text without what is put into quotations: footnotes, marks, the brackets of a change."""
    kept, place = [], 0
    for mark in _marks(text, known):
        if all(each in known for each in mark.ids):
            kept.append(text[place : mark.start])
            place = mark.end
    bare = " ".join([*kept, text[place:]])
    return _CHANGED.sub(r"\1", _FOOTNOTE.sub(" ", bare))


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
    forms = read_forms(text, articles=True)
    return "" if forms.empty else forms.plain
