"""What is kept on a PostgreSQL server for tasks: templates, roles, and databases of episodes.

A template is a database made once from a script and named by the script's content, so that every
client of one server shares it. Nobody changes it: tasks that only read connect to it by a role that
may not write; a task that writes gets a copy, with a role of its own as its owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.errors import DataError, RuntimeFailure, UsageError

DRIVER = "postgresql+psycopg"

_OWN_DATABASE = re.compile(
    r"^[ \t]*(?:\\[^\n]*|(?:CREATE|DROP)[ \t]+DATABASE\b[^;\n]*;)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines by which a script for ``psql`` makes and enters its database; here it has one already."""

_FORBIDDEN_FUNCTIONS = (
    *("pg_terminate_backend", "pg_cancel_backend", "pg_notify", "pg_export_snapshot"),
    *("pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock"),
    *("pg_try_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"),
    *("pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared"),
    *("lo_create", "lo_creat", "lo_import", "lo_export", "lo_from_bytea", "lo_put", "lowrite"),
    *("query_to_xml", "database_to_xml", "cursor_to_xml", "lo_open", "lo_get"),
    *("pg_stat_get_activity", "pg_stat_get_backend_activity", "pg_stat_get_backend_pid"),
)
"""Functions that reach beyond a statement: sessions, locks and large objects of the server."""


class Credentials(msgspec.Struct, frozen=True):
    """Who connects to what."""

    role: str
    password: str
    database: str


