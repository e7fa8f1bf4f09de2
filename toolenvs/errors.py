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
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        super().__init__(f"{name!r} is not the name of {kind}.{hint} Known: {shown or 'none'}.")


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
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type[RuntimeFailure], tuple[str, str]]:
        return type(self), (self.kind, str(self))
