"""What is kept on a PostgreSQL server for tasks: templates, roles, and databases of episodes.

A template is a database made once from a script and named by the script's content, so that every
client of one server shares it. Nobody changes it: tasks that only read connect to it by a role that
may not write; a task that writes gets a copy, with a role of its own as its owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolenvs.errors import DataError, RuntimeFailure, UsageError
from toolenvs.postgres.address import Address, read_address
from toolenvs.postgres.connecting import (
    CLIENT,
    driver_error,
    driver_of,
    engine_for,
    no_pool,
    require_driver,
    told,
    with_limit,
)
from toolenvs.postgres.drops import Drops
from toolenvs.postgres.rights import BOUNDED, GIVE_AWAY, LEFT_BEHIND, NEW_ROLE, READERS_ONLY

ENCODING = "UTF8"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
_LOOKS, _LOOK_S = 25, 0.02  # until sessions that were ended are gone

_OWN_DATABASE = re.compile(
    r"^[ \t]*(?:\\[^\n]*|(?:CREATE|DROP)[ \t]+DATABASE\b[^;\n]*;)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines by which a script for ``psql`` makes and enters its database; here it has one already."""


class Credentials(msgspec.Struct, frozen=True):
    """Who connects to what."""

    role: str
    password: str
    database: str


