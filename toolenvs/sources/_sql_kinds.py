"""All kinds of tasks on generated databases: their makers, and how difficult they are."""

from __future__ import annotations

from collections.abc import Mapping

from toolenvs.sources import _sql_changes as changes
from toolenvs.sources import _sql_joins as joins
from toolenvs.sources import _sql_questions as questions
from toolenvs.sources._sql_pieces import Maker

KINDS: Mapping[str, tuple[Maker, str]] = {
    maker.__name__: (maker, difficulty)
    for difficulty, makers in (
        ("easy", (questions.listing, questions.count)),
        ("easy", (questions.different_values, questions.aggregate)),
        ("medium", (questions.count_by_group, questions.highest, questions.missing)),
        ("medium", (questions.not_this_value, joins.children_of_some, questions.share)),
        ("hard", (questions.groups_with_many, questions.count_by_year, joins.linked)),
        ("hard", (joins.number_by_parent, questions.above_average)),
        ("extra", (joins.count_with_zeros, joins.most_children, joins.childless)),
        ("extra", (joins.both_kinds, questions.best_of_each_group)),
        ("easy", (changes.insert_row, changes.fill_missing)),
        ("medium", (changes.set_value, changes.delete_rows)),
        ("hard", (changes.raise_number, changes.delete_of_some)),
    )
    for maker in makers
}
"""Makers by kind, with the difficulty of what they ask; all of ``changes`` change the database."""
