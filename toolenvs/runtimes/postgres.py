"""Databases of a PostgreSQL server: each sandbox is a session with a role of its own.

A task that only reads connects to a template, a database made once from the source's script, by a
role that can write nothing. A task that writes gets a copy of the template, which ends with the
session. What a sandbox executes is a request of ``toolenvs.database``, and its answer is what it
prints.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.runtimes._postgres_server import Credentials, Server
from toolenvs.types import ExecResult

if TYPE_CHECKING:
    from toolenvs.database import Answerer, Target

DEFAULT_URL = "postgresql://toolenvs:toolenvs@127.0.0.1:5432/postgres"
"""The compose service ``postgres``."""


class Postgres:
    """A PostgreSQL server and the databases that tasks are about.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE`` of a user who may create roles and
            databases; the variable ``TOOLENVS_POSTGRES_URL`` when empty, else ``DEFAULT_URL``.
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
        if not 1 <= sessions <= 1000:
            raise UsageError(f"sessions is {sessions}; it is 1 to 1000.")
        self.url = url or os.environ.get("TOOLENVS_POSTGRES_URL", "") or DEFAULT_URL
        self.templates = dict(templates or {})
        self.sessions = sessions

    def fingerprint(self) -> str:
        """The server's version; what a database holds is told by its task's digest.

        Raises:
            RuntimeFailure: ``no_service``: the server does not answer.
        """
        server = Server(self.url)
        try:
            return f"postgres:{server.version()}"
        finally:
            server.close()

    async def start(self) -> PostgresWorker:
        """Connect, and remove what killed clients left.

        Raises:
            RuntimeFailure: ``no_service``: the server does not answer.
        """
        server = Server(self.url)
        await Blocking(server.sweep)
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
        self._templates = templates
        self._made: dict[str, str] = {}
        self._lock = threading.Lock()
        self._stopped = False

    async def spawn(
        self, *, seed: int, files: Mapping[str, str], data: Sequence[str] = ()
    ) -> PostgresSandbox:
        """Start a session that may use the templates in ``data``; it connects at its first call."""
        return PostgresSandbox(self._server, self._template, tuple(data))

    def healthy(self) -> bool:
        """True until it is stopped: each session finds out for itself whether the server lives."""
        return not self._stopped

    async def stop(self) -> None:
        """End the connections. More than once is harmless."""
        self._stopped = True
        await Blocking(self._server.close)

    def _template(self, name: str) -> str:
        """The server's name for a template, which is made if it is not there."""
        with self._lock:
            if name not in self._made:
                if name not in self._templates:
                    raise UnknownNameError("a template of this PostgreSQL", name, self._templates)
                self._made[name] = self._server.ensure_template(self._templates[name])
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
        self._template = template
        self._allowed = allowed
        self._roles: list[Credentials] = []
        self._answerer: Answerer | None = None
        self._stopped = False

    async def execute(self, code: str, *, timeout_s: float | None = None) -> ExecResult:
        """Answer a request; the statement's own limit is in it.

        Raises:
            RuntimeFailure: The server does not answer, or the request is none.
        """
        if self._stopped:
            raise RuntimeFailure("closed", "this session was stopped")
        answer = await Blocking(lambda: self._answer(code))
        return ExecResult(status="ok", stdout=answer)

    async def stop(self) -> None:
        """End the session; its role and its copy are gone. More than once is harmless."""
        self._stopped = True
        await Blocking(self._end)

    def _answer(self, request: str) -> str:
        from toolenvs.database import Answerer
        from toolenvs.database.postgres import PostgresEngine

        if self._answerer is None:
            self._answerer = Answerer({"postgres": PostgresEngine(self._url_for)})
        answer = self._answerer.answer(request)
        error = json.loads(answer).get("error")
        if error and error["kind"] == "unavailable":
            raise RuntimeFailure("service", f"PostgreSQL: {error['message']}")
        return answer

    def _url_for(self, target: Target) -> Any:
        if target.place not in self._allowed:
            raise UnknownNameError(
                "a template that this episode may use", target.place, self._allowed
            )
        role = self._server.open_role(self._template(target.place), writable=target.writable)
        self._roles.append(role)
        return self._server.url_of(role)

    def _end(self) -> None:
        answerer, self._answerer = self._answerer, None
        if answerer is not None:
            answerer.close()
        while self._roles:
            self._server.close_role(self._roles[-1])
            self._roles.pop()
