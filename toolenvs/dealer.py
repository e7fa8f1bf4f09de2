"""What a reset plays: the draw that its seed and options ask for, or the next of the stream."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from toolenvs.errors import UnknownNameError
from toolenvs.ranges import checked_whole
from toolenvs.tasks import Draw, TaskSampler

OPTIONS = ("task_id", "group", "sandbox_seed", "sample")
"""Options of a reset, see ``ToolEnv.reset``."""


class Dealer:
    """Deals one draw for each reset.

    A draw that was dealt and never ``taken``, since nothing could begin, is dealt again by the next
    reset without seed and options: no sample of a group is lost.

    Args:
        sampler: the stream of tasks.
    """

    def __init__(self, sampler: TaskSampler) -> None:
        self._sampler = sampler
        self._first: Draw | None = None
        self._rest = range(0)  # numbers of the samples that the first one's group still has
        self._pending: Draw | None = None

    def deal(
        self, rng: np.random.Generator, *, seed: int | None, options: Mapping[str, Any]
    ) -> Draw:
        """The draw for a reset.

        Args:
            rng: the environment's own generator.
            seed: the reset's seed.
            options: the reset's options, of ``OPTIONS``.

        Raises:
            UnknownNameError: There is no such task or option.
            UsageError: An option's value is none that it may have.
        """
        unknown = set(options) - set(OPTIONS)
        if unknown:
            raise UnknownNameError("an option of reset", min(unknown), OPTIONS)
        if seed is not None or options:
            self._pending = self._new(rng, seed, options)
        elif self._pending is None:
            self._pending = self._of_group() or self._new(rng, seed, options)
        return self._pending

    def taken(self) -> None:
        """The draw dealt last is played, or was given up as an episode that failed."""
        self._pending = None

    def twin(self) -> Dealer:
        """A second dealer that stands at the same place."""
        twin = Dealer(copy.copy(self._sampler))
        twin._first, twin._rest, twin._pending = self._first, self._rest, self._pending
        return twin

    def _new(self, rng: np.random.Generator, seed: int | None, options: Mapping[str, Any]) -> Draw:
        changes = {
            name: checked_whole(f"options[{name!r}]", options[name])
            for name in ("sandbox_seed", "sample")
            if name in options
        }
        rest = range(1, checked_whole("options['group']", options.get("group", 1), least=1))
        if "task_id" in options:
            draw = self._sampler.pick(options["task_id"], rng, seed=seed)
        else:
            draw = self._sampler.draw(rng, seed=seed)
        draw = msgspec.structs.replace(draw, **changes)
        self._first, self._rest = draw, rest
        return draw

    def _of_group(self) -> Draw | None:
        if self._first is None or not self._rest:
            return None
        sample, self._rest = self._rest[0], self._rest[1:]
        return msgspec.structs.replace(self._first, sample=sample)
