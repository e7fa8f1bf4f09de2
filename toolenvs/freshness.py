"""Whether the database of a task is still the one that its digest names.

Files change under a running environment. A result that was made on another content than its task
says would be served, and judged, as what it is not: so a look is taken after each call.
"""

from __future__ import annotations

import re
from pathlib import Path

from toolenvs.content import BUILT, State, content_digest, state_of
from toolenvs.errors import DataError, RuntimeFailure
from toolenvs.protocols import Runtime
from toolenvs.types import Database

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Watch:
    """Looks after the files of one task's database, as far as they are on this machine.

    A look costs a ``stat`` for each file; what is in it is read only when its size or time is new.
    A digest that is not of the content, since the database was built from a script or its maker
    gave it another name, stands for the content that is there now.

    Args:
        database: the database.
        runtime: what runs its statements; its ``data`` or ``templates`` say where files are.

    Attributes:
        needs: what tools need that read it.
    """

    def __init__(self, database: Database, runtime: Runtime) -> None:
        self.needs = database.needs
        self._database = database
        self._files = _files(database, runtime)
        self._content = database.digest
        built = database.place.partition("/")[0] == BUILT
        if self._files and (built or not _SHA256.fullmatch(database.digest)):
            self._content = content_digest(self._files)
        self._states: list[State] = []

    def check(self) -> None:
        """Look whether nothing has changed.

        Raises:
            RuntimeFailure: ``data``: it has, or a file is gone.
        """
        if not self._files:
            return
        try:
            states = [state_of(file) for file in self._files]
            if states == self._states:
                return
            same = content_digest(self._files) == self._content
        except DataError as error:
            raise RuntimeFailure("data", str(error)) from error
        if not same:
            raise RuntimeFailure(
                "data",
                f"{self._files[0]}: the database {self._database.name!r} or one of its instances "
                "has changed since the task was loaded: reset, and let nothing write to it.",
            )
        self._states = states


def _files(database: Database, runtime: Runtime) -> list[Path]:
    """The files of the database and its instances, none where they are not all here."""
    if database.engine == "postgres":
        script = getattr(runtime, "templates", {}).get(database.place)
        files = [] if script is None else [Path(script)]
    else:
        folders = getattr(runtime, "data", {})
        places = [place.partition("/") for place in (database.place, *database.instances)]
        if not all(name in folders for name, _, _ in places):
            return []
        files = [Path(folders[name]) / rest for name, _, rest in places]
    return files if all(file.is_file() for file in files) else []