class Server:
    """A server and the rights to make roles and databases on it; usable from any thread.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE`` of a user with CREATEDB and
            CREATEROLE; or a superuser.

    Raises:
        UsageError: The URL cannot be read.
    """

    def __init__(self, url: str) -> None:
        import sqlalchemy

        try:
            parsed = sqlalchemy.make_url(url)
        except sqlalchemy.exc.ArgumentError:
            raise UsageError("the URL of PostgreSQL is not postgresql://USER@HOST/NAME.") from None
        if not parsed.drivername.startswith("postgresql"):
            raise UsageError(f"{parsed.drivername}: give a postgresql:// URL.")
        self._url = parsed.set(drivername=DRIVER)
        self.place = f"{parsed.host or parsed.query.get('host', 'localhost')}:{parsed.port or 5432}"
        self._client = f"toolenvs client {secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._admin: Any = None

    @property
    def admin_url(self) -> Any:
        """The SQLAlchemy URL of the user with all rights."""
        return self._url

    def version(self) -> str:
        """The server's version, such as ``"15.13"``.

        Raises:
            RuntimeFailure: ``no_service``: it does not answer.
        """
        with self.admin() as connection:
            return str(connection.exec_driver_sql("SHOW server_version").scalar()).split()[0]

    def ensure_template(self, script: str | Path) -> str:
        """Make the database that ``script`` describes unless it is there; return its name.

        Raises:
            DataError: The script cannot be read, or fails.
            RuntimeFailure: The server does not answer.
        """
        text = read_script(script)
        made_by = _READERS_ONLY + _CLOSE_FUNCTION + repr(_FORBIDDEN_FUNCTIONS)
        digest = hashlib.sha256(f"{made_by}\0{text}".encode()).hexdigest()
        name = f"toolenvs_{digest[:24]}"
        with self.admin() as connection, _one_at_a_time(connection, digest):
            if self._finished(connection, name):
                return name
            for old in (name, _original(name)):
                connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {old} WITH (FORCE)")
            connection.exec_driver_sql(
                f"CREATE DATABASE {_original(name)} TEMPLATE template0 ENCODING 'UTF8'"
            )
            self._fill(_original(name), text, script)
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {_original(name)}")
            connection.exec_driver_sql(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
            connection.exec_driver_sql(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC")
            connection.exec_driver_sql(f"COMMENT ON DATABASE {name} IS 'complete'")
        return name

    def open_role(self, template: str, *, writable: bool) -> Credentials:
        """Make a role for one session, and for one that writes a copy of the template.

        Raises:
            RuntimeFailure: The server does not answer.
        """
        role = f"toolenvs_{secrets.token_hex(8)}"
        password = secrets.token_hex(16)
        with self.admin() as connection:
            connection.exec_driver_sql(
                f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT "
                f"CONNECTION LIMIT 1 PASSWORD '{password}'"
            )
            connection.exec_driver_sql(f"COMMENT ON ROLE {role} IS '{self._client}'")
            if not writable:
                connection.exec_driver_sql(
                    f"ALTER ROLE {role} SET default_transaction_read_only = on"
                )
                return Credentials(role, password, template)
            connection.exec_driver_sql(f"CREATE DATABASE {role} TEMPLATE {_original(template)}")
            connection.exec_driver_sql(f"REVOKE ALL ON DATABASE {role} FROM PUBLIC")
            connection.exec_driver_sql(f"GRANT CONNECT ON DATABASE {role} TO {role}")
        with self._connected(role) as connection:
            raw = connection.connection.driver_connection
            raw.execute(_GIVE_AWAY.format(role=role).encode())
        return Credentials(role, password, role)

    def close_role(self, given: Credentials) -> None:
        """Remove a session's role, and its copy. Once more is harmless."""
        with self.admin() as connection:
            _remove(connection, given.role)

    def sweep(self) -> int:
        """Remove what clients left that are gone, such as killed ones; return how many sessions."""
        with self.admin() as connection:
            left = connection.exec_driver_sql(_LEFT_BEHIND).scalars().all()
            for role in left:
                _remove(connection, role)
        return len(left)

    def url_of(self, given: Credentials) -> Any:
        """The SQLAlchemy URL by which a role connects."""
        return self._url.set(username=given.role, password=given.password, database=given.database)

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """A connection with all rights, each statement a transaction of its own."""
        import sqlalchemy

        with self._lock:
            if self._admin is None:
                self._admin = sqlalchemy.create_engine(
                    self._url,
                    isolation_level="AUTOCOMMIT",
                    pool_pre_ping=True,
                    pool_size=2,
                    connect_args={"application_name": self._client},
                )
        with _told(self.place), self._admin.connect() as connection:
            yield connection

    def close(self) -> None:
        """End the connections. Twice is harmless."""
        with self._lock:
            engine, self._admin = self._admin, None
        if engine is not None:
            engine.dispose()

    # -- inside ---------------------------------

    @contextlib.contextmanager
    def _connected(self, database: str) -> Iterator[Any]:
        import sqlalchemy

        engine = sqlalchemy.create_engine(
            self._url.set(database=database), isolation_level="AUTOCOMMIT", poolclass=_no_pool()
        )
        with _told(self.place), engine.connect() as connection:
            yield connection

    def _finished(self, connection: Any, name: str) -> bool:
        found = connection.exec_driver_sql(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            (name,),
        ).scalar()
        return bool(found == "complete")

    def _fill(self, name: str, text: str, script: str | Path) -> None:
        import psycopg

        with self._connected(name) as connection:
            raw = connection.connection.driver_connection
            try:
                raw.execute(text.encode())  # the simple protocol takes a whole script
            except psycopg.Error as error:
                raise DataError(f"{script}: PostgreSQL refuses the script: {error}") from error
            raw.execute("RESET ALL")
            raw.execute(_READERS_ONLY.format(name=name).encode())
            for function in _FORBIDDEN_FUNCTIONS:
                raw.execute(_CLOSE_FUNCTION.format(name=function).encode())


_READERS_ONLY = """
REVOKE ALL ON DATABASE {name} FROM PUBLIC;
DO $$ DECLARE one name; BEGIN
  FOR one IN SELECT nspname FROM pg_namespace
             WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM PUBLIC', one);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', one);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO PUBLIC', one);
  END LOOP;
END $$;
ANALYZE;
"""

_CLOSE_FUNCTION = """
DO $$ DECLARE one regprocedure; BEGIN
  FOR one IN SELECT oid::regprocedure FROM pg_proc
             WHERE proname = '{name}' AND pronamespace = 'pg_catalog'::regnamespace LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
  END LOOP;
END $$;
"""

_GIVE_AWAY = """
DO $$ DECLARE one name; BEGIN
  FOR one IN SELECT nspname FROM pg_namespace
             WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO {role}', one);
    EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO {role}', one);
    EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO {role}', one);
  END LOOP;
END $$;
"""


_LEFT_BEHIND = """
SELECT rolname FROM pg_roles
WHERE rolname ~ '^toolenvs_[0-9a-f]{16}$' AND NOT EXISTS (
  SELECT 1 FROM pg_stat_activity
  WHERE application_name = shobj_description(pg_roles.oid, 'pg_authid')
)
"""


def _original(template: str) -> str:
    """What copies are made of: a database to which nobody is connected, as copying needs it."""
    return f"{template}_original"


def _remove(connection: Any, role: str) -> None:
    connection.exec_driver_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
    )
    connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {role} WITH (FORCE)")
    connection.exec_driver_sql(f"DROP ROLE IF EXISTS {role}")


def read_script(script: str | Path) -> str:
    """A script's text without the lines by which it makes and enters a database.

    Raises:
        DataError: It cannot be read, or is not UTF-8.
    """
    try:
        text = Path(script).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{script}: the script cannot be read: {error}") from None
    return _OWN_DATABASE.sub("", text)


@contextlib.contextmanager
def _one_at_a_time(connection: Any, digest: str) -> Iterator[None]:
    """Hold the server's lock for one template, whichever client makes it."""
    number = int(digest[:15], 16)
    connection.exec_driver_sql("SELECT pg_advisory_lock(%s)", (number,))
    try:
        yield
    finally:
        connection.exec_driver_sql("SELECT pg_advisory_unlock(%s)", (number,))


@contextlib.contextmanager
def _told(place: str) -> Iterator[None]:
    import sqlalchemy

    try:
        yield
    except sqlalchemy.exc.OperationalError as error:
        raise RuntimeFailure(
            "no_service",
            f"PostgreSQL at {place} does not answer ({_first_line(error)}). Start it with "
            "'docker-compose up -d postgres', or name another by TOOLENVS_POSTGRES_URL.",
        ) from error
    except sqlalchemy.exc.DBAPIError as error:
        raise RuntimeFailure("service", f"PostgreSQL at {place}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]


def _no_pool() -> Any:
    import sqlalchemy.pool

    return sqlalchemy.pool.NullPool