class Server:
    """A server and the rights to make roles and databases on it; usable from any thread.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE`` of a superuser: nobody else can take
            PostgreSQL's own functions from those who may connect. See ``read_address``.
        at_once: how many may ask the server something at the same time.

    Raises:
        UsageError: The URL cannot be read.
        RuntimeFailure: ``no_package``: the driver is not installed.
    """

    def __init__(self, url: str = "", *, at_once: int = 64) -> None:
        self.address: Address = read_address(url)
        require_driver()
        self._url = with_limit(self.address.url)  # those of roles have it, too
        self._at_once = at_once
        self._pid = os.getpid()
        self._number = secrets.randbits(62)
        self._client = f"{CLIENT} {self._number}"
        self._lock = threading.Lock()
        self._admin: Any = None
        self._life: Any = None
        self._closed = False
        self._drops = Drops(self._remove)

    def version(self) -> str:
        """The server's version, such as ``"15.13"``.

        Raises:
            RuntimeFailure: ``no_service``: it does not answer.
        """
        with self.admin() as connection:
            return str(connection.exec_driver_sql("SHOW server_version").scalar()).split()[0]

    def locale(self) -> str:
        """How templates sort and fold texts, such as ``"en_US.utf8,en_US.utf8,UTF8"``.

        Raises:
            RuntimeFailure: ``no_service``: it does not answer.
        """
        with self.admin() as connection:
            row = connection.exec_driver_sql(
                "SELECT datcollate, datctype FROM pg_database WHERE datname = 'template0'"
            ).one()
        return ",".join((*row, ENCODING))

    @property
    def inherited(self) -> bool:
        """True in a fork of the process that made it: the connections are that one's."""
        return self._pid != os.getpid()

    def refuse_in_fork(self) -> None:
        """Go no further in a fork.

        Raises:
            RuntimeFailure: ``forked``.
        """
        if self.inherited:
            raise RuntimeFailure("forked", "this server's sessions belong to the parent process")

    def ensure_template(self, script: str | Path) -> str:
        """Make the database that ``script`` describes unless it is there; return its name.

        Raises:
            DataError: The script cannot be read, or fails.
            RuntimeFailure: The server does not answer.
        """
        text = read_script(script)
        ours = f"{BOUNDED}\0{READERS_ONLY}"
        digest = hashlib.sha256(f"{ours}\0{text}".encode()).hexdigest()
        name = f"toolenvs_{digest[:24]}"
        with self.admin() as connection, _one_at_a_time(connection, digest):
            if self._finished(connection, name):
                return name
            for old in (name, _original(name)):
                connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {old} WITH (FORCE)")
            connection.exec_driver_sql(
                f"CREATE DATABASE {_original(name)} TEMPLATE template0 ENCODING '{ENCODING}'"
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
        given = Credentials(role, secrets.token_hex(16), role if writable else template)
        with self.admin() as connection:
            self._show_life()
            driver_of(connection).execute(
                NEW_ROLE.format(
                    role=role,
                    password=given.password,
                    told=self._client,
                    read_only="off" if writable else "on",
                )
            )
            try:
                if writable:
                    self._copy(connection, template, role)
            except BaseException:
                self._drops.add(role)
                raise
        return given

    def close_role(self, given: Credentials) -> None:
        """End a session and remove its role and its copy, soon. Once more is harmless."""
        if not self.inherited:
            self._drops.add(given.role)

    def settle(self, timeout_s: float = 30.0) -> bool:
        """Wait until roles that were closed are gone; tell whether all are."""
        return self._drops.wait(timeout_s)

    def connections_of(self, role: str) -> int:
        """How many sessions of a role there are, such as those whose statement does not end.

        Raises:
            RuntimeFailure: The server does not answer.
        """
        with self.admin() as connection:
            return int(connection.exec_driver_sql(_CONNECTIONS, (role,)).scalar())

    def size_of(self, database: str) -> int:
        """Bytes that a database takes.

        Raises:
            RuntimeFailure: The server does not answer.
        """
        with self.admin() as connection:
            size = connection.exec_driver_sql("SELECT pg_database_size(%s)", (database,)).scalar()
        return int(size)

    def shrink(self, database: str) -> None:
        """Give back the room of rows that are gone.

        Raises:
            RuntimeFailure: The server does not answer.
        """
        with self._connected(database) as connection:
            connection.exec_driver_sql("VACUUM")

    def sweep(self) -> int:
        """Remove what clients left that are gone, such as killed ones; return how many sessions.

        Raises:
            UsageError: The user is no superuser.
            RuntimeFailure: The server does not answer.
        """
        with self.admin() as connection:
            if connection.exec_driver_sql("SHOW is_superuser").scalar() != "on":
                raise UsageError(
                    f"the user of PostgreSQL at {self.address} must be a superuser: only one can "
                    "take the server's own functions from the episodes' roles."
                )
            left = connection.exec_driver_sql(LEFT_BEHIND).scalars().all()
            return sum(_removed(connection, role) for role in left)

    def url_of(self, given: Credentials) -> Any:
        """The SQLAlchemy URL by which a role connects."""
        return self._url.set(username=given.role, password=given.password, database=given.database)

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """A connection with all rights, each statement a transaction of its own.

        Raises:
            RuntimeFailure: ``no_service``: the server does not answer; ``closed``; ``forked``.
        """
        self.refuse_in_fork()
        with self._lock:
            if self._closed:
                raise RuntimeFailure("closed", "the connections to PostgreSQL were ended")
            if self._admin is None:
                self._admin = engine_for(
                    self._url, pool_pre_ping=True, pool_size=2, max_overflow=self._at_once
                )
            engine = self._admin
        with told(self.address), engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """End the connections, after a bounded wait for what is to be removed.

        Twice is harmless, and in a fork nothing is done.
        """
        if self.inherited:
            return
        self._drops.close()
        with self._lock:
            self._closed = True
            engine, self._admin = self._admin, None
            life, self._life = self._life, None
        if engine is not None:
            engine.dispose()
        if life is not None:
            life.close()

    # -- inside ---------------------------------

    def _remove(self, role: str) -> bool:
        with self.admin() as connection:
            return _removed(connection, role)

    @contextlib.contextmanager
    def _connected(self, database: str) -> Iterator[Any]:
        engine = engine_for(self._url.set(database=database), poolclass=no_pool())
        with told(self.address), engine.connect() as connection:
            yield connection

    def _show_life(self) -> None:
        """Hold a lock for as long as this client lives: by it others know whose roles to leave.

        A connection of its own holds it; where the server was restarted it is taken again.
        """
        with self._lock:
            if self._life is not None:
                try:
                    self._life.driver_connection.execute("SELECT 1")
                    return
                except driver_error():
                    self._life, lost = None, self._life
                    lost.invalidate()
            self._life = engine_for(self._url, poolclass=no_pool()).raw_connection()
            self._life.driver_connection.execute("SELECT pg_advisory_lock(%s)", (self._number,))

    def _copy(self, connection: Any, template: str, role: str) -> None:
        connection.exec_driver_sql(f"CREATE DATABASE {role} TEMPLATE {_original(template)}")
        connection.exec_driver_sql(f"REVOKE ALL ON DATABASE {role} FROM PUBLIC")
        connection.exec_driver_sql(f"GRANT CONNECT ON DATABASE {role} TO {role}")
        with self._connected(role) as inside:
            driver_of(inside).execute(GIVE_AWAY.format(role=role).encode())

    def _finished(self, connection: Any, name: str) -> bool:
        found = connection.exec_driver_sql(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            (name,),
        ).scalar()
        return bool(found == "complete")

    def _fill(self, name: str, text: str, script: str | Path) -> None:
        import psycopg

        with self._connected(name) as connection:
            raw = driver_of(connection)
            raw.execute(BOUNDED.encode())  # first: what the script makes calls these
            try:
                raw.execute(text.encode())  # the simple protocol takes a whole script
            except psycopg.Error as error:
                raise DataError(f"{script}: PostgreSQL refuses the script: {error}") from error
            raw.execute("RESET ALL")
            raw.execute(READERS_ONLY.format(name=name).encode())


def _original(template: str) -> str:
    """What copies are made of: a database to which nobody is connected, as copying needs it."""
    return f"{template}_original"


def _removed(connection: Any, role: str) -> bool:
    """Remove a role and its copy; False where a statement of its cannot be stopped yet."""
    connection.exec_driver_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
    )
    for _ in range(_LOOKS):
        if not connection.exec_driver_sql(_CONNECTIONS, (role,)).scalar():
            break
        time.sleep(_LOOK_S)
    else:
        return False
    connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {role} WITH (FORCE)")
    connection.exec_driver_sql(f"DROP ROLE IF EXISTS {role}")
    return True


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
