"""Databases of a PostgreSQL server: each sandbox is a session with a role of its own.

A task that only reads connects to a template, a database made once from the source's script, by a
role that can write nothing. A task that writes gets a copy of the template, which ends with the
session. What a sandbox executes is a request of ``toolenvs.database``, and its answer is what it
prints.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UnknownNameError
from toolenvs.postgres import Rooms, Server, read_address
from toolenvs.ranges import checked_whole
from toolenvs.types import ExecResult

if TYPE_CHECKING:
    from toolenvs.database import Answerer


class Postgres:
    """A PostgreSQL server and the databases that tasks are about.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE`` of a superuser; the variable
            ``TOOLENVS_POSTGRES_URL`` when empty, else that of the compose service,
            ``postgresql://toolenvs:toolenvs@127.0.0.1:5432/postgres``.
        templates: the script of each template, by name.
        sessions: sandboxes that one worker holds; the server must allow as many connections.

    Raises:
        UsageError: An option has no meaning.
    """

    name = "postgres"

    def __init__(
        self,
        *,
        url: str = "",
        templates: Mapping[str, str | Path] | None = None,
        sessions: int = 64,
    ) -> None:
        self.url = url
        read_address(url)
        self.templates = dict(templates or {})
        self.sessions = checked_whole("sessions", sessions, least=1, most=1000)

    def fingerprint(self) -> str:
        """The server's version, how it sorts, and our reader of it.

        What a database holds is told by its task's digest.

        Raises:
            RuntimeFailure: ``no_service``: the server does not answer; ``no_package``: the driver
                is not installed.
            UsageError: The URL is none.
        """
        server = Server(self.url)
        try:
            return f"postgres:{server.version()}:{server.locale()}:{_reader_digest()}"
        finally:
            server.close()

    async def start(self) -> PostgresWorker:
        """Connect, and remove what killed clients left.

        Raises:
            RuntimeFailure: As ``fingerprint``.
            UsageError: The URL's user is no superuser.
        """
        server = Server(self.url, at_once=self.sessions)
        try:
            await Blocking(server.sweep)
        except BaseException:
            server.close()
            raise
        return PostgresWorker(server, self.templates, self.sessions)


class PostgresWorker:
    """The sessions of one client.

    Args:
        server: the server; the worker ends its connections.
        templates: the script of each template, by name.
        capacity: sessions at once.
    """

    def __init__(self, server: Server, templates: Mapping[str, str | Path], capacity: int) -> None:
        self.capacity = capacity
        self._server = server
        self._templates = _Templates(server, templates)
        self._sandboxes: weakref.WeakSet[PostgresSandbox] = weakref.WeakSet()
        self._stopped = False

    async def spawn(
        self,
        *,
        seed: int,
        files: Mapping[str, str],
        data: Sequence[str] = (),
        now: str = "",
    ) -> PostgresSandbox:
        """Start a session that may use the templates in ``data``; it connects at its first call."""
        if self._stopped:
            raise RuntimeFailure("closed", "this worker was stopped")
        self._server.refuse_in_fork()
        sandbox = PostgresSandbox(self._server, self._templates.database, tuple(data))
        self._sandboxes.add(sandbox)
        return sandbox

    def healthy(self) -> bool:
        """True until it is stopped; a session finds out for itself whether the server lives."""
        return not self._stopped and not self._server.inherited

    async def stop(self) -> None:
        """End the sessions and the connections. More than once is harmless."""
        self._stopped = True
        if self._server.inherited:
            return
        for sandbox in list(self._sandboxes):
            await sandbox.stop()
        await Blocking(self._server.close)


class _Templates:
    """The templates of a worker, each made when it is first wanted.

    Args:
        server: where they are.
        scripts: by name.
    """

    def __init__(self, server: Server, scripts: Mapping[str, str | Path]) -> None:
        self._server = server
        self._scripts = dict(scripts)
        self._made: dict[str, str] = {}
        self._locks = {name: threading.Lock() for name in scripts}

    def database(self, name: str) -> str:
        """The server's name for a template.

        Raises:
            UsageError: There is none of that name, or its script fails.
            RuntimeFailure: The server does not answer.
        """
        if name not in self._scripts:
            raise UnknownNameError("a template of this PostgreSQL", name, self._scripts)
        with self._locks[name]:
            if name not in self._made:
                self._made[name] = self._server.ensure_template(self._scripts[name])
            return self._made[name]


class PostgresSandbox:
    """One episode's session; what it executes is a request, and its answer is what it prints.

    Args:
        server: makes and removes the session's role.
        template: gives the server's name for a template.
        allowed: templates that the episode may use.
    """

    def __init__(
        self, server: Server, template: Callable[[str], str], allowed: Sequence[str]
    ) -> None:
        self._server = server
        self._rooms = Rooms(server, template, allowed)
        self._answerer: Answerer | None = None
        self._busy = threading.Lock()
        self._stopped = False

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Answer a request; the limit of each statement is in it, ``timeout_s`` is that of all.

        Raises:
            RuntimeFailure: The server does not answer, or the request is none.
        """
        self._server.refuse_in_fork()
        if self._stopped:
            raise RuntimeFailure("closed", "this session was stopped")
        answer = await Blocking(lambda: self._answer(code, timeout_s or math.inf))
        return ExecResult(status="ok", stdout=answer)

    async def stop(self) -> None:
        """End the session; its role and its copy are gone soon. More than once is harmless.

        A call that is running elsewhere then raises ``RuntimeFailure``.
        """
        self._stopped = True
        if not self._server.inherited:
            await Blocking(self._end)

    def _answer(self, request: str, timeout_s: float) -> str:
        from toolenvs.database import Answerer
        from toolenvs.database.postgres import PostgresEngine

        with self._busy:
            if self._answerer is None:
                self._answerer = Answerer({"postgres": PostgresEngine(self._rooms)})
            answer = self._answerer.answer(request, timeout_s=timeout_s)
        if self._stopped:
            self._end()
            raise RuntimeFailure("closed", "this session was stopped during the call")
        error = json.loads(answer).get("error")
        if error and error["kind"] == "unavailable":
            raise self._rooms.failure() or RuntimeFailure(
                "service", f"PostgreSQL: {error['message']}"
            )
        return answer

    def _end(self) -> None:
        if self._busy.acquire(blocking=False):  # else the call is ended by its role's end
            try:
                answerer, self._answerer = self._answerer, None
                if answerer is not None:
                    answerer.close()
            finally:
                self._busy.release()
        self._rooms.leave_all()


def _reader_digest() -> str:
    """The digest of what reads the server's answers."""
    from toolenvs import database

    digest = hashlib.sha256()
    for file in sorted(Path(database.__path__[0]).glob("*.py")):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
