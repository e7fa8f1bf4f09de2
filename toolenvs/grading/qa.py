"""Grade a short answer to a question against the gold answer and its aliases.

An answer is graded whole: nothing is picked out of it. By default two answers are one if they share
a normal form (``qa_text``): spelling does not matter, while digits, signs and symbols do. The modes
``squad_compat`` and ``hotpot_compat`` give what the official scripts give (``squad``).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from toolenvs.grading import squad
from toolenvs.grading.policy import Verdict
from toolenvs.grading.qa_policy import QaPolicy, read_policy
from toolenvs.grading.qa_text import Forms, is_degenerate, read_forms
from toolenvs.grading.qa_values import digits_for_words, read_date
from toolenvs.grading.squad import Overlap

__all__ = ["Overlap", "QaPolicy", "Verdict", "check_gold", "grade", "overlap", "read_policy"]

MAX_CHARACTERS = 10_000
"""Of an answer; a longer one, also when it is written out, is no short answer and is wrong."""

_DEFAULT = QaPolicy()
_NOT_GRADABLE = Verdict(False, "gold_not_gradable", "gold", gradable=False)
_YES_NO = frozenset({("yes",), ("no",)})


def grade(gold: str, answer: str, *, policy: QaPolicy = _DEFAULT) -> Verdict:
    """Tell whether ``answer`` equals ``gold`` or one of the policy's aliases.

    A gold *yes* or *no* is met by an answer that says just that. Aliases that can be no answer (see
    ``check_gold``) are passed over, except in the compatible modes, which pass over nothing.

    Args:
        gold: the gold answer.
        answer: the submitted text, at most 10,000 characters (in the compatible modes, any).
        policy: the rules of this task.

    Returns:
        The verdict, with reason ``equal``, ``different``, ``no_answer``, ``unparsed_answer`` (too
        long) or ``gold_not_gradable``; no text raises an exception. In the compatible modes a blank
        answer is compared as any other.

    >>> grade("3,000", "3000").correct, grade("C++", "C").correct
    (True, False)
    """
    golds = _usable(gold, policy)
    if not golds:
        return _NOT_GRADABLE
    if _is_too_long(answer, policy):
        return Verdict(False, "unparsed_answer", "too_long")
    if not answer.strip() and not policy.official:
        return Verdict(False, "no_answer", "empty")
    rules = (_rule_of_equality(each, answer, policy) for each in golds)
    rule = next(filter(None, rules), "")
    return Verdict(bool(rule), "equal" if rule else "different", rule)


def overlap(gold: str, answer: str, *, policy: QaPolicy = _DEFAULT) -> Overlap:
    """Compare the words of ``answer`` with those of ``gold`` and of each alias; the best F1 counts.

    An answer that ``grade`` finds equal has 1. *Yes* and *no*, as gold or as answer, have 1 or
    nothing (in ``squad_compat`` they are words like others). In the mode ``ids`` it is the F1 of
    the two sets of ids.

    Returns:
        F1, precision and recall, each from 0 to 1; all 0 for an empty answer, one of more than
        10,000 characters (but in the compatible modes), and where no gold answer can be graded.
    """
    if _is_too_long(answer, policy):
        return Overlap()
    golds = _usable(gold, policy)
    found = (_overlap(each, answer, policy) for each in golds)
    return max(found, key=lambda each: each.f1, default=Overlap())


def check_gold(gold: str, policy: QaPolicy = _DEFAULT) -> Verdict:
    """Tell whether a gold answer, or one of the policy's aliases, can be graded.

    It cannot if it is empty, *the*, *an* or different articles, marks that stand for no answer
    (``---``, ``)``, ``?``, ``=``), or longer than 10,000 characters. In the compatible modes it
    cannot only if it normalises to nothing (*A*, *The The*, ``!!!``), since then an answer of
    nothing would be right.

    Returns:
        ``gradable`` and ``correct`` are both True or both False.
    """
    if all(is_unusable(each, policy) for each in _golds(gold, policy)):
        return _NOT_GRADABLE
    return Verdict(True, "equal", "gold")


def is_unusable(gold: str, policy: QaPolicy = _DEFAULT) -> bool:
    """Tell whether this one text can be no gold answer; see ``check_gold``."""
    if _is_too_long(gold, policy) or not gold.strip():
        return True
    if policy.mode == "ids":
        return not read_ids(gold)
    return not squad.normalize(gold) if policy.official else is_degenerate(gold)


def read_ids(text: str) -> frozenset[str]:
    """The ids in a text that lists them, separated by white space or semicolons."""
    return frozenset(filter(None, (part.strip(",") for part in re.split(r"[\s;]+", text))))


def _is_too_long(text: str, policy: QaPolicy) -> bool:
    if policy.official:
        return False
    if len(text) > MAX_CHARACTERS:
        return True
    unfolds = policy.mode == "strict" and not text.isascii()  # one character may stand for 18
    return unfolds and len(unicodedata.normalize("NFKC", text)) > MAX_CHARACTERS


def _golds(gold: str, policy: QaPolicy) -> list[str]:
    return [gold, *map(str, policy.aliases)]


def _usable(gold: str, policy: QaPolicy) -> Sequence[str]:
    golds = _golds(gold, policy)
    usable = [each for each in golds if not is_unusable(each, policy)]
    return golds if usable and policy.official else usable


def _rule_of_equality(gold: str, answer: str, policy: QaPolicy) -> str:
    """The name of the rule by which they are equal, ``""`` if they are not."""
    if policy.mode == "ids":
        return "ids" if read_ids(answer) == read_ids(gold) else ""
    if policy.official:
        return policy.mode if squad.exact_match(answer, gold) else ""
    meant, said = _gold_forms(gold, policy), _forms(answer, policy)
    if not meant.texts.isdisjoint(said.texts):
        return "yes_no" if meant.words in _YES_NO else "text"
    if policy.number_words and digits_for_words(meant.words) == digits_for_words(said.words):
        return "number_words"
    if policy.dates == "calendar":
        date = read_date(meant.plain)
        if date is not None and date == read_date(said.plain):
            return "date"
    return ""


def _overlap(gold: str, answer: str, policy: QaPolicy) -> Overlap:
    if policy.mode == "squad_compat":
        return squad.overlap(answer, gold)
    if policy.mode == "hotpot_compat":
        return squad.hotpot_overlap(answer, gold)
    if policy.mode == "ids":
        return squad.token_overlap(list(read_ids(answer)), list(read_ids(gold)))
    if not answer.strip():
        return Overlap()
    if _rule_of_equality(gold, answer, policy):
        return Overlap(1.0, 1.0, 1.0)
    meant, said = _gold_forms(gold, policy).words, _forms(answer, policy).words
    if meant in _YES_NO or said in _YES_NO:
        return Overlap()
    if policy.number_words:
        meant, said = digits_for_words(meant), digits_for_words(said)
    return squad.token_overlap(list(said), list(meant))


def _forms(answer: str, policy: QaPolicy) -> Forms:
    return _latest_forms(answer, policy.articles == "keep", policy.diacritics == "fold")


@functools.lru_cache(maxsize=8)  # one answer is compared with many aliases
def _latest_forms(answer: str, articles: bool, fold: bool) -> Forms:
    return read_forms(answer, articles=articles, fold=fold)


def _gold_forms(gold: str, policy: QaPolicy) -> Forms:
    return _kept_forms(gold, policy.articles == "keep", policy.diacritics == "fold")


@functools.lru_cache(maxsize=4096)
def _kept_forms(gold: str, articles: bool, fold: bool) -> Forms:
    return read_forms(gold, articles=articles, fold=fold)
