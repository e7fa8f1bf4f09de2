"""One cache database in one process: reads inline, writes by its writer's thread.

What was handed to the writer is found at once by the readers of this process.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from toolenvs.cache.database import PATIENCE_S, Database
from toolenvs.cache.entry import (
    Entry,
    Recording,
    checked_facts,
    checked_result,
    decode_result,
    encode_result,
    make_entry,
    unpack,
)
from toolenvs.cache.schema import damaged, entries, runtimes
from toolenvs.cache.writer import Write, Writer
from toolenvs.errors import DataError
from toolenvs.statekey import CallKey
from toolenvs.types import ToolResult

_log = logging.getLogger(__name__)

_KEY: sa.BindParameter[bytes] = sa.bindparam("this_key", type_=sa.LargeBinary)
_FIND = sa.select(
    entries.c.request, entries.c.result, entries.c.digest, entries.c.servable, entries.c.differing
).where(entries.c.key == _KEY)
_MARK = entries.update().where(entries.c.key == _KEY).values(differing=True)
_SET_ASIDE = damaged.insert().from_select(
    [column.name for column in damaged.columns],
    sa.select(*entries.columns, sa.bindparam("reason", type_=sa.Text)).where(entries.c.key == _KEY),
)
_DELETE = entries.delete().where(entries.c.key == _KEY)


class Store:
    """Results by key.

    Args:
        url, create: see ``Database``, as are the errors.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.database = Database(url, create=create)
        self.pid = os.getpid()
        self.users = 0
        self.collisions = 0
        insert = sqlite.insert if self.database.dialect == "sqlite" else postgresql.insert
        self._insert = _insert_entry(insert)
        self._see = _see_runtime(insert)
        self._writer = Writer(
            self._execute, self._written, place=self.database.place, patience_s=PATIENCE_S
        )
        self._pending: dict[bytes, tuple[Entry, bytes, bytes]] = {}

    @property
    def lost(self) -> int:
        """Writes that a broken or locked database did not take."""
        return self._writer.lost

    @property
    def trouble(self) -> str:
        """What was wrong with the database when it did not take them, last."""
        return self._writer.trouble

    @property
    def closed(self) -> bool:
        """Whether it takes no more writes; what asks for one then gets ``ClosedError``."""
        return self._writer.closed

    # -- one result ---------------------------------

    def get(self, key: CallKey) -> Recording | None:
        """What was recorded for exactly this request, None if nothing was.

        Raises:
            RuntimeFailure: The database is broken.
        """
        waiting = self._pending.get(key.key)
        if waiting is not None:
            entry, request, text = waiting
            if self._is(key, request):
                return Recording(decode_result(text), entry.servable, entry.differing)
            return None
        row = self.database.read(lambda c: c.execute(_FIND, {"this_key": key.key}).first())
        if row is None:
            return None
        try:
            if not self._is(key, unpack(row.request)):
                return None
            result = decode_result(checked_result(row.result, row.digest))
        except DataError as error:
            self._set_aside(key.key, str(error))
            return None
        return Recording(result, bool(row.servable), bool(row.differing))

    def put(self, key: CallKey, result: ToolResult, *, servable: bool) -> ToolResult:
        """Record a result; return it as it will be read.

        Raises:
            UsageError: It holds what is no JSON, or is larger than a record can be.
            ClosedError: After ``close``.
        """
        text = encode_result(result)
        entry = make_entry(key, text, servable=servable, created=time.time())
        before = self._pending.get(key.key)
        if before is None or (servable and not before[0].servable):
            self._pending[key.key] = (entry, key.request, text)
        self.insert(entry)
        return decode_result(text)

    def insert(self, entry: Entry) -> None:
        """Record an entry as it is."""
        self._writer.put(Write(self._insert, msgspec.structs.asdict(entry), entry.size))

    def mark(self, key: bytes) -> None:
        """Remember that this call gave two results."""
        self._writer.put(Write(_MARK, {"this_key": key}))

    # -- all of them ---------------------------------

    def select(self, work: Callable[[sa.Connection], Any]) -> Any:
        """Read what is written, waiting first for what is under way."""
        self.flush()
        return self.database.read(work)

    def see_runtime(self, asked: bytes, facts: bytes, digest: bytes, *, seen: float) -> None:
        """Remember what a sandbox setting stands for; ``seen`` in seconds since 1970."""
        values = {"asked": asked, "facts": facts, "digest": digest, "seen": seen}
        self._writer.put(Write(self._see, values))

    def seen_runtimes(self, asked: bytes) -> list[bytes]:
        """What a sandbox setting stood for, newest first."""
        newest = sa.select(runtimes).where(runtimes.c.asked == asked)
        newest = newest.order_by(runtimes.c.seen.desc())
        found = []
        for row in self.select(lambda c: c.execute(newest).all()):
            try:
                found.append(checked_facts(row.facts, row.digest))
            except DataError as error:
                place = self.database.place
                _log.warning("%s: a runtime of %s is left out: %s", place, asked.hex(), error)
        return found

    def flush(self) -> bool:
        """Wait until everything handed over is in the database; False if that stays locked."""
        return self._writer.flush()

    def close(self) -> None:
        """Write what is left and close the database. More than once is harmless.

        What a database that stays locked did not take is given up, which the log tells.
        """
        self._writer.close()
        self.database.close()

    # -- inside ---------------------------------

    def _is(self, key: CallKey, request: bytes) -> bool:
        if request == key.request:
            return True
        self.collisions += 1
        _log.warning("two requests have the key %s; neither gets the other's", key.key.hex())
        return False

    def _set_aside(self, key: bytes, reason: str) -> None:
        place = self.database.place
        _log.warning("%s: entry %s is set aside: %s", place, key.hex(), reason)
        self._writer.put(Write(_SET_ASIDE, {"this_key": key, "reason": reason}))
        self._writer.put(Write(_DELETE, {"this_key": key}))

    def _execute(self, batch: Sequence[Write]) -> None:
        def work(connection: sa.Connection) -> None:
            for _, same in itertools.groupby(batch, key=lambda write: id(write.statement)):
                writes = list(same)
                connection.execute(writes[0].statement, [dict(w.values) for w in writes])

        self.database.write(work, patience_s=math.inf)  # the writer's users have their own

    def _written(self, batch: Sequence[Write]) -> None:
        for write in batch:
            waiting = self._pending.get(write.values.get("key", b""))
            if waiting is not None and waiting[0].created == write.values["created"]:
                self._pending.pop(waiting[0].key, None)


def _insert_entry(insert: Any) -> Any:
    """Insert once. A second result is not stored, but marks the first, unless it mends it."""
    statement = insert(entries)
    new, old = statement.excluded, entries.c
    mends = sa.and_(sa.not_(old.servable), new.servable)
    differs = sa.and_(old.servable, new.servable, old.digest != new.digest)
    same_request = sa.or_(
        old.request_digest == new.request_digest,
        # An older program that still had the cache open left the digest out.
        sa.and_(sa.func.length(old.request_digest) == 0, old.request == new.request),
    )
    replaced = ("result", "digest", "servable", "created", "size")
    return statement.on_conflict_do_update(
        index_elements=[old.key],
        set_={name: sa.case((mends, new[name]), else_=old[name]) for name in replaced}
        | {"differing": sa.or_(old.differing, new.differing, differs)},
        where=sa.and_(same_request, sa.or_(mends, differs, new.differing)),
    )


def _see_runtime(insert: Any) -> Any:
    statement = insert(runtimes)
    new, old = statement.excluded, runtimes.c
    return statement.on_conflict_do_update(
        index_elements=[old.asked, old.digest],
        set_={"seen": new.seen},
        where=new.seen > old.seen,  # an import may bring what is older
    )
