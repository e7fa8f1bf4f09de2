"""Words of a query that say what it is about, and the part of a text that says it best."""

from __future__ import annotations

import re
from collections import Counter

_STOPPED = (
    "a an the of in on at by for with to from and or is are was were be been did do does has have "
    "had that this which what who whom whose when where why how it its as s t"
)
STOP_WORDS = frozenset(_STOPPED.split())
"""Words of English that a question is made of: they are looked for only where there are no others.

Chosen, with the weight of titles, on 69 questions of other sets than the ones that results are
reported on: articles, the commonest prepositions, question words and auxiliaries. Longer lists (33
to 127 words) found less there, as did none.
"""

SNIPPET_CHARS = 360
_WORD = re.compile(r"\w+")
_ENDINGS = ("ing", "ed", "es", "s")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+")


def snippet(text: str, query: str, *, most: int = SNIPPET_CHARS) -> str:
    """The part of ``text`` that holds most of the query's words, in one line.

    A word counts once, and more the rarer it is in the text; of equal parts the first is taken. It
    begins with a sentence where one begins near. ``...`` stands where text was left out.

    Args:
        text: a passage's text.
        query: what was searched for.
        most: characters of the part, dots not counted.
    """
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    first, last = _best_span(flat, query, most)
    start = _beginning(flat, earliest=max(0, last - most), latest=first, most=most)
    end = len(flat)
    if start + most < end:
        end = max(flat.rfind(" ", start, start + most + 1), start + most // 2, last)
    before, after = "... " if start else "", " ..." if end < len(flat) else ""
    return f"{before}{flat[start:end].strip()}{after}"


def _best_span(text: str, query: str, most: int) -> tuple[int, int]:
    """From the first to the last of the query's words in the best window; 0 to 0 without any."""
    wanted = {_root(word) for word in _WORD.findall(query)}
    wanted = {word for word in wanted if word not in STOP_WORDS} or wanted
    places = [
        (match.start(), match.end(), root)
        for match in _WORD.finditer(text)
        if (root := _root(match[0])) in wanted and match.end() - match.start() <= most
    ]
    weight = {root: 1.0 / count for root, count in Counter(r for _, _, r in places).items()}
    inside: Counter[str] = Counter()
    best = total = 0.0
    span = (0, 0)
    first = 0
    for _, end, root in places:
        total += weight[root] * (inside[root] == 0)
        inside[root] += 1
        while end - places[first][0] > most:
            gone = places[first][2]
            inside[gone] -= 1
            total -= weight[gone] * (inside[gone] == 0)
            first += 1
        if total > best + 1e-9:
            best, span = total, (places[first][0], end)
    return span


def _beginning(text: str, *, earliest: int, latest: int, most: int) -> int:
    """Where the part begins: with a sentence if one begins in between, else with a word."""
    if earliest == 0 and latest <= most // 3:
        return 0
    ends = [match.end() for match in _SENTENCE_END.finditer(text, earliest, latest + 1)]
    if ends:
        return ends[-1]
    around = max(earliest, latest - most // 3)
    space = text.find(" ", around, latest)
    return latest if space < 0 else space + 1


def _root(word: str) -> str:
    """A word without its case and its commonest endings: good enough to find it again."""
    small = word.casefold()
    for ending in _ENDINGS:
        if len(small) > len(ending) + 3 and small.endswith(ending):
            return small.removesuffix(ending)
    return small
