"""The official comparison of SQuAD v1.1 and of HotpotQA, to the bit, for published numbers.

It is known to be blind: ``-8`` is ``8``, ``2.75`` is ``275``, ``C++`` is ``C``, ``Vitamin A`` is
``vitamin``, and a gold answer ``A`` is empty. Rewards should use ``toolenvs.grading.qa`` as it is.

Source: the evaluation scripts of Rajpurkar et al. 2016, arXiv:1606.05250, and of Yang et al. 2018,
arXiv:1809.09600. Search-R1 and FlashRAG normalise alike.
"""

from __future__ import annotations

import re
import string
from collections import Counter

import msgspec

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ALONE = frozenset({"yes", "no", "noanswer"})


class Overlap(msgspec.Struct, frozen=True):
    """The tokens that an answer shares with a gold answer: F1, precision, recall, each 0 to 1."""

    f1: float = 0.0
    precision: float = 0.0
    recall: float = 0.0


def normalize(text: str) -> str:
    """In lower case, without ASCII punctuation, then without articles, then single-spaced."""
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(answer: str, gold: str) -> bool:
    """Tell whether the two normalise to one text, be it the empty one."""
    return normalize(answer) == normalize(gold)


def overlap(answer: str, gold: str) -> Overlap:
    """Compare the tokens of the two as SQuAD v1.1 does: all 0 where they share none."""
    return token_overlap(normalize(answer).split(), normalize(gold).split())


def hotpot_overlap(answer: str, gold: str) -> Overlap:
    """Compare as HotpotQA does: ``yes``, ``no`` and ``noanswer`` equal themselves or nothing."""
    said, meant = normalize(answer), normalize(gold)
    if said != meant and not _ALONE.isdisjoint((said, meant)):
        return Overlap()
    return token_overlap(said.split(), meant.split())


def token_overlap(said: list[str], meant: list[str]) -> Overlap:
    """Count the tokens that two lists share, each as often as both have it.

    The order of the operations is the official one, so that no bit differs.
    """
    shared = (Counter(said) & Counter(meant)).total()
    if shared == 0:
        return Overlap()
    precision = 1.0 * shared / len(said)
    recall = 1.0 * shared / len(meant)
    return Overlap((2 * precision * recall) / (precision + recall), precision, recall)
