"""What is kept on a PostgreSQL server: templates, roles, and databases of episodes."""

from __future__ import annotations

from toolenvs.postgres.address import DEFAULT_URL, VARIABLE, Address, read_address
from toolenvs.postgres.rooms import Rooms
from toolenvs.postgres.server import Credentials, Server, read_script

__all__ = [
    "DEFAULT_URL",
    "VARIABLE",
    "Address",
    "Credentials",
    "Rooms",
    "Server",
    "read_address",
    "read_script",
]
