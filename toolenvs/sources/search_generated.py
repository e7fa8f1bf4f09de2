"""Questions about an invented world, made from a seed, with the corpus that answers them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.corpora import Passages
from toolenvs.errors import UsageError
from toolenvs.sources._invented import Dice, World
from toolenvs.sources._inventedquestions import QUESTIONS, Asked
from toolenvs.sources._options import choices, read_options, whole_number
from toolenvs.sources._searchtask import search_task
from toolenvs.types import Task

_OPTIONS = ("seed", "n", "people", "kinds")
_TRIES = 1000


class SearchGenerated:
    """Tasks such as ``search_generated:seed=0,n=500``, whose support is known.

    Kinds of questions take turns, from one hop to three, comparisons, yes and no; no question
    occurs twice. Fewer tasks of a seed are the first of more. The id names all that a task depends
    on: ``mayor-0-200-10`` is of kind ``mayor``, seed 0, 200 people, row 10.

    Args:
        location: ``"seed=0,n=100,people=200,kinds=mayor+born_earlier"``, each part optional: the
            seed (0), the number of tasks (100), the people in the world (200; the corpus has about
            1.7 passages for each), the kinds (all).
        family: taken by every source; these tasks are always ``search``.

    Attributes:
        corpus: the passages on all that there is.
        resources: the same as an option of the runtime.

    Raises:
        UsageError: An option is not one of these, its value is out of range, or the world has too
            few different questions of a kind.
    """

    name = "search_generated"
    rejected: Sequence[str] = ()

    def __init__(self, location: str = "", *, family: str = "search") -> None:
        options = read_options(location, _OPTIONS, source=self.name)
        self.seed = whole_number(options, "seed", default=0, low=0, high=2**63 - 1)
        n = whole_number(options, "n", default=100, low=1, high=20_000)
        self._people = whole_number(options, "people", default=200, low=50, high=300)
        self.kinds = choices(options.get("kinds", ""), QUESTIONS, kind="a kind of question")
        world = World(self.seed, people=self._people)
        self.corpus = Passages(world.passages(), name=f"invented-{self.seed}-{self._people}")
        self.resources: Mapping[str, Mapping[str, Any]] = {"index": {"corpus": self.corpus}}
        self._asked = self._ask(world, n)
        self.ids: Sequence[str] = [self._id(row) for row in range(n)]

    def __len__(self) -> int:
        return len(self._asked)

    def __getitem__(self, index: int) -> Task:
        row = range(len(self))[operator.index(index)]
        asked = self._asked[row]
        return search_task(
            task_id=self.ids[row],
            prompt=asked.text,
            golds=[asked.answer],
            supporting=asked.supporting,
            data={"kind": self._kind(row), "hops": asked.hops},
        )

    def _kind(self, row: int) -> str:
        return self.kinds[row % len(self.kinds)]

    def _id(self, row: int) -> str:
        return f"{self._kind(row)}-{self.seed}-{self._people}-{row}"

    def _ask(self, world: World, n: int) -> list[Asked]:
        made: dict[str, Asked] = {}
        for row in range(n):
            dice = Dice(f"question {self._id(row)}")
            for _ in range(_TRIES):
                asked = QUESTIONS[self._kind(row)](world, dice)
                if asked.text not in made:
                    made[asked.text] = asked
                    break
            else:
                raise UsageError(
                    f"search_generated: n={n} is more than there are different questions of kind "
                    f"{self._kind(row)!r}; ask for at most {row}, more people or other kinds."
                )
        return list(made.values())
