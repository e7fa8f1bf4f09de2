"""How the tables of an older cache become those of today: one Alembic revision after the other.

``versions`` holds the revisions; ``upgrade`` runs those that a database lacks, on a connection and
in a transaction that the caller gives. No file of settings is needed: a cache is opened by workers
on many machines, where nobody would run a tool by hand.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from toolenvs.locks import ForkLock

_one_at_a_time = ForkLock()  # ``alembic.op`` and ``alembic.context`` are one per process


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Bring a database from the revision that it says it has to another one.

    Args:
        connection: within a transaction; nothing counts before the caller commits it.
        revision: where to stop.
    """
    with _one_at_a_time:
        command.upgrade(_config(connection), revision)


def known_revisions() -> list[str]:
    """The revisions of this package, oldest first."""
    found = ScriptDirectory.from_config(_config(None)).walk_revisions()
    return [script.revision for script in found][::-1]


def _config(connection: sa.Connection | None) -> Config:
    config = Config(attributes={"connection": connection})
    folder = str(Path(__file__).parent).replace("%", "%%")  # the setting is interpolated
    config.set_main_option("script_location", folder)
    config.set_main_option("path_separator", "os")
    return config
