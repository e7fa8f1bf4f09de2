"""Why a call was not found: the recording that comes nearest, and in what it differs."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from toolenvs import exactjson
from toolenvs.cache.entry import unpack
from toolenvs.cache.schema import entries
from toolenvs.errors import DataError
from toolenvs.statekey import CallKey

if TYPE_CHECKING:
    from toolenvs.cache.store import Store

_CANDIDATES = 50  # of each kind
_SHOWN = 120  # characters of one value
_WORDS = {
    "after": "it was made after other calls",
    "restarted": "there the session had been lost before",
    "state.task": "the task was another",
}


def explain_miss(store: Store, key: CallKey) -> str:
    """One sentence on the nearest recording.

    Candidates are the same call in other states, other calls in the same state, and the newest of
    the tool; the fewest differences win, then the most similar arguments.
    """
    wanted = exactjson.decode(key.request)
    found = list(_candidates(store, key))
    if not found:
        return f"nothing was ever recorded of {key.tool!r} in {store.database.place}."
    nearest = min(found, key=lambda request: _distance(wanted, request))
    reasons = [_told(place, a, b) for place, a, b in _differences(wanted, nearest)]
    reasons = reasons or ["it is this very call, under another key or set aside"]
    return f"nearest recording: {_call(nearest)}; " + "; ".join(reasons) + "."


def _candidates(store: Store, key: CallKey) -> Iterator[Any]:
    newest = sa.select(entries.c.request).order_by(entries.c.created.desc()).limit(_CANDIDATES)
    for condition in (
        entries.c.call == key.call,
        sa.and_(entries.c.state == key.state, entries.c.tool == key.tool),
        entries.c.tool == key.tool,
    ):
        yield from _requests(store, newest.where(condition))


def _requests(store: Store, query: sa.Select[Any]) -> Iterator[Any]:
    for row in store.select(lambda c: c.execute(query).all()):
        with contextlib.suppress(DataError, exactjson.NotJSONError):  # a damaged one is no help
            yield exactjson.decode(unpack(row.request))


def _distance(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[int, float]:
    ours, theirs = (_short(request["arguments"], 2000) for request in (wanted, found))
    alike = difflib.SequenceMatcher(None, ours, theirs, autojunk=False).quick_ratio()
    return len(list(_differences(wanted, found))), -alike


def _differences(wanted: Any, found: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    whole = place in _WORDS or (place == "state.runtime" and not wanted)
    if whole or not (isinstance(wanted, dict) and isinstance(found, dict)):
        if wanted != found:
            yield place, wanted, found
        return
    for name in sorted({*wanted, *found}):
        inner = f"{place}.{name}" if place else name
        yield from _differences(wanted.get(name), found.get(name), inner)


def _told(place: str, wanted: Any, found: Any) -> str:
    if place == "after" and not found:
        return "it was made as the first call"
    if place == "state.runtime":
        return "nothing in this cache was made in the sandbox that was asked for here"
    if place in _WORDS:
        return _WORDS[place]
    return f"{place.removeprefix('state.')} is {_short(found)} there, {_short(wanted)} here"


def _call(request: Mapping[str, Any]) -> str:
    return f"{request['tool']['name']} {_short(request['arguments'])}"


def _short(value: Any, limit: int = _SHOWN) -> str:
    text = exactjson.encode(value).decode()
    return text if len(text) <= limit else f"{text[:limit]}..."
