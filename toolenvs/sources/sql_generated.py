"""SQL questions made from a seed, on databases made from a seed: ``sql_generated:seed=0,n=100``."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from toolenvs.errors import UsageError
from toolenvs.sources._databases import built_folder
from toolenvs.sources._options import choices, read_options, whole_number
from toolenvs.sources._sql_kinds import KINDS
from toolenvs.sources._sql_pieces import Asked
from toolenvs.sources._sql_schema import Dice
from toolenvs.sources._sql_schemas import SCHEMAS
from toolenvs.sources._sql_world import World, world
from toolenvs.sources._sqlsource import Databases
from toolenvs.sources._sqltask import Question
from toolenvs.types import Task

_OPTIONS = ("seed", "n", "kinds", "schemas")
_MAX_TASKS = 10_000_000
_TRIES = 200


class SqlGenerated:
    """Tasks made on demand: task ``i`` depends on the seed, ``i``, the schemas and the kinds alone.

    Schemas and kinds take turns. Each gold was run when its task was made: it returns rows, no tie
    decides it, and one that changes the database does change it. Databases come with instances, on
    all of which a query must be right; on one of them at least the gold's result is another one,
    so that no answer that is written out is right.

    Args:
        location: ``"seed=0,n=100,schemas=library+shop,kinds=listing+highest"``, each part optional:
            the seed (0 or more), the number of tasks (100), the schemas and the kinds (all).
        family: taken by every source; these tasks are always ``sql``.

    Attributes:
        resources: what sandboxes need in order to read the databases.

    Raises:
        UsageError: An option is not one of these, or its value is out of range.
        DataError: The databases cannot be written.
    """

    name = "sql_generated"
    rejected: Sequence[str] = ()

    def __init__(self, location: str = "", *, family: str = "sql") -> None:
        options = read_options(location, _OPTIONS, source=self.name)
        self.seed = whole_number(options, "seed", default=0, low=0, high=2**63 - 1)
        self._n = whole_number(options, "n", default=100, low=1, high=_MAX_TASKS)
        self.schemas = choices(options.get("schemas", ""), SCHEMAS, kind="a generated database")
        self.kinds = choices(options.get("kinds", ""), KINDS, kind="a kind of SQL question")

    @property
    def resources(self) -> Mapping[str, Mapping[str, Any]]:
        """Options of the runtimes that the tasks need."""
        return Databases(built_folder()).resources

    @property
    def ids(self) -> Sequence[str]:
        """The id of each task; made when asked for."""
        return [self._id(row) for row in range(self._n)]

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> Task:
        row = range(self._n)[operator.index(index)]
        schema, kind = self._turn(row)
        made = world(schema, self.seed)
        asked = fit_question(made, kind, f"{self.seed}/{row}")
        made.build()
        return question(asked, made, self._id(row), kind=kind).task()

    def _turn(self, row: int) -> tuple[str, str]:
        """The schema and kind of a row; after all pairs they begin again."""
        return (
            self.schemas[row % len(self.schemas)],
            self.kinds[row // len(self.schemas) % len(self.kinds)],
        )

    def _id(self, row: int) -> str:
        schema, kind = self._turn(row)
        return f"{schema}-{kind}-{self.seed}-{row}"


def fit_question(world: World, kind: str, seed: str) -> Asked:
    """Draw questions of a kind until one's gold is fit.

    Raises:
        UsageError: None was found; another seed has other databases.
    """
    maker, _ = KINDS[kind]
    for attempt in range(_TRIES):
        asked = maker(world, Dice("question", world.schema.name, kind, seed, attempt))
        if world.is_change(asked.gold) if asked.changes else world.is_fit(asked.gold, n=asked.rows):
            return asked
    raise UsageError(
        f"sql_generated: the database {world.schema.name!r} of seed {world.seed} has no fit "
        f"question of kind {kind!r} for {seed}; leave the kind out, or take another seed."
    )


def question(asked: Asked, world: World, task_id: str, *, kind: str) -> Question:
    """The question as a row of a data set has it."""
    return Question(
        id=task_id,
        text=asked.text,
        gold=asked.gold,
        database=world.database(writable=asked.changes),
        grading=asked.grading,
        data={"kind": kind, "difficulty": KINDS[kind][1]},
    )
