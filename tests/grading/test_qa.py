"""Short answers: what of their spelling matters, aliases, yes and no, and golds that are none."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import UsageError
from toolenvs.grading.qa import QaPolicy, check_gold, grade, overlap, read_policy
from toolenvs.grading.qa_text import read_forms

EQUAL = [
    ("Lyon", "lyon."),
    ("Lyon", "**Lyon**"),
    ("Lyon", "“Lyon”"),
    ("New York", "_New York_"),
    ("The Who", "Who"),
    ("Once Upon a Time", "Once Upon A Time"),
    ("The Lord of the Rings", "Lord of the Rings"),
    ("A. A. Milne", "A.A. Milne"),
    ("J. K. Rowling", "JK Rowling"),
    ("U.S.", "US"),
    ("p.m.", "PM"),
    ("Spider-Man", "Spider Man"),
    ("Spider-Man", "Spiderman"),
    ("AC/DC", "ACDC"),
    ("M*A*S*H", "MASH"),
    ("F-16", "F16"),
    ("Node.js", "NodeJS"),
    ("O’Brien", "OBrien"),
    ("Hawaiʻi", "Hawai'i"),
    ("Schindler's List", "Schindlers List"),
    ("Simon & Garfunkel", "Simon and Garfunkel"),
    ("AT&amp;T", "AT & T"),
    ("naïve", "nai\u0308ve"),
    ("ﬁne", "fine"),
    ("Ｌｙｏｎ", "Lyon"),
    ("Straße", "STRASSE"),
    ("東京。", "東京"),
    ("¿Qué?", "qué"),
    ("2.75", "(2.75)."),
    ("-8", "−8"),
    ("-8", "–8"),
    ("-8", "- 8"),
    ("1914–1918", "1914-1918"),
    ("1914 – 1918", "1914—1918"),
    ("3,000", "3000"),
    ("1,00,000", "100000"),
    ("10\u202f000", "10,000"),
    ("54\u00a0Mbit/s", "54 Mbit/s"),
    ("5%", "5 %"),
    ("5%", "5 percent"),
    ("$5M", "$ 5m"),
    (".5", "0.5"),
    ("½", "1/2"),
    ("2½", "2 1/2"),
    ("10²", "10^2"),
    ("H₂O", "H2O"),
    ("٣", "3"),
    ("Nike™", "Nike"),
    ("Ly\u200bon\ufeff", "Lyon"),
    ("Super Bowl LII,", "Super Bowl LII"),
    ("Paris, France", "Paris,France"),
    ("Yahoo!", "Yahoo"),
    ("A", "a."),
    ("A", "(A)"),
    ("!!!", "!!!"),
    ("The The", "the the"),
    ("*", "*"),
    ("yes", "Yes."),
    ("no", "**No**"),
    ("-8", "--8"),
    ("-8", "-- 8"),
    ("1914-1918", "1914--1918"),
    ("1914-1918", "1914 -- 1918"),
    ("Lyon, France", "Lyon -- France"),
    ("Lat: -5", "Lat:-5"),
    ("COVID-19", "COVID19"),
    ("Apollo-11", "Apollo 11"),
    ("Mambo No. 5", "Mambo No.5"),
    ("Psalm 5", "Psalm:5"),
    ("10-year", "10 year"),
    ("3D", "3-D"),
    ("Jeopardy!", "Jeopardy"),
    ("Apollo 11", "'Apollo 11'"),
    ("Apollo 11", '"Apollo 11"'),
    ("1990s", "1990's"),
    ("'90s", "90s"),
    ("6'2\"", "6'2"),
    ("5'", "5\u2032"),
    ("1/2", "1 / 2"),
    ("5*6", "5 * 6"),
    ("NaCl", "NaCl-"),
    ("8", "8 -"),
    ("J. K. Rowling", "J K Rowling"),
    ("George H. W. Bush", "George H W Bush"),
    ("Washington, D.C.", "Washington D C"),
    ("5−x", "5-x"),
    ("n−1", "n-1"),
    ("F−16", "F-16"),
    ("50\\%", "50%"),
    ("\\$5M", "$5M"),
    ("'She's Mine Pt. 1'", "She's Mine Pt. 1"),
    ("U2\u00a0360", "U2 360"),
    ("WALL·E", "WALL-E"),
]
DIFFERENT = [
    ("2.75", "275"),
    ("2.75", "2,75"),
    ("-8", "8"),
    ("8", "-8"),
    ("8", "- 8"),
    ("+5", "5"),
    ("C++", "C"),
    ("C", "C++"),
    ("C#", "C"),
    (".NET", "NET"),
    ("A+", "A"),
    ("A-", "A"),
    ("O−", "O"),
    ("5%", "5"),
    ("5", "5%"),
    ("5‰", "5"),
    ("$5M", "5M"),
    ("$5", "€5"),
    ("#1", "1"),
    ("1914-1918", "19141918"),
    ("1914-1918", "1914"),
    ("9/11", "911"),
    ("12:30", "1230"),
    ("10²", "102"),
    ("10−8", "108"),
    ("1e-8", "1e8"),
    ("UTC−5", "UTC+5"),
    ("UTC-5", "UTC 5"),
    ("2½", "21/2"),
    ("3,000", "3"),
    ("3.000", "3000"),
    ("1, 2", "12"),
    ("6'2\"", "62"),
    ("Vitamin A", "Vitamin"),
    ("Vitamin A deficiency", "vitamin deficiency"),
    ("The The", "the"),
    ("The The", "some band"),
    ("A", "B"),
    ("A", "the"),
    ("!!!", "?"),
    ("!!!", "some band"),
    ("E♭", "E"),
    ("São Paulo", "Sao Paulo"),
    ("Lyon", "Not Lyon"),
    ("Lyon", "Lyon or Paris"),
    ("Lyon", ""),
    ("no", "no doubt about it: yes"),
    ("yes", "yes, they are"),
    ("no", "not"),
    ("no", "No. 1"),
    ("seven", "7"),
    ("05/06/2018", "5 June 2018"),
    ("8", "-- 8"),
    ("8", "--8"),
    ("USD-5", "USD5"),
    ("USD-5", "USD 5"),
    ("EUR-5", "EUR5"),
    ("pH-7", "pH7"),
    ("Lat:-5", "Lat:5"),
    ("Lat:-5", "Lat 5"),
    ("lat-5", "lat 5"),
    ("x:-5", "x5"),
    ("x_-5", "x5"),
    ("x.-5", "x5"),
    ("x/-5", "x5"),
    ("x/-5", "x/5"),
    ("x*-5", "x5"),
    ("x*5", "x5"),
    ("x*5", "x 5"),
    ("5*x", "5x"),
    ("km/5", "km5"),
    ("km/5", "km 5"),
    ("1/x", "1x"),
    ("24/7", "24 7"),
    ("5*6", "5 6"),
    ("5 * 6", "5 6"),
    ("3 / 4", "3 4"),
    ("5!", "5"),
    ("5!!", "5!"),
    ("5'", "5"),
    ('5"', "5"),
    ("5'", '5"'),
    ("Ca2-", "Ca2"),
    ("SO4-", "SO4"),
    ("10-", "10"),
    ("1914-", "1914"),
    ("Cl-", "Cl"),
    ("J K Rowling", "J L Rowling"),
    ("j k", "jk"),
    ("A, B", "AB"),
    ("5−x", "5x"),
    ("10−y", "10 y"),
    ("2n−1", "2n 1"),
    ("2n−1", "2n1"),
    ("n-1", "n1"),
    ("n-1", "n 1"),
    ("a−b", "ab"),
    ("1_2", "12"),
    ("Windows 7\u00a0100", "Windows 7100"),
]


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_spelling_does_not_matter(gold: str, answer: str) -> None:
    """Equal either way round, and then F1 is 1."""
    assert grade(gold, answer).correct
    assert grade(answer, gold).correct
    assert overlap(gold, answer).f1 == 1.0


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_numbers_signs_and_symbols_matter(gold: str, answer: str) -> None:
    """One that is off is another answer."""
    verdict = grade(gold, answer)
    assert not verdict.correct
    assert verdict.gradable
    assert verdict.reason in ("different", "no_answer")


@pytest.mark.parametrize(
    ("gold", "answer"), [("2.75", "275"), ("-8", "8"), ("C++", "C"), ("5%", "5"), ("$5M", "5M")]
)
def test_f1_does_not_pay_for_them_either(gold: str, answer: str) -> None:
    """A number with another sign or point is another word."""
    assert overlap(gold, answer).f1 == 0.0


def test_f1_counts_words() -> None:
    """Precision and recall of the words, the best of the aliases; hedging costs."""
    found = overlap("Greenwich Village, New York City", "in New York City")
    assert (found.precision, found.recall) == (3 / 4, 3 / 5)
    assert overlap("x", "New York", policy=QaPolicy(aliases=("New York City",))).f1 == 0.8
    assert overlap("Lyon", "Lyon Paris Oslo").f1 == 0.5
    assert overlap("Lyon", "Lyon Lyon").f1 == pytest.approx(2 / 3)
    assert overlap("東京都", "東京").f1 == 0.8


@pytest.mark.parametrize(
    "answer", ["no doubt about it: yes", "yes no", "", "they are not", "no no"]
)
def test_yes_and_no_are_all_or_nothing(answer: str) -> None:
    """A gold of yes or no is not met by a part, nor is another gold by a yes or no."""
    for gold in ("yes", "no", "No."):
        assert overlap(gold, answer).f1 == 0.0
    assert overlap("No Country for Old Men", "no").f1 == 0.0
    assert overlap("yes", "YES!").f1 == 1.0


def test_aliases_are_as_right_as_the_answer() -> None:
    """In any place, with spaces around, and empty ones harm nothing."""
    policy = QaPolicy(aliases=(" Lyon", "", "---", "the"))
    assert grade("Lugdunum", "lyon.", policy=policy).correct
    assert not grade("Lugdunum", "", policy=policy).correct
    assert not grade("Lugdunum", "the", policy=policy).correct
    assert grade("", "Lyon", policy=policy).correct


@pytest.mark.parametrize("gold", ["", "  ", "the", "An", "---", ")", "?", "...", "\u200b", '""'])
def test_what_can_be_no_gold_answer(gold: str) -> None:
    """It is not gradable, whatever is answered, and nothing equals it."""
    assert not check_gold(gold).gradable
    verdict = grade(gold, gold)
    assert (verdict.gradable, verdict.correct) == (False, False)
    assert overlap(gold, gold).f1 == 0.0


@pytest.mark.parametrize("gold", ["A", "The The", "!!!", "a", "---"])
def test_what_the_official_script_cannot_grade(gold: str) -> None:
    """It would take nothing for an answer; some of these are answers by default."""
    assert not check_gold(gold, QaPolicy(mode="squad_compat")).gradable
    assert check_gold(gold).gradable == (gold != "---")


def test_what_may_be_declared() -> None:
    """Diacritics, articles, numbers in words and dates, each both ways."""
    fold, words = QaPolicy(diacritics="fold"), QaPolicy(number_words=True)
    assert grade("São Paulo", "sao paulo", policy=fold).correct
    assert grade("Łódź", "Lodz", policy=fold).correct
    assert not grade("The Who", "Who", policy=QaPolicy(articles="keep")).correct
    assert grade("one season", "1 season", policy=words).correct
    assert grade("twenty-first", "21st", policy=words).correct
    assert grade("1.5 million", "1,500,000", policy=words).correct
    assert not grade("one season", "2 seasons", policy=words).correct
    assert overlap("seven samurai", "7 ninjas", policy=words).f1 == 0.5
    assert grade("May 18, 2018", "18 May 2018").correct
    assert grade("2018-05-18", "Friday, May 18th, 2018").correct
    assert grade("Feb 2018", "February 2018").correct
    for wrong in ("Monday 18 May 2018", "Monday, May 18, 2018", "Saturday 14 October 1066"):
        right = wrong.replace("Monday", "Friday")
        assert grade(wrong[wrong.index(" ") + 1 :], right).correct
        assert grade(wrong[wrong.index(" ") + 1 :], wrong).correct == (right == wrong)
    assert not grade("May 18, 2018", "May 2018").correct
    assert not grade("May 18, 2018", "19 May 2018").correct
    assert not grade("May 18, 2018", "18 May 2018", policy=QaPolicy(dates="text")).correct


def test_ids_are_a_set() -> None:
    """In the mode for lists of documents order does not count, and ids are compared as they are."""
    policy = QaPolicy(mode="ids")
    assert grade("MED-10 MED-2", "MED-2, MED-10", policy=policy).correct
    assert not grade("MED-10 MED-2", "med-10 med-2", policy=policy).correct
    assert not grade("1 50 82", "1 50", policy=policy).correct
    assert overlap("1 50 82", "1 50 7", policy=policy).f1 == pytest.approx(2 / 3)
    assert not check_gold(" ; ", policy).gradable


def test_sizes_are_bounded() -> None:
    """A long answer is wrong and a long gold no gold; neither takes long."""
    for text in ("a " * 200_000, "1," * 200_000, "[" * 200_000, "**" * 200_000):
        assert grade("Lyon", text).rule == "too_long"
        assert overlap("Lyon", text).f1 == 0.0
        assert not check_gold(text).gradable
    pieces = ("1,111", "A. ", "--", "* ", "'", "a-", "\u00a0", "½", "'a", '5"', "-5", "5 ", "a!")
    more = ("a ", "an ", "-(", "<x", "&#", "`", "5 m", "5 m/", "5m/s")
    for piece in (*pieces, *more):
        grade("Lyon", piece * (9_000 // len(piece)))


def test_a_character_that_stands_for_many_is_counted_as_many() -> None:
    """A short answer is short also when it is written out, by default."""
    assert grade("Lyon", "\ufdfa" * 556).rule == "too_long"
    assert grade("Lyon", "\ufdfa" * 555).reason == "different"
    assert not check_gold("\ufdfa" * 556).gradable
    assert check_gold("\ufdfa" * 556, QaPolicy(mode="squad_compat")).gradable


@pytest.mark.parametrize("mark", [*":./,_\\|-!'\"*;#`<>(^", "a ", "-(", "5 m"])
def test_a_run_of_marks_takes_no_quadratic_time(mark: str) -> None:
    """Twenty times what an answer may have, inside a word and around it, is read in no time."""
    run = mark * (200_000 // len(mark) ** 2)
    for text in (f"x{run}x", f"{run}x", f"5{run}", f"5{run}5"):
        assert read_forms(text).words


def test_settings_are_checked() -> None:
    """An unknown name or value is an error that says what there is; lists and numbers are fine."""
    settings: dict[str, Any] = {"aliases": ["y", 7], "supporting": [2]}
    for policy in (QaPolicy(**settings), read_policy(settings)):
        assert grade("x", "y", policy=policy).correct
        assert grade("x", "7", policy=policy).correct
    assert read_policy({"aliases": ["x"], "supporting": ["7"]}).aliases == ("x",)
    with pytest.raises(UsageError, match="Did you mean 'aliases'"):
        read_policy({"alias": []})
    with pytest.raises(UsageError, match="grading cannot be"):
        read_policy({"mode": "fuzzy"})
    letters: Any = "Lugdunum"
    with pytest.raises(UsageError, match="aliases of grading is the text 'Lugdunum'"):
        QaPolicy(aliases=letters)


short_texts = st.one_of(
    st.text(max_size=12),
    st.lists(
        st.sampled_from([*" -.,'&/%$+#*0123`<>()", "the ", "A ", " an ", "−", "½", "²", "é", "ß"])
    ).map("".join),
    st.lists(st.sampled_from([*"-5x(", " ", "km", "mW", "MW", "/s", " am", "**", "```"])).map(
        "".join
    ),
)


@given(short_texts)
def test_every_gold_equals_itself_or_is_no_gold(text: str) -> None:
    """In every mode, and with anything that is drawn as nothing or wrapped around it."""
    for policy in (QaPolicy(), QaPolicy(mode="squad_compat"), QaPolicy(mode="ids")):
        verdict = grade(text, text, policy=policy)
        assert verdict.correct == verdict.gradable == check_gold(text, policy).gradable
        assert overlap(text, text, policy=policy).f1 == float(verdict.correct)
    if check_gold(text).gradable:
        for form in ("NFC", "NFD"):
            assert grade(text, f" {unicodedata.normalize(form, text)} \n").correct


@given(short_texts, short_texts)
def test_grading_is_symmetric_and_bounded(one: str, other: str) -> None:
    """Which of two gradable texts is the gold does not matter; F1 is 1 where they are equal."""
    if check_gold(one).gradable and check_gold(other).gradable:
        assert grade(one, other).correct == grade(other, one).correct
    found = overlap(one, other)
    assert 0.0 <= found.f1 <= 1.0
    if grade(one, other).correct:
        assert found.f1 == 1.0


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_two_numbers_are_equal_only_if_they_are(one: int, other: int) -> None:
    """Written plainly or with commas."""
    for text in (str(other), f"{other:,}", f"({other:,})"):
        assert grade(str(one), text).correct == (one == other)
