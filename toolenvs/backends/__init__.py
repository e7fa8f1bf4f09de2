"""Plugins that find passages: one file for each; ``make(name)`` builds one.

A backend searches either a corpus, which it then takes as the option ``corpus``, or the world
outside, and then it is ``external``.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from toolenvs.errors import UsageError
from toolenvs.registry import Registry
from toolenvs.types import Passage

LONGEST_ID = 500
"""Characters of an id as it is shown; an address is an id too."""


def shown_id(name: str) -> str:
    """An id as tools show it, and as agents therefore give it back.

    It is one line without double blanks, so that no id begins a line; one of more than 500
    characters ends with a digest in place of what is left out.
    """
    flat = " ".join(name.split())
    if len(flat) <= LONGEST_ID:
        return flat
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{flat[: LONGEST_ID - 20]}...#{digest}"


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One passage that a search found.

    Attributes:
        id: the passage's id, by which it can be opened.
        title: its title, ``""`` if it has none.
        score: the larger the better; comparable within one search only.
        snippet: the part of its text that fits the query best, or all of a short text.
        url: where it stands in the web, ``""`` if nowhere.
    """

    id: str
    title: str
    score: float
    snippet: str
    url: str = ""


@runtime_checkable
class Backend(Protocol):
    """Finds passages; every method may be called from many threads at once.

    A backend that builds or loads something first has ``prepare()``, which does it, blocking, and
    is harmless to call again; ``search`` and ``open`` do it too where nobody else did.

    A backend that answers within about a millisecond may have ``inline = True``: it is then asked
    on the caller's own thread.
    """

    name: str
    external: bool
    """True when it asks the world outside, so that equal calls may give different results."""

    def fingerprint(self) -> str:
        """Name everything that a result depends on: backend, version, settings and corpus."""
        ...

    def search(self, query: str, top_k: int) -> Sequence[Hit]:
        """Find the ``top_k`` best passages, the best first; fewer, or none, where no more fit.

        Args:
            query: any text; no character of it has a meaning of its own.
            top_k: at least 1.

        Raises:
            AgentFaultError: The query cannot be asked (``toolenvs.web``).
            RuntimeFailure: The machine, or a server, failed.
        """
        ...

    def open(self, id_or_url: str) -> Passage | None:
        """Return the passage with this id, else one with this URL, else None.

        A corpus's passages are also found by their id as it is shown, see ``shown_id``.

        Raises:
            AgentFaultError: The page is refused, or does not come (``toolenvs.web``).
            RuntimeFailure: The machine, or a server, failed.
        """
        ...


registry: Registry[Backend] = Registry("a search backend", __name__)
register = registry.register
names = registry.names
get = registry.get
make = registry.make


def make_over(corpus: object, name: str, options: Mapping[str, Any]) -> Backend:
    """Build the backend of this name; one that searches a corpus gets this one.

    Args:
        corpus: what to search, where neither the backend nor its options say otherwise; None if
            there is none.
        name: the backend's.
        options: its keyword options.

    Raises:
        UnknownNameError: No backend, or no option of it, has that name.
        UsageError: It needs a corpus and has none, or an option is out of range.
    """
    taken = inspect.signature(get(name)).parameters.get("corpus")
    given = dict(options)
    if taken is not None and corpus is not None:
        given.setdefault("corpus", corpus)
    if taken is not None and taken.default is taken.empty and given.get("corpus") is None:
        raise UsageError(
            f"the backend {name!r} searches a corpus, and the tasks bring none: add "
            ",corpus=FILE to their source, or give runtimes={'index': {'corpus': FILE}}."
        )
    return make(name, **given)
