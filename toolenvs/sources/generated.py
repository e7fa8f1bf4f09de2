"""Problems made from a seed, of a dozen kinds that need code: ``generated:seed=0,n=100``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from toolenvs.sources import _number_problems as numbers
from toolenvs.sources import _structure_problems as structures
from toolenvs.sources._calls import python_call
from toolenvs.sources._options import choices, read_options, whole_number
from toolenvs.sources._problem import Problem
from toolenvs.types import Task

KINDS: dict[str, Callable[[np.random.Generator], Problem]] = {
    make.__name__: make
    for make in (
        numbers.digit_sum,
        structures.grid_paths,
        numbers.modular_chain,
        structures.shortest_path,
        numbers.prime_sum,
        structures.coin_ways,
        numbers.recurrence,
        structures.words,
        numbers.root_powers,
        structures.queue_wait,
        numbers.dice_probability,
        structures.cell_automaton,
        numbers.calendar_days,
    )
}
_OPTIONS = ("seed", "n", "kinds")
_MAX_TASKS = 10_000_000


class Generated:
    """Tasks made on demand: task ``i`` depends on the seed, ``i`` and the list of kinds alone.

    Kinds take turns. The id names all that a task depends on: ``digit_sum-0-26`` is of kind
    ``digit_sum``, seed 0, row 26, and has the same content wherever that id occurs.

    Args:
        location: ``"seed=0,n=100,kinds=digit_sum+words"``, each part optional: the seed (0 or
            more), the number of tasks (100), the kinds (all).
        family: taken by every source; these tasks are always ``math_tir``.

    Raises:
        UsageError: An option is not one of these, or its value is out of range.
    """

    name = "generated"
    rejected: Sequence[str] = ()

    def __init__(self, location: str = "", *, family: str = "math_tir") -> None:
        options = read_options(location, _OPTIONS, source="generated problems")
        self.seed = whole_number(options, "seed", default=0, low=0, high=2**63 - 1)
        self._n = whole_number(options, "n", default=100, low=1, high=_MAX_TASKS)
        self.kinds = choices(options.get("kinds", ""), KINDS, kind="a kind of generated problem")

    @property
    def ids(self) -> Sequence[str]:
        """The id of each task; made when asked for."""
        return [self._id(index) for index in range(self._n)]

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> Task:
        row = range(self._n)[operator.index(index)]
        kind = self.kinds[row % len(self.kinds)]
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, row])))
        problem = KINDS[kind](rng)
        return Task(
            id=self._id(row),
            prompt=problem.prompt,
            answer=problem.answer,
            gold_calls=(python_call(problem.program),),
            data={"kind": kind},
        )

    def _id(self, row: int) -> str:
        return f"{self.kinds[row % len(self.kinds)]}-{self.seed}-{row}"
