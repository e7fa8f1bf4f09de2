"""Which PostgreSQL server is meant, and what is said where it is not to be had."""

from __future__ import annotations

import builtins
import socket
import threading
from typing import Any

import pytest

from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.postgres import VARIABLE, Credentials, Server, read_address
from toolenvs.postgres.drops import Drops
from toolenvs.runtimes.postgres import Postgres


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:5999",
        "postgres://me@here/x",
        "mysql://me:secret@here/x",
        "postgresql://me:secret@here:abc/x",
    ],
)
def test_a_bad_url_names_who_said_it_and_what_is_allowed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its value, but for the password."""
    for variable, option in ((url, ""), ("", url)):
        monkeypatch.setenv(VARIABLE, variable)
        with pytest.raises(UsageError, match="postgresql://USER:PASSWORD@HOST") as error:
            read_address(option)
        text = str(error.value)
        assert (VARIABLE in text) == bool(variable)
        assert url.replace("secret", "***") in text
        assert "secret" not in text


def test_the_address_is_the_option_s_then_the_variable_s_then_the_service_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it is shown without its password."""
    monkeypatch.setenv(VARIABLE, "postgresql://me:secret@there/x")
    assert read_address("postgresql://me@here/x").url.host == "here"
    assert str(read_address()) == f"postgresql://me:***@there/x ({VARIABLE})"
    monkeypatch.delenv(VARIABLE)
    assert "127.0.0.1:5432/postgres (the default" in str(read_address())


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [("database", "nowhere_at_all", "nowhere_at_all"), ("username", "nobody_at_all", "nobody")],
)
def test_a_server_that_refuses_is_not_said_to_be_silent(
    postgres: str, part: str, value: str, words: str
) -> None:
    """What it said is told, and where it is."""
    url = read_address(postgres).url.set(**{part: value})
    server = Server(url.set(drivername="postgresql").render_as_string(hide_password=False))
    with pytest.raises(RuntimeFailure, match=f"refuses: .*{words}") as failure:
        server.version()
    assert failure.value.kind == "no_service"
    assert "docker-compose" not in str(failure.value)
    server.close()


def test_a_server_that_stays_silent_is_given_up() -> None:
    """Connecting ends in time, for whoever connects; a URL may say in which."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        server = Server(f"postgresql://me@127.0.0.1:{port}/x?connect_timeout=2")
        with pytest.raises(RuntimeFailure, match="does not answer") as failure:
            server.version()
        assert failure.value.kind == "no_service"
        server.close()
    ours = Server("postgresql://me@127.0.0.1:1/x")
    role = ours.url_of(Credentials("r", "p", "d"))
    assert role.query == {"connect_timeout": "10"}
    ours.close()


def test_a_missing_driver_is_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an error of ours."""
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "psycopg":
            raise ModuleNotFoundError("No module named 'psycopg'")
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    told = r"pip install 'PATH-OF-THE-CLONE\[postgres\]'"
    with pytest.raises(RuntimeFailure, match=told) as failure:
        run(Postgres().start())
    assert failure.value.kind == "no_package"


def test_what_is_to_be_removed_is_removed_once_and_what_is_stuck_delays_nobody() -> None:
    """Closing waits for the others."""
    asked: list[str] = []
    free = threading.Event()

    def remove(role: str) -> bool:
        asked.append(role)
        if role == "broken":
            raise OSError
        return role != "stuck" or free.is_set()

    drops = Drops(remove)
    for role in ("stuck", "a", "b", "broken", "a"):
        drops.add(role)
    assert not drops.wait(30)
    assert {"a", "b"} <= set(asked)
    assert asked.count("a") <= 2
    free.set()
    drops.close()
    drops.close()
    assert asked.count("stuck") >= 2
