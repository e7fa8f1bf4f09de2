"""Requests in JSON, answers in JSON: the one way in from outside the process.

    {"op": "query", "database": {"engine": "sqlite", "place": "spider/pets_1/pets_1.sqlite"},
     "sql": "SELECT 1", "max_rows": 100, "max_bytes": 100000, "timeout_s": 5}
    -> {"columns": ["1"], "rows": [[1]], "row_count": 1, "cut": false}

    {"op": "schema", "database": {...}, "tables": [], "sample_rows": 3, "max_bytes": 20000}
    -> see ``description.described``

    {"op": "state", "database": {...}, "statements": ["DELETE FROM pets"], "max_rows": 1000}
    -> {"tables": [{"name": ..., "columns": ..., "rows": ..., "row_count": ..., "cut": ...}],
        "ran": 1, "changed": [3]}, with "stopped": {"kind": ..., "message": ...} at the first
       statement that failed

A fault of any of them is {"error": {"kind": ..., "message": ...}}; for the kinds see ``faults``.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from .description import described
from .faults import Fault
from .rows import Rows, utf8_size
from .session import Engine, Session, Target
from .sqlite import HEAP_BYTES, SqliteEngine
from .values import printable

MAX_ROWS, MAX_BYTES, TIMEOUT_S, SAMPLE_ROWS = 1000, 256_000, 10.0, 3
"""What holds where a request does not say otherwise."""

_MOST_OPEN = 16
_MESSAGE_CHARS = 300


class Answerer:
    """Answers requests, and keeps the sessions that they open.

    Requests on one database share a session: what one changes in a writable database the next one
    finds. For one thread.

    Args:
        engines: what opens databases, by the name of the engine; by default what a sandbox needs:
            SQLite files in ``/data``.
    """

    def __init__(self, engines: Mapping[str, Engine] | None = None) -> None:
        self._engines = engines or {"sqlite": SqliteEngine(heap_bytes=HEAP_BYTES)}
        self._sessions: dict[Target, Session] = {}
        self._until = math.inf

    def answer(self, request: str, *, timeout_s: float = math.inf) -> str:
        """Answer one request; whatever it is, the answer is a JSON object.

        Args:
            request: see above.
            timeout_s: seconds after which no statement of it runs, whatever its own limit.
        """
        self._until = time.monotonic() + timeout_s
        try:
            return self._answer(request)
        except Fault as fault:
            return _error(fault)
        except MemoryError:
            return _error(Fault("memory", "The statement needs more memory than it may use."))
        except Exception as error:  # of our own making: the statement is not to blame
            return _error(Fault("unavailable", f"{type(error).__name__}: {error}"))

    def session(self, target: Target) -> Session:
        """The session of a database, opened when it is first asked for.

        Raises:
            Fault: ``unavailable``: it cannot be opened.
        """
        session = self._sessions.get(target)
        if session is None:
            self._make_room()
            session = self._sessions[target] = self._open(target)
        session.until = self._until
        return session

    def close(self) -> None:
        """End all sessions; private copies are gone."""
        while self._sessions:
            self._sessions.popitem()[1].close()

    def _open(self, target: Target) -> Session:
        engine = self._engines.get(target.engine)
        if engine is None:
            raise Fault("unavailable", f"there is no engine {target.engine!r} here.")
        session = engine.open(target)
        session.until = self._until
        return session

    def _make_room(self) -> None:
        """End the sessions that were opened first, where nothing is lost by it."""
        read_only = [target for target in self._sessions if not target.writable]
        for target in read_only[: max(0, len(read_only) - _MOST_OPEN + 1)]:
            self._sessions.pop(target).close()

    def _answer(self, text: str) -> str:
        request = _Request.of(text)
        operation = request.get("op", str)
        target = request.target()
        if operation == "query":
            return self._query(request, self.session(target)).to_json()
        if operation == "schema":
            return self._schema(request, self.session(target))
        if operation == "state":
            with self._open(target._replace(writable=True)) as session:
                return self._state(request, session)
        raise Fault("unavailable", f"there is no operation {operation!r}.")

    def _query(self, request: _Request, session: Session) -> Rows:
        return session.run(
            request.get("sql", str),
            max_rows=request.get("max_rows", int, MAX_ROWS),
            max_bytes=request.get("max_bytes", int, MAX_BYTES),
            timeout_s=request.get("timeout_s", float, TIMEOUT_S),
        )

    def _schema(self, request: _Request, session: Session) -> str:
        description = described(
            session,
            only=request.texts("tables"),
            sample_rows=request.get("sample_rows", int, SAMPLE_ROWS),
            max_bytes=request.get("max_bytes", int, MAX_BYTES),
            timeout_s=request.get("timeout_s", float, TIMEOUT_S),
        )
        return json.dumps(description, ensure_ascii=False)

    def _state(self, request: _Request, session: Session) -> str:
        timeout_s = request.get("timeout_s", float, TIMEOUT_S)
        max_rows = request.get("max_rows", int, MAX_ROWS)
        left = request.get("max_bytes", int, MAX_BYTES)
        changed: list[int] = []
        stopped = ""
        for statement in request.texts("statements"):
            try:
                rows = session.run(statement, max_rows=0, max_bytes=left, timeout_s=timeout_s)
            except Fault as fault:
                if fault.kind == "unavailable":
                    raise
                stopped = f',"stopped":{_told(fault)}'
                break
            changed.append(rows.row_count)
        session.settle()
        tables = []
        for table in session.tables(timeout_s=timeout_s):
            if table.kind == "table":
                all_rows = f"SELECT * FROM {table.source}"  # noqa: S608 - the name is quoted
                rows = session.run(
                    all_rows, max_rows=max_rows, max_bytes=max(0, left), timeout_s=timeout_s
                )
                inner = rows.to_json()
                left -= utf8_size(inner)
                tables.append(f'{{"name":{json.dumps(printable(table.name))},{inner[1:]}')
        ran = f'"ran":{len(changed)},"changed":{json.dumps(changed)}'
        return f'{{"tables":[{",".join(tables)}],{ran}{stopped}}}'


class _Request:
    """A request whose fields are checked when they are read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @classmethod
    def of(cls, text: str) -> _Request:
        """Read a request.

        Raises:
            Fault: It is no JSON object.
        """
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise Fault("unavailable", "the request is no JSON object.")
        return cls(fields)

    def get(self, name: str, kind: type[Any], default: Any = None) -> Any:
        """A field, or its default, where it has one.

        Raises:
            Fault: It is missing, of another kind, or negative.
        """
        value = self._fields.get(name, default)
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not fits or (kind is not bool and isinstance(value, bool)):
            raise Fault("unavailable", f"the request's {name!r} must be of type {kind.__name__}.")
        if isinstance(value, int | float) and not value >= 0:
            raise Fault("unavailable", f"the request's {name!r} must not be negative.")
        return value

    def texts(self, name: str) -> list[str]:
        """A field that is a list of texts, [] by default.

        Raises:
            Fault: It is something else.
        """
        texts = self._fields.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise Fault("unavailable", f"the request's {name!r} must be a list of texts.")
        return texts

    def target(self) -> Target:
        """The database that is meant.

        Raises:
            Fault: A field is missing or of another kind.
        """
        database = _Request(self.get("database", dict))
        return Target(
            database.get("engine", str, "sqlite"),
            database.get("place", str),
            database.get("writable", bool, False),
            database.get("texts_in_double_quotes", bool, False),
        )


def _told(fault: Fault) -> str:
    message = printable(fault.message)
    if len(message) > _MESSAGE_CHARS:  # it repeats a name or text of the statement
        message = message[:_MESSAGE_CHARS] + "…"
    told = {"kind": fault.kind, "message": message}
    return json.dumps(told, ensure_ascii=False)


def _error(fault: Fault) -> str:
    return f'{{"error":{_told(fault)}}}'


_answerers = threading.local()


def answer(request: str) -> str:
    """Answer one request on the SQLite files in ``/data``; never raises.

    Each thread has sessions of its own.
    """
    answerer = getattr(_answerers, "answerer", None)
    if answerer is None:
        answerer = _answerers.answerer = Answerer()
    answered: str = answerer.answer(request)
    return answered
