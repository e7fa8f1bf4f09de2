"""The compatible modes against an oracle that was written apart from them, letter by letter."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolenvs.grading import squad
from toolenvs.grading.qa import QaPolicy, grade, overlap

ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

pieces = st.sampled_from(
    (
        *("a", "an", "the", "A", "The", "cat", "Cat", "yes", "no", "noanswer", "8", "-8", "2.75"),
        *("C++", " ", "  ", "\u00a0", "\t", "\n", ".", ",", "-", "–", "’", "'", "é", "ß", "İ"),
        *("a-the", "_a_"),
    )
)
texts = st.one_of(st.lists(pieces, max_size=8).map("".join), st.text(max_size=20))


def oracle_words(text: str) -> list[str]:
    """Lower case; ASCII punctuation goes; a, an, the go where they stand as words; split."""
    kept = [char for char in text.lower() if char not in ASCII_PUNCTUATION]
    out: list[str] = []
    run: list[str] = []
    for char in [*kept, " "]:
        if char.isalnum() or char == "_":
            run.append(char)
            continue
        word = "".join(run)
        out.append(" " if word in {"a", "an", "the"} else word)
        out.append(char)
        run = []
    return "".join(out).split()


def oracle_f1(answer: str, gold: str) -> float:
    """The official formula, with the shared words counted by striking them out."""
    said, left = oracle_words(answer), oracle_words(gold)
    size, same = len(left), 0
    for word in said:
        if word in left:
            left.remove(word)
            same += 1
    if not same:
        return 0.0
    precision, recall = same / len(said), same / size
    return 2 * precision * recall / (precision + recall)


def oracle_hotpot_f1(answer: str, gold: str) -> float:
    """HotpotQA's: yes, no and noanswer are all or nothing."""
    said, meant = " ".join(oracle_words(answer)), " ".join(oracle_words(gold))
    for one in (said, meant):
        if one in ("yes", "no", "noanswer") and said != meant:
            return 0.0
    return oracle_f1(answer, gold)


@given(texts)
@example("The The")
@example("It's a_the U.S.-based, an' so")
def test_normalisation_is_the_official_one(text: str) -> None:
    """On any text, marks and word boundaries beyond ASCII included."""
    assert squad.normalize(text) == " ".join(oracle_words(text))


@given(texts, texts)
@example("a", "the")
def test_em_and_f1_are_bit_equal(answer: str, gold: str) -> None:
    """The same floats, not nearly the same."""
    assert squad.exact_match(answer, gold) == (oracle_words(answer) == oracle_words(gold))
    assert squad.overlap(answer, gold).f1 == oracle_f1(answer, gold)
    assert squad.hotpot_overlap(answer, gold).f1 == oracle_hotpot_f1(answer, gold)


@given(texts, st.lists(texts, min_size=1, max_size=3))
@example("", ["Lyon", "A"])
def test_the_modes_take_the_best_gold(answer: str, golds: list[str]) -> None:
    """As the official scripts do, whenever a gold answer can be graded, and whatever is said."""
    for mode, f1 in (("squad_compat", oracle_f1), ("hotpot_compat", oracle_hotpot_f1)):
        policy = QaPolicy(mode=mode, aliases=tuple(golds[1:]))  # type: ignore[arg-type]
        verdict = grade(golds[0], answer, policy=policy)
        if not any(map(oracle_words, golds)):
            assert not verdict.gradable
            continue
        best = max(f1(answer, gold) for gold in golds)
        assert overlap(golds[0], answer, policy=policy).f1 == best
        equal = any(oracle_words(answer) == oracle_words(gold) for gold in golds)
        assert verdict.correct == equal


def test_the_modes_have_no_rule_of_their_own() -> None:
    """A blank answer equals a gold answer that normalises to nothing, and length is no matter."""
    policy = QaPolicy(mode="squad_compat", aliases=("A",))
    assert grade("Lyon", " \n", policy=policy).correct
    long = "Lyon " * 5000
    assert grade(long, long, policy=policy).correct
    assert overlap("Lyon", long, policy=policy).f1 == oracle_f1(long, "Lyon")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("2.75", "275"), ("-8", "8"), ("C++", "C"), ("Vitamin A", "vitamin"), ("$5M", "5m")],
)
def test_what_the_official_script_is_blind_to(gold: str, answer: str) -> None:
    """These are right for it and wrong by default: published numbers and rewards are two things."""
    assert grade(gold, answer, policy=QaPolicy(mode="squad_compat")).correct
    assert not grade(gold, answer).correct
