"""Every exception of the package.

    ToolenvsError
    ├── UsageError (also a ValueError)   the caller passed something wrong
    │   ├── UnknownNameError             no plugin, task or setting has that name
    │   └── DataError                    a file's row cannot be used
    ├── EpisodeOverError                 ``step`` after the end
    ├── CacheMissError                   a replay met a call that was never recorded
    └── RuntimeFailure                   the machine failed: never scored, never cached

What the *agent* does wrong is never an exception: it is a ``ToolError`` inside a ``ToolResult``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_LIST, _EXAMPLES = 20, 5


class ToolenvsError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(ToolenvsError, ValueError):
    """The caller passed a value that cannot be used; the message says what is allowed."""


class UnknownNameError(UsageError):
    """A name is not known.

    Args:
        kind: what the name was to stand for, with its article: ``"a reward"``.
        name: the name that was asked for.
        known: the names that exist.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"{name!r} is not the name of {kind}.{hint} Known: {_listed(names)}.")


class DataError(UsageError):
    """A file or one of its rows cannot be used; the message starts with ``path:line``."""


class EpisodeOverError(ToolenvsError):
    """``step`` was called after the episode ended; call ``reset`` first."""


class CacheMissError(ToolenvsError):
    """A replay met a call that was never recorded in this state."""


class RuntimeFailure(ToolenvsError):  # noqa: N818 - the field's word; an Error here would be the agent's
    """The machine failed: a dead container, a lost connection, a full host.

    Args:
        kind: a short, stable word that ends up in ``info["failure"]``, such as ``"sandbox_died"``,
            ``"no_engine"``, ``"capacity"``, ``"protocol"``, ``"diverged"``.
        message: what happened and what to do, for a person.
        reason: the few words that failures of one cause share, such as ``"connection refused"``, by
            which they are counted; ``""`` where the kind says it all.
    """

    def __init__(self, kind: str, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason

    def __reduce__(self) -> tuple[type[RuntimeFailure], tuple[str, str], dict[str, str]]:
        return type(self), (self.kind, str(self)), {"reason": self.reason}


def _listed(names: list[str]) -> str:
    """All of a short list; of a long one, such as a file's task ids, only what they look like."""
    if len(names) <= _LONGEST_LIST:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:_EXAMPLES])} and {len(names) - _EXAMPLES} more"
