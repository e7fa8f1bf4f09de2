"""Which server is meant, and who said so."""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from toolenvs.errors import UsageError

DEFAULT_URL = "postgresql://toolenvs:toolenvs@127.0.0.1:5432/postgres"
"""The compose service ``postgres``."""

VARIABLE = "TOOLENVS_POSTGRES_URL"
DRIVER = "postgresql+psycopg"
_OPTION = "the option url of service:postgres"
_SHAPE = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_PASSWORD = re.compile(r"(?<=:)[^:@/]*(?=@)")


class Address(msgspec.Struct, frozen=True):
    """Where a server is.

    Attributes:
        url: SQLAlchemy's URL, for the driver psycopg.
        origin: who named it, for messages: an option, the variable, or that nobody did.
    """

    url: Any
    origin: str

    def __str__(self) -> str:
        shown = self.url.set(drivername="postgresql").render_as_string(hide_password=True)
        return f"{shown} ({self.origin})"


def read_address(url: str = "") -> Address:
    """The server that ``url`` names, else the variable, else the compose service.

    Raises:
        UsageError: It is no URL of PostgreSQL; the message has no password.
    """
    import sqlalchemy

    named = os.environ.get(VARIABLE, "")
    text, origin = (url, _OPTION) if url else (named, VARIABLE)
    if not text:
        text, origin = DEFAULT_URL, f"the default; {VARIABLE} names another"
    try:
        parsed = sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):  # ValueError: the port is no number
        parsed = None
    if parsed is None or parsed.get_backend_name() != "postgresql":
        raise UsageError(f"{origin} is {_PASSWORD.sub('***', text)!r}; write {_SHAPE}.")
    return Address(parsed.set(drivername=DRIVER), origin)
