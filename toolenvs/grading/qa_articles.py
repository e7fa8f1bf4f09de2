"""Which *a*, *an* and *the* of a short answer are articles, and which are names.

*The* before a word is an article. *A* and *an* may be letters and names (``Vitamin A deficiency``,
``An Lushan``), so they are articles only where English has one.
"""

from __future__ import annotations

import re

ARTICLES = frozenset({"a", "an", "the"})

_FOUND = re.compile(r'(?:(?<=[\s"])|^)(the|an?)\s+(?=["\w])', re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TAKES_AN = re.compile(r'"?(?![bcdfgjklmnpqrstvwxyzBCDFGJKLMNPQRSTVWXYZ][a-z])')
_LETTER = re.compile(
    r"(?:and|or|is|are|of|to|flat|sharp|major|minor|natural|positive|negative)\b",
    re.IGNORECASE,
)
_PREPOSITIONS = "about after against as at between by during for from in into like of on over per"
_PREPOSITIONS += " than through to under upon with"
_BEFORE_ARTICLES = frozenset(f"{_PREPOSITIONS} and or be been had has have is was".split())
_NEAR = 20
"""Characters around an article that are looked at; longer words are none of the lists'."""


def without_articles(text: str) -> str:
    """Leave the articles out; a text of nothing but articles stays (the band *The The*).

    *A* is one at the beginning, behind a mark (``Rogue One: A ...``) and behind a preposition,
    *and*, *or* or a form of *be* and *have* (``upon a time``), there only in lower case. It is a
    letter before *and*, *or*, *is*, *are*, *of*, *to*, and before what makes it a note or a blood
    group (``A minor``, ``A positive``). *An* is one unless a consonant other than *h* and a small
    letter follow.

    Args:
        text: single-spaced, with its capitals.
    """
    if all(word in ARTICLES for word in re.findall(r"[\w.]+", text.casefold())):
        return text
    return _FOUND.sub(lambda found: "" if _is_article(found) else found[0], text)


def _is_article(found: re.Match[str]) -> bool:
    word, text = found[1].casefold(), found.string
    follows = text[found.end() : found.end() + _NEAR]
    if word == "the":
        return True
    if word == "an":
        return _TAKES_AN.match(follows) is not None
    if _LETTER.match(follows):
        return False
    before = text[max(found.start() - _NEAR, 0) : found.start()].rstrip()
    if not before or not before[-1].isalnum():
        return True
    if found[1] == "A":
        return False
    *others, last = _WORD.findall(before.casefold())
    joins = last in {"and", "or"}  # of "groups B and a ...", a is one of them
    return last in _BEFORE_ARTICLES and not (joins and others and len(others[-1]) == 1)
