"""The roles of one sandbox: what ``toolenvs.database.postgres`` asks of a server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.postgres.server import Credentials, Server

if TYPE_CHECKING:
    from toolenvs.database import Target


class Rooms:
    """Roles, and what they connect to.

    Args:
        server: makes and removes them.
        template: gives the server's name for a template.
        allowed: templates that may be used.
    """

    def __init__(
        self, server: Server, template: Callable[[str], str], allowed: Collection[str]
    ) -> None:
        self._server = server
        self._template = template
        self._allowed = allowed
        self._roles: list[Credentials] = []
        self._failure: RuntimeFailure | None = None

    def url_for(self, target: Target) -> Any:
        with self._failing():
            if target.place not in self._allowed:
                raise UnknownNameError(
                    "a template that this episode may use", target.place, self._allowed
                )
            role = self._server.open_role(self._template(target.place), writable=target.writable)
            self._roles.append(role)
            return self._server.url_of(role)

    def leave(self, url: Any) -> None:
        for role in [role for role in self._roles if role.role == url.username]:
            self._roles.remove(role)
            self._server.close_role(role)

    def running(self, url: Any) -> int:
        with self._failing():
            return self._server.connections_of(url.username)

    def size_of(self, url: Any) -> int:
        with self._failing():
            return self._server.size_of(url.database)

    def shrink(self, url: Any) -> None:
        with self._failing():
            self._server.shrink(url.database)

    def failure(self) -> RuntimeFailure | None:
        """What failed since this was last asked."""
        failure, self._failure = self._failure, None
        return failure

    def leave_all(self) -> None:
        """Remove the roles. More than once is harmless."""
        roles, self._roles = self._roles, []
        for role in roles:
            self._server.close_role(role)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Keep a failure for whoever asked, where the answer to a request would flatten it."""
        from toolenvs.database import Fault

        try:
            yield
        except RuntimeFailure as failure:
            self._failure = failure
            raise Fault("unavailable", str(failure)) from failure
        except UsageError as error:
            self._failure = RuntimeFailure("data", str(error))
            raise Fault("unavailable", str(error)) from error
