"""Connections to a server: bounded in time, never shared with a fork, and failures typed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from toolenvs.errors import RuntimeFailure
from toolenvs.postgres.address import VARIABLE, Address

CLIENT = "toolenvs client"
CONNECT_S = 10
"""Seconds in which a server must let a client in, or refuse; a URL may set ``connect_timeout``."""

_STARTING = "57P03"  # SQLSTATE of a server that does not answer yet
_STARTS = "the database system is"  # starting up, shutting down, in recovery
_BUSY = "too many c"  # clients, or connections of a role: a later try may find room


def engine_for(url: Any, **options: Any) -> Any:
    """SQLAlchemy's engine for ``url``: each statement is a transaction of its own."""
    import sqlalchemy

    from toolenvs.database.relay import keep_from_forks

    engine = sqlalchemy.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={"application_name": CLIENT},
        **options,
    )
    sqlalchemy.event.listen(engine, "connect", lambda driver, _: keep_from_forks(driver))
    return engine


def with_limit(url: Any) -> Any:
    """The URL by which connecting ends in time: with ``connect_timeout`` unless it has one."""
    return url.set(query={"connect_timeout": str(CONNECT_S), **url.query})


def driver_of(connection: Any) -> Any:
    """The driver's connection, which takes several statements in one text."""
    return connection.connection.driver_connection


@contextlib.contextmanager
def told(address: Address) -> Iterator[None]:
    """Raise what SQLAlchemy and the driver raise as ``RuntimeFailure``.

    Raises:
        RuntimeFailure: ``no_service``: the server lets nobody in; ``service``: it failed.
    """
    import sqlalchemy

    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, driver_error()) as error:
        where, why = f"PostgreSQL at {address}", _first_line(error)
        inner = getattr(error, "orig", error)
        state = getattr(inner, "sqlstate", None)
        never = isinstance(inner, driver_error()) and state in (None, _STARTING)
        if not never or _BUSY in why:
            raise RuntimeFailure("service", f"{where}: {why}") from error
        if "FATAL:" in why and _STARTS not in why:  # it answered, and lets nobody in like this
            refusal = why.partition("FATAL:")[2].strip()
            raise RuntimeFailure("no_service", f"{where} refuses: {refusal}.") from error
        raise RuntimeFailure(
            "no_service",
            f"{where} does not answer ({why}). Start it with 'docker-compose up -d postgres', or "
            f"name another by {VARIABLE}.",
        ) from error


def require_driver() -> None:
    """Go no further without the driver.

    Raises:
        RuntimeFailure: ``no_package``.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise RuntimeFailure(
            "no_package",
            "PostgreSQL needs the driver psycopg: pip install 'PATH-OF-THE-CLONE[postgres]' "
            f"({error}).",
        ) from error


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]


def no_pool() -> Any:
    """The pool that keeps no connection."""
    import sqlalchemy.pool

    return sqlalchemy.pool.NullPool


def driver_error() -> type[Exception]:
    """What the driver's exceptions are."""
    import psycopg

    return psycopg.Error
