"""Counting and pruning."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from toolenvs.cache.replay_cache import CacheStats
from toolenvs.cache.schema import HEAD, damaged, entries, runtimes
from toolenvs.errors import UsageError

if TYPE_CHECKING:
    from toolenvs.cache.store import Store

_CHUNK = 500  # keys in one statement
_LARGEST = 2**63  # what a database counts to
_LATEST = 253402300799.0  # the end of the year 9999
_PLAUSIBLE = entries.c.created.between(0.0, _LATEST)
"""Whether an entry's age is one: SQLite holds texts in a number's place, too."""

_AGE = sa.case((_PLAUSIBLE, entries.c.created), else_=-1.0)  # a damaged one is the oldest


def count(store: Store) -> CacheStats:
    """Count what the cache holds."""
    column = entries.c

    def whether(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    sums = sa.select(
        sa.func.count(),
        whether(column.servable),
        whether(column.differing),
        sa.func.coalesce(sa.func.sum(column.size), 0),
        sa.func.coalesce(sa.func.min(sa.case((_PLAUSIBLE, column.created))), 0.0),
        sa.func.coalesce(sa.func.max(sa.case((_PLAUSIBLE, column.created))), 0.0),
    ).select_from(entries)
    by_tool = sa.select(column.tool, sa.func.count()).group_by(column.tool).order_by(column.tool)
    whole = store.select(lambda c: c.execute(sums).one())
    tools = {_name(row[0]): row[1] for row in store.select(lambda c: c.execute(by_tool).all())}
    file = store.database.file
    return CacheStats(
        revision=HEAD,  # else it would not be open
        entries=int(whole[0]),
        tools=tools,
        servable=int(whole[1]),
        differing=int(whole[2]),
        damaged=_rows(store, damaged),
        bytes=int(whole[3]),
        file_bytes=Path(file).stat().st_size if file is not None else 0,
        oldest=float(whole[4]),
        newest=float(whole[5]),
        runtimes=_rows(store, runtimes),
    )


def prune(store: Store, *, max_age_s: float | None, max_bytes: int | None) -> int:
    """Delete by age, then by size, oldest first; an entry whose age is damaged is the oldest."""
    for name, bound in (("max_age_s", max_age_s), ("max_bytes", max_bytes)):
        if bound is not None and not 0 <= bound < _LARGEST:
            raise UsageError(f"{name}={bound!r}: give a number of at least 0 and below 2**63.")
    store.flush()
    gone = 0
    if max_age_s is not None:
        gone += _delete(store, time.time() - max_age_s > _AGE)
    if max_bytes is not None:
        gone += _prune_to(store, max_bytes)
    if gone:
        store.database.shrink()
    return gone


def _prune_to(store: Store, max_bytes: int) -> int:
    """Delete what is older than the newest entries that fit, in pieces, so that writers get in."""
    kept = sa.func.sum(entries.c.size).over(order_by=(_AGE.desc(), entries.c.key))
    sums = sa.select(entries.c.key, kept.label("kept")).subquery()
    too_old = sa.select(sums.c.key).where(sums.c.kept > max_bytes)
    keys = [row.key for row in store.select(lambda c: c.execute(too_old).all())]
    return sum(
        _delete(store, entries.c.key.in_(keys[start : start + _CHUNK]))
        for start in range(0, len(keys), _CHUNK)
    )


def _name(tool: object) -> str:
    """A tool's name; of a damaged one, something that can be shown."""
    return str(tool).encode("utf-8", "backslashreplace").decode()


def _delete(store: Store, which: sa.ColumnElement[bool]) -> int:
    """Delete entries and tell how many; others may have been faster."""
    deletion = entries.delete().where(which)
    return int(store.database.write(lambda c: c.execute(deletion)).rowcount)


def _rows(store: Store, table: sa.Table) -> int:
    counted = sa.select(sa.func.count()).select_from(table)
    return int(store.select(lambda c: c.execute(counted).scalar_one()))
