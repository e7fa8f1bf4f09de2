"""Golds of PostgreSQL, examined on the server that answers at ``TOOLENVS_POSTGRES_URL``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolenvs.errors import DataError, RuntimeFailure
from toolenvs.grading.sql_fitness import GoldFinding
from toolenvs.postgres import Rooms, Server
from toolenvs.sources._sqlgold import Ask, ask_of, examine_asked

if TYPE_CHECKING:
    from toolenvs.database import Answerer

_LOAD_S = 120.0
"""Seconds after which the golds that are left are examined when their tasks are drawn."""


class GoldServer:
    """Runs golds on templates; nothing is connected before the first, nor after ``close``.

    Args:
        templates: the script of each template, by name.
        limit_s: seconds after which no further gold is begun.
    """

    def __init__(self, templates: Mapping[str, Path], *, limit_s: float = _LOAD_S) -> None:
        self._templates = templates
        self._until = time.monotonic() + limit_s
        self._server: Server | None = None
        self._rooms: Rooms | None = None
        self._made: dict[str, str] = {}
        self._absent = False

    def examine(
        self, gold: str, places: Sequence[str], *, grading: Mapping[str, Any]
    ) -> GoldFinding | None:
        """What is to be said of a gold; None where no server answers, or there is no time left.

        Args:
            gold: a query, or the statements that change the database.
            places: names of templates: the task's own, then those of its instances.
            grading: the task's settings of ``SqlPolicy``.
        """
        if self._absent or time.monotonic() > self._until:
            return None
        try:
            return self._examined(gold, places, grading)
        except RuntimeFailure as failure:
            if failure.kind == "data":
                return GoldFinding(str(failure))
            self._absent = True
            return None

    def close(self) -> None:
        """Leave the server. More than once is harmless."""
        if self._rooms is not None:
            self._rooms.leave_all()
        if self._server is not None:
            self._server.close()
        self._server = self._rooms = None

    def _examined(
        self, gold: str, places: Sequence[str], grading: Mapping[str, Any]
    ) -> GoldFinding:
        if self._rooms is None:
            self._server = Server()
            self._rooms = Rooms(self._server, self._template, self._templates)
        from toolenvs.database import Answerer
        from toolenvs.database.postgres import PostgresEngine  # there is a driver, if it came here

        answerer = Answerer({"postgres": PostgresEngine(self._rooms)})
        with contextlib.closing(answerer):
            asks = [self._ask(answerer, place) for place in places]
            found = examine_asked(gold, asks[0], grading=grading, engine="postgres")
            for place, ask in zip(places[1:], asks[1:], strict=True):
                if not found.unusable and (error := ask("query", sql=gold).get("error")):
                    why = f"the gold does not run on the instance {place}: {error['message']}"
                    found = GoldFinding(why)
        return found

    def _ask(self, answerer: Answerer, place: str) -> Ask:
        """Requests on a template; it raises where the machine failed and not the gold."""
        ask = ask_of(answerer, {"engine": "postgres", "place": place})
        rooms = self._rooms

        def checked(operation: str, **wanted: Any) -> Mapping[str, Any]:
            answer = ask(operation, **wanted)
            error = answer.get("error", {})
            if rooms is not None and error.get("kind") == "unavailable":
                raise rooms.failure() or RuntimeFailure("service", error["message"])
            return answer

        return checked

    def _template(self, place: str) -> str:
        assert self._server is not None
        if place not in self._made:
            try:
                self._made[place] = self._server.ensure_template(self._templates[place])
            except DataError as error:
                raise RuntimeFailure("data", str(error)) from error
        return self._made[place]
