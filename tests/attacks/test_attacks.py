"""Each attack of the list against each runtime, beside a victim that lives through all of them."""

from __future__ import annotations

import pytest

from tests.attacks.attack import Attack
from tests.attacks.ground import Ground
from tests.attacks.table import ATTACKS, DOCS, with_table


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_attack_ends_as_stated(ground: Ground, attack: Attack) -> None:
    """Its status, time and output are as stated; nobody else notices, and nothing is left of it."""
    ground.check(attack)


def test_names_are_unique() -> None:
    """An attack is named once, so that the table can be read."""
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_the_documents_table_is_this_list() -> None:
    """``python -m tests.attacks.table`` was run after the last change of the list."""
    text = DOCS.read_text(encoding="utf-8")
    assert with_table(text) == text
