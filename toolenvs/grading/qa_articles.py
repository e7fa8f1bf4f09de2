"""Which *a*, *an* and *the* of a short answer are articles, and which are names.

*The* before a word is an article. *A* and *an* may be letters and names (``Vitamin A deficiency``,
``An Lushan``), so they are articles only where English has one.
"""

from __future__ import annotations

import re

ARTICLES = frozenset({"a", "an", "the"})

_WORD = re.compile(r"\w+")
_FOUND = re.compile(r'(?:(?<=[\s"])|^)(?:(the)\s+(?=\S*?\w)|(an?)\s+(?=["\w]))', re.IGNORECASE)
_TAKES_AN = re.compile(r'"?(?![bcdfgjklmnpqrstvwxyzBCDFGJKLMNPQRSTVWXYZ][a-z])')
_JOINED = re.compile(r"(?:and|or|is|are|of|to)\b", re.IGNORECASE)
_OF_A_LETTER = re.compile(
    r"(?:(?:flat|sharp|major|minor|natural|positive|negative)\b ?)+"
    r"(?:$|[^\w\s]|(?:scale|key|chord|triad|blood|type|rh)\b)",
    re.IGNORECASE,
)
_LETTERED = (
    "vitamin vitamins group groups hepatitis influenza type types class classes grade grades"
)
_LETTERED += " schedule category division serie series level part section appendix exhibit figure"
_LETTERED += " model option"
"""Words behind which a small letter names one of several."""
_KINDS = frozenset(_LETTERED.split())
_NEAR = 40
"""Characters around an article that are looked at; longer words are none of the lists'."""


def without_articles(text: str) -> str:
    """Leave the articles out; a text of nothing but articles stays (the band *The The*).

    *The* is one. *A* is one at the beginning and behind a mark (``Rogue One: A ...``), and small
    also behind a word, unless letters name the kinds of that word's thing (``vitamin a``). It is a
    letter before *and*, *or*, *is*, *are*, *of*, *to*; a capital *A* also as a note or blood group
    (``A minor``, ``A positive type``, but ``A minor basilica``). *An* is one unless a consonant
    other than *h* and a small letter follow.

    Args:
        text: single-spaced, with its capitals.
    """
    if all(word in ARTICLES for word in re.findall(r"[\w.]+", text.casefold())):
        return text
    return _FOUND.sub(lambda found: "" if _is_article(found) else found[0], text)


def _is_article(found: re.Match[str]) -> bool:
    if found[1]:
        return True
    word, text = found[2], found.string
    follows = text[found.end() : found.end() + _NEAR]
    if word.casefold() == "an":
        return _TAKES_AN.match(follows) is not None
    if _JOINED.match(follows) or (word == "A" and _OF_A_LETTER.match(follows)):
        return False
    before = text[max(found.start() - _NEAR, 0) : found.start()].rstrip()
    if not before or not before[-1].isalnum():
        return True
    *others, last = _WORD.findall(before.casefold())
    joins = last in {"and", "or"}  # of "groups B and a ...", a is one of them
    counts = last[-1].isdigit() or (joins and others and len(others[-1]) == 1)
    return word == "a" and last not in _KINDS and not counts
