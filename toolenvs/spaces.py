"""The space of all texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

MAX_CHARS = 1_000_000
_SAMPLE_CHARS = (
    "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 .,:;!?<>/{}[]()\"'\\\n"
)


class Unicode(spaces.Text):
    """Any Unicode text of ``min_length`` to ``max_length`` characters.

    ``gymnasium.spaces.Text`` knows a text by an explicit set of characters, letters and digits by
    default; this subclass takes every character, so that each message a model may write is inside.
    It is a ``Text`` so that wrappers and libraries which know that class know this one.

    ``AsyncVectorEnv(shared_memory=True)`` cannot hold texts (for a plain ``Text`` it returns
    rubbish without an error); with this space it refuses and names ``shared_memory=False``.

    >>> Unicode(10).contains("π ≈ 3.14")
    True
    """

    def __init__(
        self,
        max_length: int = MAX_CHARS,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        # The parent keeps the set of characters only to sample and flatten, both overridden here.
        super().__init__(max_length, min_length=min_length, charset=" ", seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text of any characters has no array of fixed size."""
        return False

    def contains(self, x: Any) -> bool:
        """True for a ``str`` of an allowed length, whatever its characters."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short printable text from this space's own generator, equal in every process.

        Raises:
            ValueError: A mask or probability was given; neither has a meaning here.
        """
        if mask is not None or probability is not None:
            raise ValueError("Unicode.sample takes no mask and no probability.")
        longest = min(self.max_length, max(self.min_length, 64))
        length = int(self.np_random.integers(self.min_length, longest + 1))
        picks = self.np_random.integers(0, len(_SAMPLE_CHARS), size=length)
        return "".join(_SAMPLE_CHARS[i] for i in picks)

    def __repr__(self) -> str:
        return f"Unicode({self.min_length}, {self.max_length})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Unicode)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    __hash__ = None  # type: ignore[assignment]  # as every space: it is mutable


@create_shared_memory.register(Unicode)
def _refuse_shared_memory(space: Unicode, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError(
        f"{space} has no fixed size, so it cannot live in shared memory: "
        "use AsyncVectorEnv(..., shared_memory=False)."
    )
