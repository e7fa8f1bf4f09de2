"""Articles, and names that are spelled like them."""

from __future__ import annotations

import pytest

from toolenvs.grading.qa import grade


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("The Who", "Who"),
        ("Lord of the Rings", "The Lord of Rings"),
        ("a dog", "dog"),
        ("A Tribe Called Quest", "Tribe Called Quest"),
        ("Rogue One: A Star Wars Story", "Rogue One Star Wars Story"),
        ('"A Day"', "Day"),
        ("a cat and a dog", "cat and dog"),
        ("member of a band", "member of band"),
        ("An Inconvenient Truth", "Inconvenient Truth"),
        ("an hour", "hour"),
        ("an FBI agent", "FBI agent"),
        ("an 8", "8"),
        ("Vitamin A deficiency", "vitamin a deficiency"),
        ("an lushan", "An Lushan"),
        ("a minor basilica", "minor basilica"),
        ("A minor basilica", "minor basilica"),
        ("a natural disaster", "natural disaster"),
        ("A natural disaster", "natural disaster"),
        ("a positive integer", "positive integer"),
        ("a major scale", "major scale"),
        ("a minor", "A minor"),
        ("won a Grammy", "won Grammy"),
        ("form a higher alkane", "form higher alkane"),
        ("the $1 coin", "$1 coin"),
        ("the .NET Framework", ".NET Framework"),
        ("the #4", "#4"),
        ("the -8", "-8"),
    ],
)
def test_articles_do_not_count(gold: str, answer: str) -> None:
    """Where English has one."""
    assert grade(gold, answer).correct
    assert grade(answer, gold).correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("vitamin a deficiency", "vitamin deficiency"),
        ("Vitamin A deficiency", "vitamin deficiency"),
        ("group a streptococcus", "group streptococcus"),
        ("influenza a virus", "influenza virus"),
        ("vitamin a", "vitamin"),
        ("vitamins D and A deficiency", "vitamins D and deficiency"),
        ("vitamins d and a deficiency", "vitamins d and deficiency"),
        ("vitamins b, a and c", "vitamins b and c"),
        ("A and E", "and E"),
        ("A to Z", "to Z"),
        ("A minor", "minor"),
        ("A major scale", "major scale"),
        ("A flat major", "flat major"),
        ("A positive blood", "positive blood"),
        ("hepatitis a virus", "hepatitis virus"),
        ("a and b", "b"),
        ("5 a side", "5 side"),
        ("A positive", "positive"),
        ("An Lushan", "Lushan"),
        ("an lushan", "Lushan"),
        ("The The", "The"),
    ],
)
def test_names_count(gold: str, answer: str) -> None:
    """A letter or a name is as much of an answer as any word."""
    assert not grade(gold, answer).correct
    assert not grade(answer, gold).correct
